"""Every statement is a file with one caller; it is read once and never assembled from strings.

A line `-- include: name` stands for `parts/name.sql`: the few sentences that several statements must say in the same words, or a chapter of
one that is too long without it.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r"^-- include: (\w+)\n", re.MULTILINE)
_HEADER = re.compile(r"\A(?:--[^\n]*\n)+")
_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|%)")


@cache
def statement(room: str, name: str) -> str:
    """The text of `sql/statements/<room>/<name>.sql`, parts included. Example: `statement("store", "mark")`."""
    return _INCLUDE.sub(lambda found: _without_header(_read("parts", found[1])), _read(room, name))


@cache
def numbered(text: str) -> tuple[bytes, Sequence[str]]:
    """A statement as the server takes it, `$1` for the first of the names and so on. The driver forgets what it reads of a long text, each time."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return "%"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PLACEHOLDER.sub(number, text).encode(), tuple(names)


def _read(room: str, name: str) -> str:
    return (files("coatcheck") / "sql" / "statements" / room / f"{name}.sql").read_text(encoding="utf-8")


def _without_header(text: str) -> str:
    return _HEADER.sub("", text)
