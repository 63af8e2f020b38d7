"""`top`: the measures of `stats`, over and over until it is interrupted. It reads and changes nothing."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import flush, write_object
from coatcheck.cli.stats import COLUMNS, rows
from coatcheck.seams import Seams
from coatcheck.store.stats import Stats, read_stats

_EVERY_S = 2.0

_Draw = Callable[[Stats], None]


def top(
    *,
    once: Annotated[bool, Parameter(negative="", help="Show them once.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what `stats` shows every 2 s, until it is interrupted. Off a terminal one reading follows the other."""
    with _json() if as_json else _screen() as draw:
        asyncio.run(_watch(draw, once=once))


async def _watch(draw: _Draw, *, once: bool) -> None:
    seams = Seams.real()
    async with database() as (opened, _):
        draw(await read_stats(opened))
        while not once:
            await seams.sleep(_EVERY_S)
            draw(await read_stats(opened))


@contextmanager
def _json() -> Iterator[_Draw]:
    def draw(found: Stats) -> None:
        write_object(asdict(found))
        flush()

    yield draw


@contextmanager
def _screen() -> Iterator[_Draw]:
    from rich.live import Live  # noqa: PLC0415 - for people only

    from coatcheck.cli.tables import console, show, table  # noqa: PLC0415 - for people only

    screen = console()
    if not screen.is_terminal:

        def draw(found: Stats) -> None:
            show(table(COLUMNS, rows(found)))
            flush()

        yield draw
        return
    with Live(console=screen, auto_refresh=False, vertical_overflow="visible") as live:
        yield lambda found: live.update(table(COLUMNS, rows(found)), refresh=True)
