"""The measures of the whole system, read in one statement: apart enough that together they tell a backlog's cause. Nothing rests on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from coatcheck.store.db import Database, Plan
from coatcheck.store.statements import statement

UNCLAIMED_S = 60.0
"""Who has been due for longer, nobody takes: no worker has the provider, the account or the version, and no account keeps it back."""
SEEN_S = 20.0
"""A worker that reported within this time counts as running: four of its reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStats:
    """An account as its budget and its pauses leave it; None is no limit, no pause, or nothing that is waited for.

    `dispatch_wait` and `look_wait`: why nobody takes what is due of it: `pause`, `shut` (the service asked for patience), `cap` (as many in
    flight as it may have), `rate`. `look_age_s`: how long its oldest look has been due. `observation_probe_at`: when a pause that began by
    itself is tried with one look.
    """

    account: str
    providers: Sequence[str]
    max_in_flight: int | None
    in_flight_count: int | None
    uncertain_count: int
    dispatches_per_s: float | None
    dispatch_shut_until: datetime | None
    dispatch_paused_at: datetime | None
    dispatch_pause_reason: str | None
    dispatch_paused_by: str | None
    doubt_limit: int | None
    doubt_count: int
    looks_per_s: float | None
    look_floor_s: float | None
    look_shut_until: datetime | None
    observation_paused_at: datetime | None
    observation_pause_reason: str | None
    observation_paused_by: str | None
    observation_probe_at: datetime | None
    failed_look_count: int
    due_dispatch_count: int
    dispatch_wait: str | None
    due_look_count: int
    look_wait: str | None
    look_age_s: float

    @property
    def is_limited(self) -> bool:
        """Whether it has a budget, or is shut or paused."""
        limits = (self.max_in_flight, self.dispatches_per_s, self.looks_per_s, self.look_floor_s)
        stops = (self.dispatch_shut_until, self.look_shut_until, self.dispatch_paused_at, self.observation_paused_at)
        return any(each is not None for each in (*limits, *stops))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Ages in seconds and 0 where there is nothing of that age; durations in milliseconds; counts of lanes, by reason; amounts by unit.

    `held` is what unfinished operations hold and nobody charged yet; `uncertain_held` is the part of it whose end a person has to find out.
    `unclaimed_count` is what no worker takes, of the `unclaimed_providers`; `account_waits` what is due and waits for its account, by reason: neither counts the other's.
    What comes from the workers' own reports (`action_ms`, `stale_count`, `lease_renewal_failures_count`) adds up over all that ever ran.
    """

    queue_age_s: float
    queue_age_by_action_s: Mapping[str, float]
    due: Mapping[str, int]
    unclaimed_count: int
    unclaimed_providers: Sequence[str]
    waiting: Mapping[str, int]
    account_waits: Mapping[str, int]
    parked: Mapping[str, int]
    uncertain_count: int
    uncertain_age_s: float
    uncertain_held: Mapping[str, Decimal]
    held: Mapping[str, Decimal]
    orphan_count: int
    remote_render_age_s: float
    stale_count: Mapping[str, int]
    action_ms: Mapping[str, Mapping[str, int | float | Decimal]]
    lease_renewal_failures_count: int
    worker_count: int
    accounts: Sequence[AccountStats]


async def read_stats(database: Database) -> Stats:
    """All of them, as of one instant, also where a pooler keeps nothing prepared."""
    parameters = {"unclaimed_s": UNCLAIMED_S, "seen_s": SEEN_S}
    rows = await database.fetch(statement("store", "read_stats"), parameters, plan=Plan.FRESH)
    row = dict(rows[0])
    # amounts come as text: through JSON's numbers they would be doubles
    row |= {name: {unit: Decimal(held) for unit, held in row[name].items()} for name in ("held", "uncertain_held")}
    row["accounts"] = [_account(each) for each in row["accounts"]]
    return Stats(**row)


def _account(row: Mapping[str, Any]) -> AccountStats:
    """In JSON instants are text, in the session's own zone."""
    instants = {
        name: datetime.fromisoformat(value).astimezone(UTC)
        for name, value in row.items()
        if name.endswith(("_at", "_until")) and value is not None
    }
    return AccountStats(**{**row, **instants})
