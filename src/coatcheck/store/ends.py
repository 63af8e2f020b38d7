"""What whoever holds the end of a POST outside the database asks first: whose it is, and whether it was told already."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.core.operation import DispatchId, Outcome, RemoteJobId
from coatcheck.store.db import Database
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A dispatch whose POST is known to have ended. `remote_job_id` is the first id that any reply named."""

    outcome: Outcome
    remote_job_id: RemoteJobId | None


async def ends_of(database: Database, dispatch_ids: Sequence[DispatchId]) -> dict[DispatchId, End]:
    """The ends that are saved, by dispatch; one that is missing is open, or its row is gone."""
    rows = await database.fetch(statement("store", "load_ends"), {"dispatch_id": list(dispatch_ids)})
    return {
        row["dispatch_id"]: End(outcome=Outcome(row["outcome"]), remote_job_id=row["remote_job_id"]) for row in rows
    }


async def installation_of(database: Database) -> UUID:
    """The name of this database, made when it was migrated. Raises what psycopg raises and `Unavailable`."""
    (row,) = await database.fetch(statement("store", "read_installation"))
    named: UUID = row["installation_id"]
    return named
