"""A host with a folder of spools beside a test's database, and the lines that dead workers left there."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import Operation, OperationId, RemoteJobId
from coatcheck.seams import Seams
from coatcheck.spool.folder import Folder
from coatcheck.spool.own import Spool
from coatcheck.spool.record import Record
from coatcheck.store.db import Database
from coatcheck.store.ends import installation_of
from coatcheck.workers.replaying import Replayer
from store.desks import desk_on
from store.ground import Ground

JOB = RemoteJobId("job-1")
REPLY = b'{"job_id":"job-1"}'


class Host:
    """A folder of spools beside a database."""

    def __init__(self, ground: Ground, folder: Path) -> None:
        self.ground = ground
        self.folder = Folder(folder)
        self.installation = ground.run(installation_of(ground.line))

    def left(self, *kept: Record, installation: UUID | None = None, worker: str = "dead-1") -> Path:
        """The file of a worker that died with these lines in it."""
        spool = Spool(self.folder, installation or self.installation, worker)
        for each in kept:
            spool.append(each)
        spool.close()
        (file,) = (path for path in self.folder.all_files() if f".{worker}." in path.name)
        return file

    def replay(self, times: int = 1) -> None:
        """Let a worker of this host replay."""
        asyncio.run(self._replay("alive-1", times))

    def replay_at_once(self, *workers: str) -> None:
        """Let several do it at the same time."""
        asyncio.run(self._all(workers))

    async def _all(self, workers: Sequence[str]) -> None:
        await asyncio.gather(*(self._replay(worker, 1) for worker in workers))

    async def _replay(self, worker: str, times: int) -> None:
        async with self.replayers(worker) as started:
            replayer = started()
            for _ in range(times):
                await replayer.replay()

    @asynccontextmanager
    async def replayers(self, worker: str, seams: Seams | None = None) -> AsyncIterator[Callable[[], Replayer]]:
        """Starts workers, one after another, over one connection."""
        async with desk_on(self.ground.database) as desk, asyncio.timeout(60):
            desk.seams = seams or desk.seams
            line = Database(self.ground.database.url, seams=desk.seams, name="replay")
            yield lambda: Replayer(Spool(self.folder, self.installation, worker), desk, line)
            await line.close()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.path.iterdir())


def kept(marked: Operation, reply: ev.Reply) -> Record:
    """The end of a marked operation's POST."""
    return Record(
        operation_id=marked.operation_id,
        reply=reply,
        exchange=Exchange(
            stage=Stage.BODY_RECEIVED, bytes_sent=9, bytes_received=7, status=201, body=REPLY, complete=True
        ),
        account="genace",
        number=marked.dispatch_count,
        authorisation=marked.authorisation,
        authorised_by=marked.authorised_by,
        settle_s=1,
        begun_ago_s=1,
        held=Decimal(4),
        unit="credits",
        kept_at=datetime.now(UTC),
    )


def accepted(ground: Ground, key: str = "k", job: str = JOB) -> tuple[OperationId, Record]:
    """An operation whose POST was accepted, which nobody but the spool knows."""
    operation_id = ground.enqueue(key)
    dispatch_id = ground.mark(operation_id)
    reply = ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId(job))
    return operation_id, kept(ground.operation(operation_id), reply)


def histories(ground: Ground) -> list[dict[str, Any]]:
    return ground.sql("select operation_id, revision, event from coatcheck.history order by 1, 2")
