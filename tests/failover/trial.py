"""One trial: applications enqueue and whole workers send, the primary dies under them, the standby is promoted, and work goes on.

Nothing is asked of the applications but to ask again for what they do not know, and nothing of the workers but to run, or to be started.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import postgres
from coatcheck.seams import NO_FAULTS, Seams
from coatcheck.sim import ThreadedService
from coatcheck.store import pauses
from coatcheck.store.db import opened
from failover.clients import Clients
from failover.pair import Cold, Pair, paired
from faults.child import Child
from faults.stage import LEASES_OVER_S, Stage
from waiting import until

JOB = {"queued_s": 0, "processing_s": 0.1, "create": {"kind": "stall", "seconds": 0.2}}
"""So that there is always a dispatch whose reply has yet to come."""
WORKERS = 2
SENT = """
select count(*) from coatcheck.operations where phase not in ('prepared', 'dispatching') and created_at > coalesce(%s, '-infinity'::timestamptz)"""
AT_WORK = """
select from coatcheck.outbox where parked_at is null and visible_at < coatcheck.due_now() and wait_reason is distinct from 'pause'"""
LEFT = "select from coatcheck.outbox where parked_at is null and wait_reason is distinct from 'pause'"
LEFT_WHILE_PAUSED = "select from coatcheck.outbox where parked_at is null and wait_reason is distinct from 'pause' and action <> 'dispatch'"
PAUSED = "select from coatcheck.providers where name = 'genace' and dispatch_paused_at is not null"
WAITING = "select from coatcheck.outbox where wait_reason = 'pause'"


class Trial:
    """What is tried and who looks on."""

    def __init__(self, pair: Pair, stage: Stage, clients: Clients) -> None:
        self.pair = pair
        self.stage = stage
        self.clients = clients
        self._workers: list[Child] = []
        self._changes: dict[str, str] = {}

    def work(self, **changes: str) -> None:
        """Start workers, with these settings for all that will be started."""
        self._changes = {"COATCHECK_CONCURRENCY__DISPATCH": "8", **changes}
        self._workers = [self.stage.worker(until_idle=False, **self._changes) for _ in range(WORKERS)]
        for worker in self._workers:
            worker.says("ready ")

    def under_load(self, sent: int, *, since: datetime | None = None) -> None:
        """Until so many more operations were sent that came in `since` then, while others come in."""
        before = self.sent(since)
        until(lambda: self.sent(since) >= before + sent, deadline_s=60)

    def sent(self, since: datetime | None) -> int:
        return int(self.stage.one(SENT, since)["count"])

    def primary_dies(self, *, with_workers: bool = False) -> None:
        """The machine is gone, perhaps with the workers that ran on it; then the standby takes over, and all eyes turn to it."""
        self.pair.primary_dies()
        if with_workers:
            for worker in self._workers:
                worker.kill()
        self.pair.standby_is_promoted()
        self.stage.database.url = self.pair.standby.url()
        self.stage.reconnect()
        if with_workers:
            self.stage.url = self.pair.standby.url()
            self.work(**self._changes)

    def dispatches(self, since: datetime) -> int:
        """How many dispatches were begun since then."""
        return int(self.stage.one("select count(*) from coatcheck.dispatches where begun_at > %s", since)["count"])

    def now(self) -> datetime:
        """By the clock of whichever server takes writes."""
        found: datetime = self.stage.one("select clock_timestamp() as now")["now"]
        return found

    def waits_for_a_person(self) -> None:
        """Until the promotion was noticed, dispatch is paused, and something waits for that reason."""
        until(lambda: self.stage.rows(PAUSED))
        until(lambda: self.stage.rows(WAITING))

    def is_resumed(self) -> None:
        """A person looked, and says so."""
        asyncio.run(self._resume())

    async def _resume(self) -> None:
        async with opened(self.stage.database.url, seams=Seams.real(), name="person") as database:
            await pauses.resume(database, "genace", reason="the standby was synchronous", actor="ada", faults=NO_FAULTS)

    def rest_while_paused(self) -> None:
        """Applications end and ask nothing again; workers do what a pause does not keep from them."""
        self.clients.end()
        until(lambda: not self.stage.rows(LEFT_WHILE_PAUSED), deadline_s=60)

    def come_to_rest(self) -> None:
        """Applications end and ask again; workers end what is to be done, and then in order."""
        self.clients.end()
        self.clients.ask_again(self.stage.database.url)
        until(lambda: not self.stage.rows(AT_WORK), deadline_s=60)
        self.stage.database.move_time(LEASES_OVER_S)
        until(lambda: not self.stage.rows(LEFT), deadline_s=60)
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            assert worker.ended() == 0, worker.talk

    def lost_enqueues(self) -> set[str]:
        """The keys of operations that were acknowledged and are not there."""
        kept = {
            (row["operation_key"], row["operation_id"])
            for row in self.stage.rows("select operation_key, operation_id from coatcheck.operations")
        }
        return {key for key, told in self.clients.acknowledged.items() if (key, UUID(str(told))) not in kept}

    def posts(self) -> int:
        return len(self.stage.sim.posts)


@contextmanager
def trial_of(
    cold: Cold, sim: ThreadedService, folder: Path, *, synchronous: bool, job: Mapping[str, Any] = JOB
) -> Iterator[Trial]:
    """Two machines, and applications that enqueue from now on what makes such jobs."""
    with paired(cold, folder, synchronous=synchronous) as pair:
        database = postgres.Database(name="own", url=pair.primary.url(), server=pair.primary)
        with Stage(database, sim, folder) as stage, Clients(pair.url, job) as clients:
            stage.url = pair.url
            yield Trial(pair, stage, clients)
