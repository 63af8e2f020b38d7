"""Whether a value is what its dataclass says that it is: a line with a right checksum may still have been written by something else.

What does not fit is refused here, where the file and the offset are known, and never met later by code that relies on its types.
"""

import math
from dataclasses import fields, is_dataclass
from datetime import datetime
from types import UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints


def fits(value: object, hint: Any) -> bool:
    """Whether `value` is of the annotated type, all the way down: `fits(record, Record)`. Raises ValueError for text that is no UTF-8."""
    if isinstance(hint, NewType):
        return fits(value, hint.__supertype__)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and _fit(value, get_args(hint))
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        return isinstance(value, hint) and all(
            fits(getattr(value, each.name), hints[each.name]) for each in fields(hint)
        )
    return _plain(value, hint)


def _fit(values: tuple[object, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:  # noqa: PLR2004 - tuple[T, ...]
        return all(fits(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(fits(value, hint) for value, hint in zip(values, hints, strict=True))


def _plain(value: object, hint: type) -> bool:
    if isinstance(value, bool):
        return hint is bool
    if hint is float:
        return isinstance(value, int | float) and math.isfinite(value)
    if isinstance(value, str):
        value.encode()
    if isinstance(value, datetime) and value.tzinfo is None:
        return False
    return isinstance(value, hint)
