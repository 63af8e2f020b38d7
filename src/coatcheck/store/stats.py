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
    """Ages in seconds and 0 where there is nothing of that age; durations in milliseconds; counts of lanes, by reason; amounts by unit.

    `held` is what unfinished operations hold and nobody charged yet; `uncertain_held` is the part of it whose end a person has to find out.
    What comes from the workers' own reports (`action_ms`, `stale_count`, `lease_renewal_failures_count`) adds up over all that ever ran.
    """

    queue_age_s: float
    queue_age_by_action_s: Mapping[str, float]
    due: Mapping[str, int]
    unclaimed_count: int
    waiting: Mapping[str, int]
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


async def read_stats(database: Database) -> Stats:
    """All of them, as of one instant."""
    rows = await database.fetch(statement("store", "read_stats"), {"unclaimed_s": UNCLAIMED_S, "seen_s": SEEN_S})
    row = dict(rows[0])
    # amounts come as text: through JSON's numbers they would be doubles
    row |= {name: {unit: Decimal(held) for unit, held in row[name].items()} for name in ("held", "uncertain_held")}
    return Stats(**row)
