"""`allowance set|show`: what a tenant may spend, and what of it is held and charged. A new limit counts from its commit on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.place import database_of
from coatcheck.cli.amounts import amount_or_none, exact, tenant_of, unit_of
from coatcheck.cli.opening import database
from coatcheck.cli.options import Actor, AsJson, Tenant, actor_of
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.cli.visible import visible
from coatcheck.config import load_settings
from coatcheck.seams import Seams
from coatcheck.store.allowances import Allowance, list_allowances, set_allowance

_COLUMNS = ("tenant", "unit", "limit", "held", "charged", "left", "waiting", "set at", "set by")


def set_limit(
    amount: Annotated[str, Parameter(allow_leading_hyphen=True, help="A decimal amount; none counts without a limit.")],
    /,
    *,
    tenant: Annotated[str, Parameter(help="Whose allowance.")],
    unit: Annotated[str, Parameter(help="The unit of the amount, as operations have it.")] = "credits",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Set what a tenant may spend in a unit; what waits for it tries again at once."""
    limit = amount_or_none("AMOUNT", amount)
    whose, of, who = tenant_of("--tenant", tenant), unit_of("--unit", unit), actor_of(actor)
    seams = Seams.real()
    with database_of(load_settings(), seams) as url:
        change = set_allowance(url, tenant_id=whose, unit=of, limit=limit, actor=who, faults=seams.faults)
        found = asyncio.run(change)
    if as_json:
        write_object(asdict(found))
    else:
        write_line(_sentence(found))


def show(
    *,
    tenant: Tenant = None,
    unit: Annotated[str | None, Parameter(help="Only allowances in this unit.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show allowances: the limit, what is held and charged, what is left, and how many operations wait."""
    whose = None if tenant is None else tenant_of("--tenant", tenant)
    of = None if unit is None else unit_of("--unit", unit)

    async def run() -> None:
        async with database() as (opened, _):
            found = list_allowances(opened, tenant_id=whose, unit=of)
            await (_write_lines(found) if as_json else _print_table(found))

    asyncio.run(run())


async def _write_lines(found: AsyncIterator[Allowance]) -> None:
    async for allowance in found:
        write_object(asdict(allowance))


async def _print_table(found: AsyncIterator[Allowance]) -> None:
    from coatcheck.cli.tables import show as show_table  # noqa: PLC0415 - for people only
    from coatcheck.cli.tables import table  # noqa: PLC0415 - as above

    rows = [tuple(_cells(allowance)) async for allowance in found]
    if rows:
        show_table(table(_COLUMNS, rows))
    else:
        say("no allowance matches; a tenant without one has no limit")


def _cells(allowance: Allowance) -> Iterator[object]:
    yield from (allowance.tenant_id, allowance.unit)
    yield "no limit" if allowance.limit is None else exact(allowance.limit)
    yield from (exact(allowance.held), exact(allowance.charged), exact(allowance.left))
    yield from (allowance.waiting, allowance.updated_at, allowance.set_by)


def _sentence(found: Allowance) -> str:
    limit = "no limit" if found.limit is None else f"{exact(found.limit)} {visible(found.unit)}"
    left = "" if found.left is None else f", {exact(found.left)} left"
    spent = f"{exact(found.held)} held and {exact(found.charged)} charged in {visible(found.unit)}"
    return f"{visible(found.tenant_id)}: {limit} ({visible(found.set_by)}); {spent}{left}"
