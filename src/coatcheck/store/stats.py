"""The measures of the whole system, read in one statement: apart enough that together they tell a backlog's cause. Nothing rests on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from coatcheck.store.db import Database
from coatcheck.store.statements import statement

UNCLAIMED_S = 60.0
"""Who has been due for longer, nobody takes: no worker has the provider, the account or the version."""
SEEN_S = 20.0
"""A worker that reported within this time counts as running: four of its reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Ages in seconds and 0 where there is nothing of that age; durations in milliseconds; counts of lanes, by reason.

    What comes from the workers' own reports (`action_ms`, `stale_count`, `lease_renewal_failures_count`) adds up over all that ever ran.
    """

    queue_age_s: float
    queue_age_by_action_s: Mapping[str, float]
    due: Mapping[str, int]
    unclaimed_count: int
    waiting: Mapping[str, int]
    parked: Mapping[str, int]
    uncertain_count: int
    remote_render_age_s: float
    stale_count: Mapping[str, int]
    action_ms: Mapping[str, Mapping[str, int | float | Decimal]]
    lease_renewal_failures_count: int
    worker_count: int


async def read_stats(database: Database) -> Stats:
    """All of them, as of one instant."""
    rows = await database.fetch(statement("store", "read_stats"), {"unclaimed_s": UNCLAIMED_S, "seen_s": SEEN_S})
    return Stats(**rows[0])
