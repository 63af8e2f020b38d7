"""What whoever holds the end of a POST outside the database asks first: whose it is, and whether it was told already.

That it was told is believed only of what a standby must have, too: a row whose commit nobody confirmed may be gone after a promotion, and
what is held outside would be the only other copy.
"""

from dataclasses import dataclass
from uuid import UUID

from coatcheck.core.operation import DispatchId, Operation, OperationId, Outcome, RemoteJobId
from coatcheck.store.db import Database
from coatcheck.store.operations import load
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What the end of a POST has left behind, and the operation as it stood then; None: it is gone.

    `is_marked`: the dispatch has a row. `outcome` None: no end of it is saved. `remote_job_id` is the first id that any reply named,
    `holder_id` the operation that is recorded with the id that was asked about, as its owner's or as an orphan.
    """

    operation: Operation | None
    is_marked: bool
    outcome: Outcome | None
    remote_job_id: RemoteJobId | None
    holder_id: OperationId | None


async def end_of(
    database: Database,
    *,
    operation_id: OperationId,
    dispatch_id: DispatchId,
    account: str,
    remote_job_id: RemoteJobId | None,
) -> End:
    """Look for it, under the lock that saving it would take. Raises what psycopg raises, `Unavailable` and `CommitUnknown`.

    Example: `await end_of(database, operation_id=…, dispatch_id=…, account="genace", remote_job_id=None)`.
    """
    # a session that has not begun with what it was sent holds no lock yet
    await database.outlast()
    while True:
        operation = (await load(database, [operation_id])).get(operation_id)
        parameters = {
            "operation_id": operation_id,
            "revision": operation and operation.revision,
            "dispatch_id": dispatch_id,
            "account": account,
            "remote_job_id": remote_job_id,
        }
        (row,) = await database.fetch(statement("store", "trace_end"), parameters)
        if not row["is_outdated"]:
            return End(
                operation=operation,
                is_marked=row["is_marked"],
                outcome=Outcome(row["outcome"]) if row["outcome"] else None,
                remote_job_id=row["remote_job_id"],
                holder_id=row["holder_id"],
            )


async def installation_of(database: Database) -> UUID:
    """The name of this database, made when it was migrated. Raises what psycopg raises and `Unavailable`."""
    (row,) = await database.fetch(statement("store", "read_installation"))
    named: UUID = row["installation_id"]
    return named
