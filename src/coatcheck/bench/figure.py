"""What a measurement brings: one number with its name and unit, and what kept it from being better, as far as that was seen."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `value` is None where it could not be measured here; `limited_by` says why."""

    name: str
    value: float | None
    unit: str
    limited_by: str


def quantile(samples: list[float], share: float) -> float:
    """The value below which that share of the samples lies, as `quantile(taken_ms, 0.99)`; one of the samples, never between two."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
