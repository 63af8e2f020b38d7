"""`charges report`: what was spent and is held, for people as a table, for programs as JSON, for a spreadsheet as CSV.

The CSV is that of RFC 4180, in UTF-8, and no text in it can act: what a spreadsheet would take for a formula gets a ' in front of it.
"""

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from cyclopts import Parameter

from coatcheck.cli.amounts import exact
from coatcheck.cli.instants import instant_of
from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import say, write_object
from coatcheck.cli.visible import visible
from coatcheck.errors import Refused
from coatcheck.store.charges import By, Charges, report_charges

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")  # noqa: RUF001 - spreadsheets take the wide ones, too
"""A text that begins with one of these gets a ' in front; one that begins with a ' does, so that it can be taken off again."""


def report(
    *,
    by: Annotated[str, Parameter(help="A row for each tenant or provider, and unit.")] = By.TENANT,
    begins: Annotated[
        str | None,
        Parameter(name="--from", help="Dispatches marked from this instant on: ISO 8601 with an offset, or a date."),
    ] = None,
    ends: Annotated[str | None, Parameter(name="--until", help="Dispatches marked before this instant.")] = None,
    as_csv: Annotated[bool, Parameter(name="--csv", negative="", help="Write CSV with a header.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add up what dispatches hold and cost. Together the rows are all dispatches of the period, as of one instant."""
    if as_csv and as_json:
        raise Refused("expected --csv or --json, got both", next="give one of them")
    whose, begins_at, ends_at = _by(by), _instant("--from", begins), _instant("--until", ends)
    if begins_at and ends_at and begins_at >= ends_at:
        raise Refused("--until: expected an instant after --from, got none", next="--until is not part of the period")

    async def run() -> Sequence[Charges]:
        async with database() as (opened, _):
            return await report_charges(opened, by=whose, begins_at=begins_at, ends_at=ends_at)

    rows = [_named(row, whose) for row in asyncio.run(run())]
    if as_csv:
        _write_csv(_named(_NOTHING, whose), rows)
    elif as_json:
        for row in rows:
            write_object(row)
    else:
        _print_table(_named(_NOTHING, whose), rows)


_NOTHING = Charges(
    name=None,
    unit="",
    dispatch_count=0,
    charged=Decimal(0),
    charged_by_service=Decimal(0),
    charged_as_assumed=Decimal(0),
    refunded=Decimal(0),
    held=Decimal(0),
    uncertain_count=0,
    uncertain_held=Decimal(0),
    orphan_count=0,
    orphan_charged=Decimal(0),
)
"""A row for the sake of its names: a report without rows has its header all the same."""


def _named(row: Charges, by: By) -> Mapping[str, object]:
    """The row under the names that it has outside."""
    found = asdict(row)
    name = found.pop("name")
    match by:
        case By.TENANT:
            return {"tenant_id": name, **found}
        case By.PROVIDER:
            return {"provider": name, **found}


def _write_csv(header: Iterable[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Straight into the stream of bytes: no locale decides about the encoding or the ends of lines."""
    sys.stdout.flush()
    lines = [",".join(header), *(",".join(map(_field, row.values())) for row in rows)]
    sys.stdout.buffer.write("".join(f"{line}\r\n" for line in lines).encode())
    sys.stdout.buffer.flush()


def _field(value: object) -> str:
    """A number as it is; text in quotes, so that no other separator splits it, and on one line."""
    if isinstance(value, int | Decimal):
        return _figure(value)
    text = "" if value is None else str(value)
    text = visible(f"'{text}" if text.startswith(_FORMULAS) else text)
    return '"{}"'.format(text.replace('"', '""'))


def _figure(value: int | Decimal) -> str:
    return str(value) if isinstance(value, int) else exact(value) or ""


def _print_table(header: Iterable[str], rows: Sequence[Mapping[str, object]]) -> None:
    from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

    if not rows:
        say("no dispatch in this period")
        return
    columns = [name.removesuffix("_id").replace("_", " ") for name in header]
    cells = ([_figure(each) if isinstance(each, int | Decimal) else each for each in row.values()] for row in rows)
    show(table(columns, cells))


def _by(word: str) -> By:
    if word not in tuple(By):
        raise Refused(f"--by: expected {' or '.join(By)}, got {word!a}", next="give one of them")
    return By(word)


def _instant(name: str, text: str | None) -> datetime | None:
    return None if text is None else instant_of(name, text)
