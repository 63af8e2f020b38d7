"""`providers list|set|pause|resume`: what an account may be asked for, and pauses of its dispatches and of its looks."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.place import database_of
from coatcheck.cli.amounts import NONE, amount_or_none, exact, unit_of
from coatcheck.cli.limits import count_or_none, measure, rate_or_none, seconds_or_none
from coatcheck.cli.opening import database
from coatcheck.cli.options import Actor, AsJson, Reason, actor_of, given
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.cli.visible import visible
from coatcheck.config import Settings, load_settings
from coatcheck.errors import Refused
from coatcheck.seams import Seams
from coatcheck.store import pauses
from coatcheck.store.budgets import KEPT, Budget, change_budget
from coatcheck.store.db import Database, opened
from coatcheck.store.pauses import Pausable, ProviderRow

Name = Annotated[str, Parameter(help="The provider's configured name.")]
What = Annotated[Pausable, Parameter(help="What to pause or resume; outputs are delivered in any case.")]
Estimate = Annotated[
    str | None,
    Parameter(allow_leading_hyphen=True, help=f"What an operation that names no estimate holds; {NONE} for nothing."),
]
Unit = Annotated[str | None, Parameter(help="The unit of the estimate; without it, the one that NAME has.")]
InFlight = Annotated[
    str | None, Parameter(allow_leading_hyphen=True, help=f"Renders at the service at once; {NONE} for no limit.")
]
Dispatches = Annotated[
    str | None, Parameter(allow_leading_hyphen=True, help=f"POSTs a second, such as 0.5; {NONE} for no limit.")
]
Looks = Annotated[str | None, Parameter(allow_leading_hyphen=True, help=f"GETs of jobs a second; {NONE} for no limit.")]
Floor = Annotated[
    str | None,
    Parameter(allow_leading_hyphen=True, help=f"Seconds between two looks at one job at least; {NONE} for none."),
]
Doubts = Annotated[
    str | None,
    Parameter(allow_leading_hyphen=True, help=f"Doubts in a row that pause dispatch; {NONE} to go on whatever comes."),
]
_COLUMNS = ("name", "account", "estimate", "in flight", "dispatches/s", "looks/s", "doubts")


def list_providers(*, as_json: AsJson = False) -> None:
    """List the providers that are known, what their accounts may be asked for, and what of them is paused.

    A reason that begins with `restored` needs a look at the service first.
    """

    async def run() -> list[ProviderRow]:
        async with database() as (found, _):
            return await pauses.listed(found)

    rows = asyncio.run(run())
    if as_json:
        for row in rows:
            write_object(asdict(row))
        return
    from coatcheck.cli.tables import show, show_lines, table  # noqa: PLC0415 - for people only

    show(table(_COLUMNS, map(_cells, rows)))
    if standing := [line for row in rows for line in _standing(row)]:
        show_lines("Held back", standing)


def set_provider(
    name: Name,
    /,
    *,
    estimate: Estimate = None,
    unit: Unit = None,
    max_in_flight: InFlight = None,
    dispatches_per_s: Dispatches = None,
    looks_per_s: Looks = None,
    look_floor_s: Floor = None,
    doubt_limit: Doubts = None,
    reason: Reason,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Set what a dispatch of NAME is expected to cost, and what all workers together may ask of its account; the rest stays."""
    money = _estimate(estimate, unit)
    budget = replace(
        money,
        max_in_flight=KEPT if max_in_flight is None else count_or_none("--max-in-flight", max_in_flight, least=0),
        dispatches_per_s=KEPT if dispatches_per_s is None else rate_or_none("--dispatches-per-s", dispatches_per_s),
        looks_per_s=KEPT if looks_per_s is None else rate_or_none("--looks-per-s", looks_per_s),
        look_floor_s=KEPT if look_floor_s is None else seconds_or_none("--look-floor-s", look_floor_s),
        doubt_limit=KEPT if doubt_limit is None else count_or_none("--doubt-limit", doubt_limit, least=1),
    )
    if not budget.changes:
        raise Refused(
            "providers set: expected something to set, got nothing",
            next="add --estimate, --max-in-flight, --dispatches-per-s, --looks-per-s, --look-floor-s or --doubt-limit",
        )
    why, who = given("--reason", reason), actor_of(actor)
    settings = load_settings()
    with database_of(settings, Seams.real()) as url:
        found = asyncio.run(_changed(url, settings, name, budget))
    told = f"{visible(why)} ({visible(who)})"
    if as_json:
        say(f"set {visible(name)}: {told}")
        write_object(asdict(found))
    else:
        write_line(f"{visible(found.name)} is {_described(found)}: {told}")


