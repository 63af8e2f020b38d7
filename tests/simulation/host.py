"""One host: a worker's process and whoever starts it again. The process is composed as production composes it, over simulated connections."""

import asyncio
import contextvars
import random
from collections.abc import Callable

import psycopg

from coatcheck.app.workplace import worker_of
from coatcheck.config import Settings
from coatcheck.errors import CoatcheckError
from coatcheck.seams import Seams
from coatcheck.workers.loop import Worker
from simulation.database import DatabaseServer
from simulation.journal import Journal
from simulation.loop import VirtualLoop, passing
from simulation.process import PROCESS, Process, State, UnforeseenError


class Host:
    """Keeps one worker running until `close`. `seams_for` makes the seams of a process that begins."""

    def __init__(
        self,
        number: int,
        *,
        loop: VirtualLoop,
        settings: Settings,
        database: DatabaseServer,
        chance: random.Random,
        journal: Journal,
        seams_for: Callable[["Host", Process], Seams],
    ) -> None:
        self.number = number
        self.processes: list[Process] = []
        self.worker: Worker | None = None
        self.surprises: list[str] = []
        self._loop = loop
        self._settings = settings
        self._database = database
        self._chance = chance
        self._journal = journal
        self._seams_for = seams_for
        self._closing = False
        self._ended = asyncio.Event()

    async def keep_running(self) -> None:
        """Start it, and again when it ended, until it is not wanted any more."""
        while not self._closing:
            process = Process(f"w{self.number}.{len(self.processes)}")
            self.processes.append(process)
            self._ended.clear()
            process.at_end["host"] = self._ended.set
            context = contextvars.copy_context()
            context.run(PROCESS.set, process)
            self._journal.say(f"starts {process.name}")
            life = self._loop.create_task(self._life(process), context=context)
            life.add_done_callback(self._gone)
            await self._ended.wait()
            self.worker = None
            self._journal.say(f"ended {process.name}")
            if process.state is State.ALIVE:
                # whatever a process leaves open its kernel closes
                process.kill()
            if not self._closing:
                await passing(self._chance.choice((0.05, 0.5, 3.0)))

    async def _life(self, process: Process) -> None:
        seams = self._seams_for(self, process)
        opening = self._database.opened
        async with worker_of(self._settings, "memory", seams=seams, opening=opening) as (worker, _):
            self.worker = worker
            if self._closing:
                worker.drain()
            await worker.run()

    def _gone(self, life: "asyncio.Task[None]") -> None:
        error = None if life.cancelled() else life.exception()
        if error is not None and not isinstance(error, CoatcheckError | psycopg.Error | OSError | UnforeseenError):
            self.surprises.append(f"the process ended by {error!r}")
        self._ended.set()

    @property
    def process(self) -> Process | None:
        """The one that lives."""
        newest = self.processes[-1] if self.processes else None
        return newest if newest is not None and newest.state in (State.ALIVE, State.STOPPED) else None

    def drain(self) -> None:
        """SIGTERM."""
        if self.worker is not None:
            self.worker.drain()

    def halt(self) -> None:
        """SIGINT, twice."""
        if self.worker is not None:
            self.worker.stop()

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()

    def stop(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        process = self.process
        if process is not None and process.state is State.ALIVE:
            process.state = State.STOPPED
            self._loop.call_later(seconds, self._loop.go_on, process, context=contextvars.Context())

    async def close(self) -> None:
        """End it in order, and for good."""
        self._closing = True
        if self.process is None:
            return
        self._loop.go_on(self.process)
        self.drain()
        await self._ended.wait()
