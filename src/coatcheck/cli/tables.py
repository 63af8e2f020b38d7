"""Tables for people: columns as wide as they need to be off a terminal, and no text of others that a terminal would obey."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coatcheck.cli.visible import visible

_WIDE = 2000


class _Console(Console):
    """A console that leaves a closed pipe to the command's end: of itself it would exit with 1, and having seen enough is no failure."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """A console on stdout that never reads markup in what it is given."""
    found = _Console(markup=False, highlight=False, emoji=False)
    return found if found.is_terminal else _Console(markup=False, highlight=False, emoji=False, width=_WIDE)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> Table:
    """A table of cells: None is a dash, an instant is shown in UTC to the second."""
    found = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        # Folded and not cut: half an id is no id.
        found.add_column(column, overflow="fold")
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
