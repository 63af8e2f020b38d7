"""Waiting for a condition that is watched, never for a time that was guessed; and the end of all patience."""

from collections.abc import Callable

from coatcheck.errors import Failed
from coatcheck.seams import Seams

LOOK_EVERY_S = 0.05


def until(
    holds: Callable[[], object], *, seams: Seams, what: str, within_s: float, every_s: float = LOOK_EVERY_S
) -> None:
    """Return as soon as `holds()` is true. Raises `Failed`, naming what was waited for, after `within_s` seconds."""
    end = seams.clock.boottime() + within_s
    while not holds():
        if seams.clock.boottime() > end:
            raise Failed(
                f"expected {what} within {within_s:g} s, got none", next="measure less, or on a quieter machine"
            )
        seams.pause(every_s)
