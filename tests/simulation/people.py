"""Who uses coatcheck in a run: an application that enqueues and sometimes asks again, and a person who cancels, decides and resumes.

The person decides by the truth, which the service's ledger tells at that instant. That a proof of absence stays true is what waiting for
quiescence is for; whether it did, the checker sees.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from coatcheck.app.operating.operator import Operator
from coatcheck.core.fingerprint import fingerprint
from coatcheck.core.identity import operation_text
from coatcheck.errors import CoatcheckError
from coatcheck.seams import NO_FAULTS
from coatcheck.sim import SimulatedService
from coatcheck.store.db import Database
from coatcheck.store.pauses import Pausable, resume
from memory.store import Memory
from simulation.journal import Journal
from simulation.loop import VirtualLoop, passing
from simulation.service import course_of
from simulation.troubles import Mix, Trouble

Row = dict[str, Any]
TENANTS = ("ada", "bob", "eve")
_PATIENCE = 3
"""How often a person takes up one message: an output that was declared wrongly stays wrong."""


@dataclass(slots=True, kw_only=True)
class Application:
    """Enqueues `count` operations in the first seconds of a run."""

    memory: Memory
    loop: VirtualLoop
    mix: Mix
    chance: random.Random
    journal: Journal
    count: int
    within_s: float

    async def work(self) -> None:
        """All of it."""
        for number in range(self.count):
            await passing(self.chance.uniform(0, 2 * self.within_s / self.count))
            request = self._request(number)
            first = self.memory.enqueue(request)
            self.journal.say(f"enqueued {first['operation_id']} {first['result']}")
            assert first["result"] == "created", first
            if self.chance.random() < self.mix.rate(Trouble.ASKED_AGAIN):
                await passing(self.chance.uniform(0, 5))
                self._ask_again(request, first)

    def _request(self, number: int) -> Row:
        specification = {"prompt": f"bird {number}", "sim": course_of(self.mix, self.chance, self.journal)}
        now = self.memory.tables.now()
        later = {} if self.chance.random() < 0.9 else {"not_before_at": _told(now, self.chance.uniform(0, 8))}
        by = {} if self.chance.random() < 0.95 else {"dispatch_by_at": _told(now, self.chance.uniform(5, 30))}
        return {
            "v": 1,
            "tenant_id": self.chance.choice(TENANTS),
            "operation_key": f"key {number}",
            "provider": "genace",
            "specification_text": fingerprint(specification).text,
            "estimate": 5,
            "priority": self.chance.choice((0, 0, 0, 5)),
            **later,
            **by,
        }

    def _ask_again(self, request: Row, first: Row) -> None:
        other = self.chance.random() < 0.3
        text = fingerprint({"prompt": "another bird"}).text if other else request["specification_text"]
        answer = self.memory.enqueue({**request, "specification_text": text})
        self.journal.strike(Trouble.ASKED_AGAIN, f"{answer['result']}")
        assert answer["result"] == ("key_reused" if other else "existing"), answer
        assert other or answer["operation_id"] == first["operation_id"]


def _told(now: Any, seconds: float) -> str:
    return str((now + timedelta(seconds=seconds)).isoformat())


@dataclass(slots=True, kw_only=True)
class Person:
    """Looks at what waits for a decision, one thing at a time, and decides through the real commands."""

    memory: Memory
    service: SimulatedService
    operator: Operator
    database: Database
    mix: Mix
    chance: random.Random
    journal: Journal
    _tries: Counter[tuple[UUID, int]] = field(default_factory=Counter)

    async def cancel_something(self) -> None:
        """Any operation, whatever its phase."""
        rows = list(self.memory.tables.operations)
        if rows:
            name = operation_text(self.chance.choice(rows)["operation_id"])
            self.journal.strike(Trouble.CANCELLED, name)
            await self._tried(f"cancel {name}", self.operator.cancel(name, reason="not wanted"))

    async def decide_something(self) -> bool:
        """One thing that waits for a person, if any does. False: nothing does."""
        wishes = [*self._doubts(), *self._parked()]
        if not wishes:
            return False
        what, wish = self.chance.choice(wishes)
        self.journal.strike(Trouble.DECIDED, what)
        await self._tried(what, wish())
        return True

    def begin_anew(self) -> None:
        """Whatever was taken up in vain may be taken up again."""
        self._tries.clear()

    async def resume_account(self) -> None:
        """Whatever may be paused goes on."""
        for what in Pausable:
            await self._resume(what)

    async def resume_paused(self) -> None:
        """Whatever is paused goes on. Nothing is asked for where nothing is: a person who waits looks at a list, and most runs wait long."""
        tables = self.memory.tables
        if any(row["dispatch_paused_at"] is not None for row in tables.providers):
            await self._resume(Pausable.DISPATCH)
        if any(row["observation_paused_at"] is not None for row in tables.accounts):
            await self._resume(Pausable.OBSERVATION)

    async def _resume(self, what: Pausable) -> None:
        await self._tried(
            f"resume {what}", resume(self.database, "genace", reason="mended", actor="ada", what=what, faults=NO_FAULTS)
        )

    async def _tried(self, what: str, wish: Awaitable[object]) -> None:
        try:
            await wish
        except (CoatcheckError, psycopg.Error) as error:
            self.journal.say(f"{what}: {type(error).__name__} {getattr(error, 'sqlstate', '')}")
        else:
            self.journal.say(f"{what}: done")

    def _doubts(self) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
        return [self._resolution(row) for row in self.memory.tables.operations if row["phase"] == "uncertain"]

    def _resolution(self, row: Row) -> tuple[str, Callable[[], Awaitable[object]]]:
        """By the truth: the job that its last POST created, if there is one, is adopted."""
        operator, name = self.operator, operation_text(row["operation_id"])
        known = {job["remote_job_id"] for job in self.memory.tables.remote_jobs}
        digest = bytes(row["specification_hash"]).hex()
        created = [post.created for post in self.service.ledger.posts if post.body_sha256 == digest and post.created]
        unknown = [job for job in created if job not in known]
        luck = self.chance.random()
        if unknown and luck < 0.6:
            job = unknown[-1]
            return f"adopt {name} {job}", lambda: operator.adopt(name, job, reason="seen in the list", force=True)
        if luck < 0.7 and not unknown:
            return f"prove absent {name}", lambda: operator.prove_absent(name, reason="not in the list")
        if luck < 0.9:
            return f"redispatch {name}", lambda: operator.redispatch(name, reason="needed now")
        released = not unknown
        return f"write off {name}", lambda: operator.write_off(name, reason="not needed", released=released)

    def _parked(self) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
        operator, wishes = self.operator, list[tuple[str, Callable[[], Awaitable[object]]]]()
        phases = {row["operation_id"]: row["phase"] for row in self.memory.tables.operations}
        for row in self.memory.tables.outbox:
            is_doubt = phases[row["operation_id"]] == "uncertain"
            if row["parked_at"] is None or is_doubt or self._tries[_slot(row)] >= _PATIENCE:
                continue
            wishes.append(self._taken_up(operator, row))
        return wishes

    def _taken_up(self, operator: Operator, row: Row) -> tuple[str, Callable[[], Awaitable[object]]]:
        name: str = operation_text(row["operation_id"])
        lane: int = row["lane"]
        tries, slot = self._tries, _slot(row)
        if lane == 0 and self.chance.random() < 0.5:
            return f"reobserve {name}", lambda: operator.reobserve(name, reason="look again")
        if lane > 0 and self.chance.random() < 0.5:
            tries.update([slot])
            return f"redeliver {name}", lambda: operator.redeliver(name, reason="try again", output=lane - 1)
        tries.update([slot])
        return f"resume {name}.{lane}", lambda: operator.resume(f"{name}.{lane}", reason="mended")


def _slot(row: Row) -> tuple[UUID, int]:
    return row["operation_id"], row["lane"]
