"""What people are shown: tables no wider than they need to be, ids that are never broken, and no text that a terminal would obey."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from textwrap import wrap

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coatcheck.cli.visible import visible

_WIDE = 2000
_WHOLE = frozenset({"operation", "remote job", "at", "event", "last_at"})
"""Columns whose cells are never broken: half an id is no id, and an instant is read at a glance."""


class _Console(Console):
    """A console that leaves a closed pipe to the command's end: of itself it would exit with 1, and having seen enough is no failure."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """A console on stdout that never reads markup in what it is given."""
    found = _Console(markup=False, highlight=False, emoji=False)
    return found if found.is_terminal else _Console(markup=False, highlight=False, emoji=False, width=_WIDE)


def show(found: Table) -> None:
    """Print a table. Off a terminal no line is wider than what it says."""
    screen = console()
    if screen.is_terminal:
        screen.print(found)
        return
    with screen.capture() as capture:
        screen.print(found)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, or, where the terminal is narrower, a record for each row, so that neither an id nor a word is broken."""
    kept = [tuple(row) for row in rows]
    found, screen = table(columns, kept), console()
    if (
        not screen.is_terminal
        or screen.measure(found, options=screen.options.update(width=_WIDE)).maximum <= screen.width
    ):
        show(found)
        return
    for name, *rest in kept:
        shown = {column: value for column, value in zip(columns[1:], rest, strict=True) if value is not None}
        show_fields(shown, title=cell(name).plain)


def show_fields(fields: Mapping[str, object], *, title: str | None = None) -> None:
    """Print one record, a field on a line. Breaking long ones is left to the terminal, so that they are copied whole."""
    screen = console()
    if title is not None:
        screen.print(f"\n{title}", soft_wrap=True)
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        screen.print(Text.assemble(f"{name:<{width}}  ", cell(value)), soft_wrap=True)


def show_lines(title: str, lines: Iterable[str]) -> None:
    """Print a heading and what belongs under it. On a terminal sentences are broken between words; a command or a list's entry never is."""
    screen = console()
    screen.print(Text(visible(title), style="bold"), soft_wrap=not screen.is_terminal)
    for line in map(visible, lines):
        whole = line.startswith((" ", "coatcheck ")) or not screen.is_terminal
        folded = (
            [line] if whole else wrap(line, max(20, screen.width - 2), break_long_words=False, break_on_hyphens=False)
        )
        for part in folded:
            screen.print(Text(f"{'    ' if line.startswith('coatcheck ') else '  '}{part}"), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> Table:
    """A table of cells: None is a dash, an instant is shown in UTC to the second."""
    found = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        # Folded and not cut.
        found.add_column(column, overflow="fold", no_wrap=column in _WHOLE)
    for row in rows:
        found.add_row(*(cell(each) for each in row))
    return found


def cell(value: object) -> Text:
    """One cell."""
    match value:
        case None:
            return Text("-")
        case datetime():
            return Text(f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z")
        case _:
            return Text(visible(str(value)))
