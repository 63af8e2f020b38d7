"""How a remote job goes: its outcome, its pace, its price and its files, fixed at creation. Only a cancellation changes it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coatcheck.sim.chance import Chance
from coatcheck.sim.checks import (
    OUTCOMES,
    Check,
    Number,
    Unfit,
    checked,
    integer,
    mapping,
    number,
    one_of,
    or_null,
    text,
)
from coatcheck.sim.settings import ServiceSettings

LARGEST_BYTES = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
    """One file to be made. Without a size, a few KiB are drawn from the seed."""

    content_type: str = "image/png"
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A job's fixed future. Money is in credits; `refund` None gives everything back unless the job succeeds."""

    outcome: str
    queued_s: Number
    processing_s: Number
    price: Number
    refund: Number | None
    outputs: tuple[OutputPlan, ...]
    outputs_as: str
    final_word: str
    error_code: str
    error_message: str

    @property
    def refunded(self) -> Number:
        """What the service gives back when the job is over."""
        if self.refund is not None:
            return self.refund
        return 0 if self.outcome == "succeeded" else self.price


def _outputs(value: object) -> tuple[OutputPlan, ...]:
    """A count, or a list of {type, bytes}."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1000:  # noqa: PLR2004 - a bound for typing errors
        return (OutputPlan(),) * value
    if not isinstance(value, list):
        raise Unfit("a count from 0 to 1000 or a list of {type, bytes}")
    return tuple(_output(item) for item in value)


def _output(value: object) -> OutputPlan:
    found = checked(
        mapping(value, where="outputs"), {"type": text, "bytes": integer(0, LARGEST_BYTES)}, where="outputs"
    )
    return OutputPlan(content_type=found.get("type", "image/png"), size_bytes=found.get("bytes"))


COURSE_CHECKS: Mapping[str, Check] = {
    "outcome": one_of(*OUTCOMES),
    "queued_s": number(),
    "processing_s": number(),
    "price": number(),
    "refund": or_null(number()),
    "outputs": _outputs,
    "outputs_as": one_of("objects", "urls"),
    "final_word": text,
    "error_code": text,
    "error_message": text,
}
"""What `on: "job"` rules and a specification's `sim` object may set."""


def course_changes(data: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """The checked changes in `data`. Raises Refused naming the place and the name."""
    return checked(data, COURSE_CHECKS, where=where)


def course_for(settings: ServiceSettings, chance: Chance, job_id: str, changes: Mapping[str, Any]) -> Course:
    """The job's course: drawn from the seed by the job's id, then changed as scripted."""
    usual = Course(
        outcome="succeeded",
        queued_s=chance.between(*settings.queued_s, "queued", job_id),
        processing_s=chance.between(*settings.processing_s, "processing", job_id),
        price=settings.price,
        refund=None,
        outputs=(OutputPlan(),),
        outputs_as=settings.outputs_as,
        final_word="",
        error_code="",
        error_message="",
    )
    return replace(usual, **changes)
