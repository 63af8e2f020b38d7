"""One check per script parameter: a value is taken over as its exact type or refused with what was expected."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coatcheck.errors import Refused
from coatcheck.sim.kinds import End

Check = Callable[[Any], Any]

Number = int | float
OUTCOMES = ("succeeded", "failed", "moderated", "cancelled", "expired", "stuck")


class Unfit(ValueError):
    """A value that a check does not take; its text says what was expected."""


def number(low: float = 0.0) -> Check:
    """A finite int or float of at least `low`, kept as it was written."""

    def check(value: object) -> Number:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < low:
            raise Unfit(f"a finite number of at least {low:g}")
        return value

    return check


def integer(low: int | None = None, high: int | None = None) -> Check:
    """An int within the bounds."""

    def check(value: object) -> int:
        outside = not isinstance(value, int) or (low is not None and value < low) or (high is not None and value > high)
        if isinstance(value, bool) or outside or not isinstance(value, int):
            raise Unfit(f"an integer{'' if low is None else f' from {low}'}{'' if high is None else f' to {high}'}")
        return value

    return check


def text(value: object) -> str:
    """A string that can stand in a header line."""
    if not isinstance(value, str) or "\r" in value or "\n" in value:
        raise Unfit("a string without line breaks")
    return value


def flag(value: object) -> bool:
    """A boolean."""
    if not isinstance(value, bool):
        raise Unfit("true or false")
    return value


def header(value: object) -> str:
    """A header value: a string, or a number as it would be written."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else text(value)


def one_of(*words: str) -> Check:
    """One of the words."""

    def check(value: object) -> str:
        if value not in words or not isinstance(value, str):
            raise Unfit(f"one of {', '.join(words)}")
        return value

    return check


def end(value: object) -> End:
    """How to end a connection."""
    return End(one_of(*End)(value))


def or_null(check: Check) -> Check:
    """null, or what `check` takes."""

    def checked(value: object) -> object:
        if value is None:
            return None
        try:
            return check(value)
        except Unfit as unfit:
            raise Unfit(f"{unfit}, or null") from None

    return checked


def list_of(check: Check) -> Check:
    """A non-empty list of what `check` takes, as a tuple."""

    def checked(value: object) -> tuple[object, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence) or not value:
            raise Unfit("a non-empty list")
        return tuple(check(item) for item in value)

    return checked


def pair(value: object) -> tuple[Number, Number]:
    """A range [low, high]; one number stands for both."""
    if isinstance(value, int | float):
        value = [value, value]
    low, high = found if len(found := list_of(number())(value)) == 2 else (1, 0)  # noqa: PLR2004 - a pair
    if low > high:
        raise Unfit("a number or [low, high]")
    return low, high


def mapping(data: object, *, where: str) -> Mapping[str, Any]:
    """`data` as an object with string keys. Raises Refused naming the place."""
    if not isinstance(data, Mapping):
        raise Refused(f"{where}: expected an object, got {kind_of(data)}", next="write it as {…}")
    return data


def checked(data: Mapping[str, Any], checks: Mapping[str, Check], *, where: str) -> dict[str, Any]:
    """Every value of `data` through its check. Raises Refused naming the place, the name and what was expected."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name not in checks:
            raise Refused(f"{where}: unknown name {name!r}", next=f"known names: {', '.join(checks)}")
        try:
            found[name] = checks[name](value)
        except Unfit as unfit:
            raise Refused(f"{where}: {name} must be {unfit}, got {kind_of(value)}", next="correct the value") from None
    return found


def kind_of(value: object) -> str:
    """A short harmless name for what came: numbers and short words as they are, anything longer by its type."""
    match value:
        case None | bool() | int() | float():
            return repr(value)
        case str() if len(value) <= 40:  # noqa: PLR2004 - what fits in a message
            return repr(value)
        case _:
            return type(value).__name__
