"""`reconcile list` and `reconcile show`: what is in doubt, what is at risk, and everything that helps to decide."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.reconciling.doubts import read_doubts
from coatcheck.app.reconciling.views import Doubt
from coatcheck.app.story.wording import amount, span
from coatcheck.cli.lists import limited
from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson, Limit, Tenant, limit_of, utf8
from coatcheck.cli.output import say, write_object

_SCREEN = 100
"""Lines of one table on a terminal; a longer list is several, so that it begins at once."""
_COLUMNS = ("operation", "tenant", "account", "age", "how far", "at risk", "possible now")


def list_doubts(
    *,
    tenant: Tenant = None,
    stuck: Annotated[bool, Parameter(negative="", help="Remote jobs that are missing or stalled, too.")] = False,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List what is uncertain, oldest first, with the money at risk and the decisions that are possible now."""
    if tenant is not None:
        utf8("--tenant", tenant)
    most = limit_of(limit)

    async def run() -> None:
        async with database() as (opened, _):
            found = limited(read_doubts(opened, tenant_id=tenant, stuck=stuck), most)
            await (_write_lines(found) if as_json else _print_screens(found))

    asyncio.run(run())


def show(
    operation: Annotated[str, Parameter(help="The operation's id, op_….")],
    /,
    *,
    offline: Annotated[bool, Parameter(negative="", help="Do not ask the service which jobs it has.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the evidence about one operation: its story with the commands that decide, and jobs that may be the one."""
    from coatcheck.cli.evidence import found_for, write  # noqa: PLC0415 - a list asks no service

    write(asyncio.run(found_for(operation, ask=not offline)), as_json=as_json)


async def _write_lines(found: AsyncIterator[Doubt]) -> None:
    async for doubt in found:
        write_object(doubt.as_json())


async def _print_screens(found: AsyncIterator[Doubt]) -> None:
    screen: list[Doubt] = []
    at_risk: dict[str, Decimal] = defaultdict(Decimal)
    count = unknown = 0
    async for doubt in found:
        screen.append(doubt)
        count += 1
        at_risk[doubt.unit] += doubt.held or 0
        unknown += doubt.held is None
        if len(screen) == _SCREEN:
            _print_screen(screen)
            screen = []
    if screen:
        _print_screen(screen)
    say(f"{count} to be decided; at risk: {_sums(at_risk, unknown)}" if count else "nothing is in doubt")


def _sums(at_risk: Mapping[str, Decimal], unknown: int) -> str:
    """What is held in each unit, and of how many nobody knows."""
    sums = ", ".join(amount(held, unit) for unit, held in sorted(at_risk.items()) if held)
    if not unknown:
        return sums or "nothing that is held"
    return f"{sums}, and of {unknown} unknown, no estimate" if sums else "unknown, no estimate"


def _print_screen(screen: Sequence[Doubt]) -> None:
    from coatcheck.cli.tables import show as print_table  # noqa: PLC0415 - for people only
    from coatcheck.cli.tables import table  # noqa: PLC0415 - for people only

    rows = (
        (
            each.operation_id,
            each.tenant_id,
            each.account,
            span(each.age_s),
            each.stage if each.render_state == "none" else each.render_state,
            "unknown" if each.held is None else amount(each.held, each.unit),
            ", ".join(each.decisions),
        )
        for each in screen
    )
    print_table(table(_COLUMNS, rows))
