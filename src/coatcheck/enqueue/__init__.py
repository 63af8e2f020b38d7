"""Commit the intent together with the application's own writes, on its own connection, in its own transaction.

The statement is a value. An adapter of a few lines for each kind of borrowed connection runs it, never commits and never tries again: only
the caller knows what else is in the transaction.

Nobody saw whether the caller's commit took place? The same call with the same key, in a new transaction, tells: it waits for a commit that
is still under way, then finds the operation or makes it. `created` False: the transaction took place, and what the caller wrote in it is
there as well. True: it did not, and all of it is to be written again, in this new one. It never makes a second operation.
"""

from coatcheck.enqueue import kinds
from coatcheck.enqueue.answer import Enqueued, read_answer
from coatcheck.enqueue.request import EnqueueRequest, Wishes, prepare
from coatcheck.seams import NO_FAULTS, Faults, Point

__all__ = ["EnqueueRequest", "Enqueued", "Wishes", "enqueue", "enqueue_sync", "prepare"]


async def enqueue(connection: object, request: EnqueueRequest, *, faults: Faults = NO_FAULTS) -> Enqueued:
    """Enqueue in the open transaction of an asynchronous connection; the operation is there when the caller commits.

        async with connection.transaction():
            enqueued = await enqueue(connection, prepare(tenant_id="t1", key="order-7", provider="genace", specification={"prompt": "…"}))

    Takes a psycopg AsyncConnection, an asyncpg Connection, a SQLAlchemy AsyncConnection or AsyncSession. Raises `NoTransaction` before
    anything is written, `KeyReused` and `Refused` with the transaction still usable, `SchemaMismatch`, and the driver's own errors, after
    which the transaction is the caller's to roll back. After a commit that nobody saw, `created` of the same call tells what became of it.
    """
    run = kinds.waiting_adapter(connection)
    faults.reached(Point.E1_BEFORE_BEGIN)
    answer = await run(connection, request.text)
    faults.reached(Point.E3_OUTBOX_INSERTED)
    return read_answer(answer, request)


def enqueue_sync(connection: object, request: EnqueueRequest, *, faults: Faults = NO_FAULTS) -> Enqueued:
    """The same for a psycopg Connection, a SQLAlchemy Connection or Session."""
    run = kinds.blocking_adapter(connection)
    faults.reached(Point.E1_BEFORE_BEGIN)
    answer = run(connection, request.text)
    faults.reached(Point.E3_OUTBOX_INSERTED)
    return read_answer(answer, request)
