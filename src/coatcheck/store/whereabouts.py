"""Which server and history the database was last dispatched from. A copy of it that was restored or promoted may not know the last POSTs.

Every mark compares for itself and is refused elsewhere, so nothing slips through before this was run; this only says so, pauses every
account until a person resumes it, and takes the new place for the place.
"""

from dataclasses import dataclass

from coatcheck.store.db import Database
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What changed. `is_safe`: a promotion that the settings call safe, for which nothing was paused."""

    told: str
    is_safe: bool
    paused_count: int


async def check(database: Database, *, worker: str, promotion_is_safe: bool) -> Moved | None:
    """Compare, and pause where it is another place; None where it is the same, or another worker was first. Raises what the database raises.

    Example: `await check(database, worker="host-3f2a", promotion_is_safe=False)`.
    """
    parameters = {"worker": worker, "promotion_is_safe": promotion_is_safe}
    rows = await database.fetch(statement("store", "check_installation"), parameters)
    return Moved(**rows[0]) if rows else None
