"""`providers list|set|pause|resume`: what dispatches are expected to cost, and a pause that stops an account's marks, so no POST follows it."""

import asyncio
from dataclasses import asdict, replace
from typing import Annotated

from cyclopts import Parameter

from coatcheck.cli.amounts import NONE, amount_or_none, exact, unit_of
from coatcheck.cli.opening import database
from coatcheck.cli.options import Actor, AsJson, Reason, actor_of, given
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.cli.visible import visible
from coatcheck.config import Settings
from coatcheck.errors import Refused
from coatcheck.store import pauses
from coatcheck.store.db import Database
from coatcheck.store.pauses import ProviderRow

Name = Annotated[str, Parameter(help="The provider's configured name.")]
_COLUMNS = ("name", "account", "kind", "estimate", "unit", "paused at", "reason", "by")


def list_providers(*, as_json: AsJson = False) -> None:
    """List the providers that a worker or a pause has made known; a reason that begins with `restored` needs a look at the service first."""

    async def run() -> list[ProviderRow]:
        async with database() as (opened, _):
            return await pauses.listed(opened)

    rows = asyncio.run(run())
    if as_json:
        for row in rows:
            write_object(asdict(row))
        return
    from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

    cells = (
        (
            *(row.name, row.account, row.kind, exact(row.default_estimate), row.unit),
            *(row.dispatch_paused_at, row.dispatch_pause_reason, row.dispatch_paused_by),
        )
        for row in rows
    )
    show(table(_COLUMNS, cells))


def set_provider(
    name: Name,
    /,
    *,
    estimate: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True, help=f"What an operation that names no estimate holds; {NONE} for nothing."
        ),
    ] = None,
    unit: Annotated[str | None, Parameter(help="The unit of the estimate; without it, the one that NAME has.")] = None,
    reason: Reason,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Set what a dispatch of NAME is expected to cost where an operation does not say it; what is held already stays."""
    if estimate is None:
        raise Refused(
            "--estimate: expected an amount, got none",
            next=f"add --estimate 2, or --estimate {NONE}; another unit needs its amount as well",
        )
    amount, of = amount_or_none("--estimate", estimate), None if unit is None else unit_of("--unit", unit)
    why, who = given("--reason", reason), actor_of(actor)

    async def run() -> ProviderRow:
        async with database() as (opened, settings):
            await _make_known(opened, settings, name)
            return await pauses.change(opened, name, default_estimate=amount, unit=of)

    found = asyncio.run(run())
    told = f"{visible(why)} ({visible(who)})"
    if as_json:
        say(f"set {visible(name)}: {told}")
        write_object(asdict(found))
    else:
        figure = exact(found.default_estimate) or "no amount"
        write_line(f"{visible(found.name)} is expected to cost {figure} {visible(found.unit)}: {told}")


def pause(name: Name, /, *, reason: Reason, actor: Actor = None, as_json: AsJson = False) -> None:
    """Stop the dispatches of NAME's account from the next mark on; POSTs that are under way end as they do."""
    why, who = given("--reason", reason), actor_of(actor)

    async def run() -> ProviderRow:
        async with database() as (opened, settings):
            await _make_known(opened, settings, name)
            return await pauses.pause(opened, name, reason=why, actor=who)

    _tell(asyncio.run(run()), "paused", f"{visible(why)} ({visible(who)})", as_json=as_json)


def resume(name: Name, /, *, reason: Reason, actor: Actor = None, as_json: AsJson = False) -> None:
    """Let NAME's account dispatch again; what waited for it is due at once."""
    why, who = given("--reason", reason), actor_of(actor)

    async def run() -> ProviderRow:
        async with database() as (opened, settings):
            await _make_known(opened, settings, name)
            return await pauses.resume(opened, name, reason=why, actor=who)

    found = asyncio.run(run())
    if as_json:
        say(f"resumed {visible(name)}: {visible(why)} ({visible(who)})")
    _tell(found, "resumed", f"{visible(why)} ({visible(who)})", as_json=as_json)


async def _make_known(opened: Database, settings: Settings, name: str) -> None:
    """A configured provider can be paused before its first worker runs. What the database knows already is left alone."""
    if name in settings.providers and name not in {row.name for row in await pauses.listed(opened)}:
        await pauses.register(opened, replace(settings, providers={name: settings.providers[name]}))


def _tell(row: ProviderRow, what: str, reason: str, *, as_json: bool) -> None:
    if as_json:
        write_object(asdict(row))
    else:
        write_line(f"{what} {visible(row.name)}, account {visible(row.account)}: {reason}")
