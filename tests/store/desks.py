"""A worker's desk on a test's database, without the worker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import postgres
from coatcheck.queue.leases import Leases
from coatcheck.seams import Seams
from coatcheck.store.committer import Committer, Lane
from coatcheck.store.db import Database
from coatcheck.store.door import ConcludeSave, Door
from coatcheck.store.requests import OperationOf, Reader
from coatcheck.workers.desk import Desk
from coatcheck.workers.lessor import Lessor
from coatcheck.workers.renewal import Renewer
from coatcheck.workers.tally import Tally


@asynccontextmanager
async def desk_on(database: postgres.Database) -> AsyncIterator[Desk]:
    """What a worker's conclusion needs of its desk."""
    seams = Seams.real()
    line = Database(database.url, seams=seams, name="desk")
    money = Committer(
        {ConcludeSave: Lane(write=Door(line, "w").conclude, key=lambda save: save.step.operation_id)}, seams=seams
    )
    reads = Committer(
        {OperationOf: Lane(write=Reader(line).operations, key=lambda read: read.operation_id)}, seams=seams
    )
    leases = Leases(line, "w")
    desk = Desk(
        worker="w",
        seams=seams,
        marks=money,
        money=money,
        looks=reads,
        reads=reads,
        wake=Lessor(leases, line, {}, seams).wake,
        renew=Renewer(leases, seams, Tally()).renew,
    )
    yield desk
    await desk.close()
    await line.close()
