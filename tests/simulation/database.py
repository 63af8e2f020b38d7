"""A worker's connections to the store in memory, and all that can befall a statement on its way there and back.

A statement takes effect as a whole and at one instant; what is uncertain is whether its sender hears of it. A statement that was sent may be
carried out after its connection broke, and after its sender died: sessions do not end with their clients.
"""

import asyncio
import contextvars
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.store.db import Database, Plan, Row
from memory.line import MemoryDatabase
from memory.store import Memory, named
from simulation.journal import Journal
from simulation.loop import VirtualLoop, passing
from simulation.process import current
from simulation.troubles import Mix, Trouble

_LATE_S = 1.5
"""Within the two seconds for which production outlasts a session."""
_SLOW_S = (0.2, 1.0, 4.0, 12.0)
_HEARD_LATER = 0.3
"""The share of answers that take a while, so that its sender may be killed between the effect and the answer."""
_ON_THE_WAY = (
    Trouble.DATABASE_SLOW,
    Trouble.DATABASE_LOST_BEFORE,
    Trouble.DATABASE_AGAIN,
    Trouble.DATABASE_SHUT,
)
_AGAIN: Sequence[type[psycopg.Error]] = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)
_SHUT: Sequence[type[psycopg.Error]] = (psycopg.errors.AdminShutdown, psycopg.errors.CrashShutdown)


class DatabaseServer:
    """The store and how it is reached. `on_effect` hears of every statement that took effect."""

    def __init__(self, memory: Memory, loop: VirtualLoop, mix: Mix, chance: random.Random, journal: Journal) -> None:
        self.memory = memory
        self.away_until = 0.0
        self.on_effect: Callable[[str], None] = lambda _: None
        self._loop = loop
        self._mix = mix
        self._chance = chance
        self._journal = journal

    @asynccontextmanager
    async def opened(self, *_: Any, name: str, **__: Any) -> AsyncIterator[Database]:
        """As `store.db.opened`."""
        yield SimDatabase(self, name)

    def strikes(self, trouble: Trouble) -> bool:
        """Whether this one meets it."""
        return self._chance.random() < self._mix.rate(trouble)

    @property
    def is_away(self) -> bool:
        """Whether it cannot be reached now."""
        return self.away_until > self._loop.time() and not self._mix.is_healed

    def orphaned(self, text: str, parameters: Mapping[str, Any]) -> None:
        """The sender was killed; half of such statements are carried out all the same."""
        if not self.is_away and self._chance.random() < 0.5:
            self.carry_out_late(text, parameters)

    async def before(self, name: str) -> None:
        """On its way there."""
        if self.is_away:
            await passing(self._chance.choice((0.005, 0.3, 2.0)))
            self._journal.strike(Trouble.DATABASE_AWAY, name)
            raise Unavailable("the database is away")
        trouble = self._mix.drawn(self._chance.random(), _ON_THE_WAY)
        await passing(
            self._chance.choice(_SLOW_S) if trouble is Trouble.DATABASE_SLOW else self._chance.uniform(0.0002, 0.004)
        )
        if trouble is not None:
            self._journal.strike(trouble, name)
        match trouble:
            case Trouble.DATABASE_LOST_BEFORE:
                raise psycopg.OperationalError("lost")
            case Trouble.DATABASE_AGAIN:
                raise self._chance.choice(_AGAIN)("struck")
            case Trouble.DATABASE_SHUT:
                raise self._chance.choice(_SHUT)("struck")
            case _:
                pass

    async def after(self, name: str) -> None:
        """It took effect; on its way back."""
        self._journal.say(f"sql {name}")
        self.on_effect(name)
        if self.strikes(Trouble.DATABASE_LOST_AFTER):
            self._journal.strike(Trouble.DATABASE_LOST_AFTER, name)
            raise psycopg.OperationalError("lost")
        if self._chance.random() < _HEARD_LATER:
            await passing(self._chance.uniform(0.0002, 0.01))

    def carry_out_late(self, text: str, parameters: Mapping[str, Any], done: Callable[[], None] = lambda: None) -> None:
        """The session goes on without its client."""

        def carry_out() -> None:
            name = named(text)
            try:
                self.memory.run(text, parameters)
            except psycopg.Error as error:
                self._journal.say(f"sql {name} late: {type(error).__name__}")
            else:
                self._journal.strike(Trouble.DATABASE_LATE, name)
                self.on_effect(name)
            done()

        delay_s = self._chance.uniform(0.001, _LATE_S)
        self._loop.call_later(delay_s, carry_out, context=contextvars.Context())


class SimDatabase(MemoryDatabase):
    """One connection."""

    def __init__(self, server: DatabaseServer, name: str) -> None:
        super().__init__(server.memory, before=server.before, after=self._took_effect)
        self._server = server
        self._name = name
        self._one = asyncio.Lock()
        self._late = 0

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Plan = Plan.AUTO
    ) -> Sequence[Row]:
        async with self._one:
            if self._server.strikes(Trouble.DATABASE_LATE) and not self._server.is_away:
                self._late += 1
                self._server.carry_out_late(text, parameters or {}, self._ended)
                raise CommitUnknown("the connection to PostgreSQL broke during a statement")
            process = current()
            if process is not None:
                # should its process be killed now, the statement is in the server's hands
                process.at_end[self] = lambda: self._server.orphaned(text, parameters or {})
            try:
                return await super().fetch(text, parameters, plan=plan)
            finally:
                if process is not None:
                    process.at_end.pop(self, None)

    async def _took_effect(self, name: str) -> None:
        process = current()
        if process is not None:
            process.at_end.pop(self, None)
        await self._server.after(name)

    def _ended(self) -> None:
        self._late -= 1

    async def outlast(self) -> None:
        """Until what was sent over a broken connection is carried out."""
        while self._late:
            await passing(0.05)
