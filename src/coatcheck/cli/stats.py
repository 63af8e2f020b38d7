"""`stats`: four ages, the counts beside them, and what each account may be asked for, which together tell why a backlog is one."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from coatcheck.cli.limits import measure
from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import write_object
from coatcheck.store.stats import AccountStats, Stats, read_stats

COLUMNS = ("measure", "of", "reading")


def stats(*, as_json: AsJson = False) -> None:
    """Show queue age, action times, render age, lost renewals, stale writes, what waits, doubts, money held and accounts."""

    async def run() -> Stats:
        async with database() as (opened, _):
            return await read_stats(opened)

    found = asyncio.run(run())
    if as_json:
        write_object(asdict(found))
        return
    from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

    show(table(COLUMNS, rows(found)))


def rows(found: Stats) -> Iterator[tuple[str, str, object]]:
    """The measures as a table's rows, those that have parts with a row for each; an account has one if it has a budget or is stopped."""
    measures = asdict(found)
    del measures["accounts"]
    for measured, value in measures.items():
        if not isinstance(value, Mapping):
            yield measured, "", _reading(value)
        for part, reading in value.items() if isinstance(value, Mapping) else ():
            yield measured, str(part), _reading(reading)
    for account in found.accounts:
        if account.is_limited:
            yield "account", account.account, "; ".join(_budget(account))


def _budget(account: AccountStats) -> Iterator[str]:
    """What of it is used, what waits for it, and since when it is stopped."""
    if account.max_in_flight is not None:
        yield f"{account.in_flight_count} of {account.max_in_flight} in flight, {account.uncertain_count} in doubt"
    limits = ((account.dispatches_per_s, "dispatches/s"), (account.looks_per_s, "looks/s"))
    yield from (f"{measure(limit)} {what}" for limit, what in limits if limit is not None)
    if account.look_floor_s is not None:
        yield f"{measure(account.look_floor_s)} s between looks"
    if account.dispatch_wait is not None:
        yield f"{account.due_dispatch_count} dispatches wait: {account.dispatch_wait}"
    if account.look_wait is not None:
        yield f"{account.due_look_count} looks wait: {account.look_wait}, the oldest for {account.look_age_s:.0f} s"
    shuts = ((account.dispatch_shut_until, "dispatch"), (account.look_shut_until, "observation"))
    yield from (f"{what} shut by the service until {until:%H:%M:%S}Z" for until, what in shuts if until is not None)
    if account.dispatch_paused_at is not None:
        yield f"dispatch paused since {account.dispatch_paused_at:%Y-%m-%d %H:%M:%S}Z: {account.dispatch_pause_reason}"
    if account.observation_paused_at is not None:
        yield f"observation paused since {account.observation_paused_at:%Y-%m-%d %H:%M:%S}Z: {account.observation_pause_reason}"
    if account.observation_probe_at is not None:
        yield f"tried again at {account.observation_probe_at:%H:%M:%S}Z"
    rows = ((account.doubt_count, "doubts"), (account.failed_look_count, "failed looks"))
    yield from (f"{count} {what} in a row" for count, what in rows if count)


def _reading(value: object) -> object:
    match value:
        case Mapping():
            return ", ".join(f"{name} {_reading(each)}" for name, each in value.items())
        case list():
            return ", ".join(map(str, value))
        case float():
            return f"{value:.1f}"
        case _:
            return value
