"""One run: a ground, the measurements that were chosen, one after the other, and what they brought.

Nothing is left running or lying around. Of a run that is killed the workers and the service end with it (`tether`); its embedded server and its
folder stay until the next run, which clears them away before it begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.bench import ground
from coatcheck.bench.catalogue import chosen
from coatcheck.bench.figure import Figure
from coatcheck.bench.machine import Machine, described
from coatcheck.bench.scale import Scale
from coatcheck.bench.telling import Telling
from coatcheck.config import load_settings
from coatcheck.seams import Seams

_COUNTING = 3
"""Digits of a figure that count, and decimals of one below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was measured, and on what."""

    machine: Machine
    figures: Sequence[Figure]


def run(
    names: Sequence[str], *, scale: Scale, database_url: str | None, telling: Telling, seams: Seams | None = None
) -> Report:
    """Measure, as `run(["lifecycle"], scale=QUICK, database_url=None, telling=print)`; `telling` hears of each figure at once.

    Raises `Refused` for unknown names and for a database that is used, `Failed` for a measurement that does not come to its end or whose two
    books disagree, and KeyboardInterrupt after Ctrl-C or SIGTERM.
    """
    measurements = chosen(names)
    seams = seams or Seams.real()
    figures: list[Figure] = []
    home = load_settings().home / "bench"
    with ground.opened(home, url=database_url, scale=scale, seams=seams, telling=telling) as place:
        with place.books() as books:
            machine = described(books.server().version, seams.clock.now())
        for name, measurement in measurements.items():
            telling(f"{name}: {measurement.summary}")
            for figure in measurement.measure(place):
                telling(told(figure))
                figures.append(figure)
    return Report(machine=machine, figures=figures)


def told(figure: Figure) -> str:
    """One figure as a line."""
    return f"  {figure.name}: {shown(figure.value)} {figure.unit}"


def shown(value: float | None) -> str:
    """Three digits that count, never with an exponent: 0.031, 4.57, 1 830."""
    if value is None:
        return "-"
    whole = len(f"{abs(value):.0f}")
    digits = _COUNTING - whole if abs(value) >= 1 else _COUNTING
    return f"{value:,.{max(0, digits)}f}".replace(",", " ")
