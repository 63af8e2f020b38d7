"""Many sessions, overlapping batches in every order: no deadlock, and nothing lost (S12).

The actors contradict each other about one POST (throttled, says one, and another names its job), which no service does; such a
dispatch may end displaced, and that is the only finding allowed here.
"""

import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Operation, OperationId, Phase, RemoteJobId, RenderState
from coatcheck.core.steps import Boundary, ConcludeStep, DecideStep, DeliverStep, Incident, MarkStep, SnapshotStep
from coatcheck.queue.leases import Message, Release
from coatcheck.store.budgets import Budget, LookReport, report_looks
from coatcheck.store.door import Save, Status
from coatcheck.store.incidents import Note, note
from coatcheck.store.operations import load
from coatcheck.store.statements import statement
from store.budgeting import budget
from store.ground import ACCOUNT, Ground, look, stored

SESSIONS = 5
ROUNDS = 60
OPERATIONS = 40
FLIGHTS = 15
LOOKS_PER_S = 1_000
"""Budgets of the account: marks, ends, looks and claims all meet at its row."""


class Actor:
    """One session that does whatever may be done, to random operations, as fast as it can."""

    def __init__(self, database: postgres.Database, number: int, operation_ids: Sequence[OperationId]) -> None:
        self.ground = Ground(database, f"worker-{number}")
        self.chance = random.Random(number)
        self.operation_ids = operation_ids
        self.held: list[Message] = []
        self.done: Counter[str] = Counter()

    def event(self, operation: Operation) -> ev.Event:
        """Something that might happen to an operation in this phase; often what brings it on."""
        dispatch_id = operation.dispatch_id or DispatchId(self.ground.seams.ids.uuid7())
        job = operation.remote_job_id or RemoteJobId(f"job-{self.chance.randrange(OPERATIONS)}")
        index = self.chance.randrange(2)
        mark = ev.Mark(dispatch_id=DispatchId(self.ground.seams.ids.uuid7()), account=ACCOUNT)
        accepted = ev.Accepted(dispatch_id=dispatch_id, remote_job_id=job)
        back = (
            ev.Throttled(dispatch_id=dispatch_id, retry_after_s=0),
            ev.NotSent(dispatch_id=dispatch_id, cause="refused"),
        )
        rendering = look(job, RenderState.RENDERING, word=f"{self.chance.random()}")
        known: list[ev.Event] = [rendering, rendering, rendering, look(job, RenderState.SUCCEEDED, outputs=2)]
        likely: dict[Phase, list[ev.Event]] = {
            Phase.PREPARED: [mark],
            Phase.DISPATCHING: [*back, ev.LeaseEnded(), accepted],
            Phase.UNCERTAIN: [*back, accepted],
        }
        if operation.render_state is RenderState.SUCCEEDED:
            known = [stored(index), ev.SourceExpired(index=index, delay_s=0)]
        return self.chance.choice(likely.get(operation.phase, known))

    def save(self) -> None:
        """One batch of one kind, in random order."""
        chosen = self.chance.sample(self.operation_ids, 15)
        operations = self.ground.run(load(self.ground.line, chosen))
        kinds: dict[type, list[Save]] = {}
        for operation in (operations[each] for each in chosen):
            step = advance(operation, self.event(operation), operation.read_at)
            if isinstance(step, MarkStep | ConcludeStep | SnapshotStep | DeliverStep | DecideStep):
                kinds.setdefault(type(step), []).append(self.saved_as(step, operation))
        for saves in kinds.values():
            try:
                written = self.ground.write(saves)
            except psycopg.errors.UniqueViolation as error:
                # a job was named for a throttled dispatch after a later one was not sent: that authorisation is spent, and a mark meets the wall
                if error.diag.constraint_name != "dispatches_authorisation_idx":
                    raise
                continue
            for saved in written:
                self.done[saved.status] += 1

    def saved_as(
        self, step: MarkStep | ConcludeStep | SnapshotStep | DeliverStep | DecideStep, operation: Operation
    ) -> Save:
        number = self.chance.choice([201, 403, 422])
        return self.ground.as_save(step, Exchange(stage=Stage.BODY_RECEIVED, status=number), operation)

    def lease(self) -> None:
        self.held = self.ground.claim(
            self.chance.choice([Action.DISPATCH, Action.OBSERVE, Action.DELIVER]), 20, doubts=20, lease_s=0.01
        )
        self.done["claimed"] += len(self.held)

    def end(self) -> None:
        self.chance.shuffle(self.held)
        self.ground.run(self.ground.leases.renew(self.held))
        self.ground.run(self.ground.leases.release([Release(message=each, delay_s=0) for each in self.held]))

    def person(self) -> None:
        """Pauses and resumes the account, and asks for what waits to be tried."""
        line = self.ground.line
        match self.chance.randrange(3):
            case 0:
                self.ground.run(
                    line.fetch(statement("store", "pause_provider"), {"name": ACCOUNT, "reason": "r", "actor": "p"})
                )
            case 1:
                self.ground.run(line.fetch(statement("queue", "retry_waiting"), {"provider": [ACCOUNT]}))
            case _:
                pass
        self.ground.run(
            line.fetch(statement("store", "resume_provider"), {"name": ACCOUNT, "reason": "r", "actor": "a"})
        )

    def account(self) -> None:
        """Looks are told of their account, and now and then somebody changes what it may be asked for, limit and all."""
        told = [
            LookReport(
                operation_id=each.operation_id,
                account=ACCOUNT,
                leased_at=each.leased_at,
                failure=self.chance.choice([None, "status_500"]),
            )
            for each in self.held
        ]
        self.ground.run(report_looks(self.ground.line, told))
        if self.chance.random() < 0.2:
            limit = self.chance.choice([FLIGHTS, FLIGHTS, OPERATIONS])
            budget(self.ground, Budget(max_in_flight=limit, looks_per_s=LOOKS_PER_S))

    def incident(self) -> None:
        chosen = self.chance.sample(self.operation_ids, 15)
        faults = [
            Incident(kind=kind, boundary=Boundary.THEIRS, detail="d")
            for kind in ("late_remote_job", "dispatch_vanished")
        ]
        self.ground.run(
            note(self.ground.line, [Note(operation_id=each, incident=fault) for each in chosen for fault in faults])
        )

    def act(self) -> Counter[str]:
        """All rounds. A deadlock is what the trial looks for, so it is not caught."""
        with self.ground:
            for _ in range(ROUNDS):
                for action in self.chance.sample(
                    [self.save, self.save, self.lease, self.end, self.person, self.account, self.incident], 7
                ):
                    action()
        return self.done


@pytest.mark.breaks("S2: one")
@pytest.mark.timeout(240)
def test_sessions_that_do_everything_at_once_neither_deadlock_nor_lose_anything(
    database: postgres.Database, ground: Ground
) -> None:
    operation_ids = ground.enqueue_many(OPERATIONS)
    budget(ground, Budget(max_in_flight=FLIGHTS, looks_per_s=LOOKS_PER_S))
    start = Barrier(SESSIONS)

    def play(number: int) -> Counter[str]:
        actor = Actor(database, number, operation_ids)
        start.wait(timeout=30)
        return actor.act()

    with ThreadPoolExecutor(SESSIONS) as pool:
        done = sum(pool.map(play, range(SESSIONS)), Counter[str]())
    assert min(done[each] for each in (Status.APPLIED, Status.STALE, Status.OWNED, Status.CAP, "claimed")) > 0, done
    assert ground.sql("select deadlocks from pg_stat_database where datname = current_database()") == [{"deadlocks": 0}]
