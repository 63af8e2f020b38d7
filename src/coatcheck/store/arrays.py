"""A column of a batch as PostgreSQL's own text of an array, made in one pass; the driver would look for a dumper of each element anew.

What is sent has no type of its own: the statement's cast says what it is, so a batch of nulls and one of words are one prepared statement.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final
from uuid import UUID


class _Texts(dict[type, Callable[[Any], str]]):
    """How an element is written, by its type."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        if not issubclass(kind, StrEnum):
            raise KeyError(kind)
        self[kind] = _word
        return _word


def _null(_: None) -> str:
    return "NULL"


def _truth(value: bool) -> str:  # noqa: FBT001 - the form that all of them have
    return "t" if value else "f"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _word(word: StrEnum) -> str:
    return _quoted(str(word))


def _bytes(value: bytes) -> str:
    return f'"\\\\x{value.hex()}"'


def _hex(value: UUID) -> str:
    return value.hex


_TEXTS: Final = _Texts(
    {
        type(None): _null,
        bool: _truth,
        int: int.__repr__,
        float: float.__repr__,
        str: _quoted,
        bytes: _bytes,
        UUID: _hex,
        Decimal: str,
        datetime: datetime.isoformat,
    }
)


def literal(values: Sequence[Any]) -> str | None:
    """The array's text: `literal([1, None])` is `{1,NULL}`. None where an element is of no kind that is known here: the driver may know it."""
    try:
        return f"{{{','.join([_TEXTS[type(value)](value) for value in values])}}}"
    except KeyError:
        return None
