"""`stats`: four ages and the counts beside them, which together tell why a backlog is one."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import write_object
from coatcheck.store.stats import Stats, read_stats

COLUMNS = ("measure", "of", "reading")


def stats(*, as_json: AsJson = False) -> None:
    """Show queue age, action times, render age, lost renewals, stale writes, what waits, doubts and money held."""

    async def run() -> Stats:
        async with database() as (opened, _):
            return await read_stats(opened)

    found = asdict(asyncio.run(run()))
    if as_json:
        write_object(found)
        return
    from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

    show(table(COLUMNS, rows(found)))


def rows(found: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    """The measures as a table's rows, those that have parts with a row for each."""
    for measure, value in found.items():
        if not isinstance(value, Mapping):
            yield measure, "", _reading(value)
        for part, reading in value.items() if isinstance(value, Mapping) else ():
            yield measure, str(part), _reading(reading)


def _reading(value: object) -> object:
    match value:
        case Mapping():
            return ", ".join(f"{name} {_reading(each)}" for name, each in value.items())
        case float():
            return f"{value:.1f}"
        case _:
            return value