def pause(
    name: Name, /, *, what: What = Pausable.DISPATCH, reason: Reason, actor: Actor = None, as_json: AsJson = False
) -> None:
    """Stop the dispatches of NAME's account from the next mark on, or its looks; what is under way ends as it does."""
    why, who = given("--reason", reason), actor_of(actor)

    async def run() -> ProviderRow:
        async with database() as (found, settings):
            await _make_known(found, settings, name)
            return await pauses.pause(found, name, reason=why, actor=who, what=what, faults=Seams.real().faults)

    _tell(asyncio.run(run()), _done("paused", what), f"{visible(why)} ({visible(who)})", as_json=as_json)


def resume(
    name: Name, /, *, what: What = Pausable.DISPATCH, reason: Reason, actor: Actor = None, as_json: AsJson = False
) -> None:
    """Let NAME's account dispatch, or be looked at, again; what waited for it is due at once."""
    why, who = given("--reason", reason), actor_of(actor)

    async def run() -> ProviderRow:
        async with database() as (found, settings):
            await _make_known(found, settings, name)
            return await pauses.resume(found, name, reason=why, actor=who, what=what, faults=Seams.real().faults)

    found = asyncio.run(run())
    if as_json:
        say(f"{_done('resumed', what)} {visible(name)}: {visible(why)} ({visible(who)})")
    _tell(found, _done("resumed", what), f"{visible(why)} ({visible(who)})", as_json=as_json)


def _estimate(estimate: str | None, unit: str | None) -> Budget:
    if estimate is None and unit is not None:
        raise Refused(
            "--estimate: expected an amount, got none",
            next=f"add --estimate 2, or --estimate {NONE}; another unit needs its amount as well",
        )
    return Budget(
        default_estimate=KEPT if estimate is None else amount_or_none("--estimate", estimate),
        unit=None if unit is None else unit_of("--unit", unit),
    )


async def _changed(url: str, settings: Settings, name: str, budget: Budget) -> ProviderRow:
    seams = Seams.real()
    async with opened(url, seams=seams, name="cli") as database:
        await _make_known(database, settings, name)
        await change_budget(url, name, budget, faults=seams.faults)
        return await pauses.known(database, name)


async def _make_known(found: Database, settings: Settings, name: str) -> None:
    """A configured provider can be paused before its first worker runs. What the database knows already is left alone."""
    if name in settings.providers and not await pauses.listed(found, name):
        await pauses.register(found, replace(settings, providers={name: settings.providers[name]}))


def _tell(row: ProviderRow, what: str, reason: str, *, as_json: bool) -> None:
    if as_json:
        write_object(asdict(row))
    else:
        write_line(f"{what} {visible(row.name)}, account {visible(row.account)}: {reason}")


def _done(verb: str, what: Pausable) -> str:
    return verb if what is Pausable.DISPATCH else f"{verb} {what} of"


def _cells(row: ProviderRow) -> tuple[object, ...]:
    figure = exact(row.default_estimate)
    return (
        *(row.name, row.account, None if figure is None else f"{figure} {row.unit}"),
        None if row.max_in_flight is None else f"{row.in_flight_count} of {row.max_in_flight}",
        *(measure(row.dispatches_per_s), measure(row.looks_per_s)),
        row.doubt_count if row.doubt_limit is None else f"{row.doubt_count} of {row.doubt_limit}",
    )


def _standing(row: ProviderRow) -> Iterator[str]:
    """A line for each pause, and for each time that a service asked to be left alone."""
    both = (
        (Pausable.DISPATCH, row.dispatch_paused_at, row.dispatch_pause_reason, row.dispatch_paused_by),
        (Pausable.OBSERVATION, row.observation_paused_at, row.observation_pause_reason, row.observation_paused_by),
    )
    for what, since, reason, by in both:
        if since is not None:
            tried = row.observation_probe_at if what is Pausable.OBSERVATION else None
            ends = "" if tried is None else f", tried with one look at {_at(tried)}"
            yield f"{row.name}: {what} paused since {_at(since)} by {by}{ends}: {reason}"
    for kind, until in (("dispatches", row.dispatch_shut_until), ("looks", row.look_shut_until)):
        if until is not None:
            yield f"{row.name}: no {kind} before {_at(until)}, as the service asked"


def _at(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def _described(row: ProviderRow) -> str:
    """The whole budget in a line, limit or none."""
    figure = exact(row.default_estimate)
    cost = "without an estimate" if figure is None else f"expected to cost {figure} {visible(row.unit)}"
    limits = (
        (row.max_in_flight, "in flight"),
        (row.dispatches_per_s, "dispatches a second"),
        (row.looks_per_s, "looks a second"),
    )
    told = [f"at most {measure(limit)} {what}" for limit, what in limits if limit is not None]
    if row.look_floor_s is not None:
        told.append(f"at least {measure(row.look_floor_s)} s between looks at a job")
    told.append(f"paused after {row.doubt_limit} doubts in a row" if row.doubt_limit else "never paused for doubts")
    return ", ".join([cost, *told])
