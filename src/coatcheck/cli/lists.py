"""Lists while they are read: for programs a line each, for people a table for each screen, so that a long list begins at once."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from typing import Protocol, TypeVar

from coatcheck.cli.output import say, write_object

SCREEN = 100
"""Rows of one table."""


class Told(Protocol):
    """What has a form for programs."""

    def as_json(self) -> dict[str, object]:
        """The fields by name."""


Each = TypeVar("Each", bound=Told)


async def limited(found: AsyncIterable[Each], limit: int | None) -> AsyncIterator[Each]:
    """The first of them, as many as are wanted; None for every one: `limited(found, 10)`."""
    count = 0
    async for each in found:
        if count == limit:
            return
        count += 1
        yield each


async def tell(
    found: AsyncIterable[Each],
    columns: Sequence[str],
    row: Callable[[Each], Sequence[object]],
    *,
    empty: str,
    as_json: bool,
) -> None:
    """Write a list; `empty` is said to people where it has nothing."""
    count = 0
    screen: list[Each] = []
    async for each in found:
        count += 1
        if as_json:
            write_object(each.as_json())
            continue
        screen.append(each)
        if len(screen) == SCREEN:
            _print(columns, map(row, screen))
            screen = []
    if screen:
        _print(columns, map(row, screen))
    if not count and not as_json:
        say(empty)


def _print(columns: Sequence[str], rows: "map[Sequence[object]]") -> None:
    from coatcheck.cli.tables import show_rows  # noqa: PLC0415 - for people only

    show_rows(columns, rows)
