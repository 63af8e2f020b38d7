"""A random course of things that workers, people and time do, on both stores at once, each step drawn by the seed.

What is read is decided upon by the real table in `core.machine`, often from a reading that is old by then; what is saved goes through the
real `Door`, `Leases`, `Traces` and their like. A difference raises `Diverged`; `told` are the steps that led to it.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from coatcheck.core import events as ev
from coatcheck.core.actions import Action, ParkReason, WaitReason
from coatcheck.core.machine import advance
from coatcheck.core.operation import Operation, OperationId, Phase
from coatcheck.core.steps import ConcludeStep, DecideStep, DeliverStep, MarkStep, SnapshotStep, Step
from coatcheck.queue.leases import Acknowledge, Leases, Message, Release, SetAside, Wanted
from coatcheck.queue.turns import Turns
from coatcheck.store.door import ConcludeSave, DecideSave, DeliverSave, Door, MarkSave, Save, SnapshotSave
from coatcheck.store.operations import load
from coatcheck.store.resolution import Traces
from coatcheck.store.subjects import load_subjects
from contract_store import asides
from contract_store.chances import ACCOUNTS, TENANTS, Chances
from contract_store.happenings import event, marking
from contract_store.twin import Twin

WORKERS = ("w1", "w2")
_LAST = 12


class Hand:
    """One worker: its door, its leases, and the messages that it was given, whoever has them now."""

    def __init__(self, line: Twin, name: str) -> None:
        self.name = name
        self.door = Door(line, name)
        self.leases = Leases(line, name)
        self.traces = Traces(line, name)
        self.turns = Turns()
        self.messages: list[Message] = []


class Course:
    """One seed's course: `Course(twin, seed).go(40)`."""

    def __init__(self, twin: Twin, seed: int) -> None:
        twin.begin()
        self.twin = twin
        self.chances = Chances(seed, twin.memory.tables)
        self.hands = [Hand(twin, name) for name in WORKERS]
        self.readings: dict[OperationId, Operation] = {}
        self.saved: list[Save] = []
        self.told: list[str] = []

    async def go(self, steps: int) -> None:
        """Take so many steps. Raises `Diverged` with the last of them."""
        await asides.register(self.twin, ACCOUNTS)
        if self.chances.one_in(2):
            for tenant_id in TENANTS:
                await asides.limit(self.twin, tenant_id)
        for _ in range(3):
            await self._enqueues()
        for _ in range(steps):
            step = self.chances.pick(_STEPS)
            self.told.append(step.__name__.strip("_"))
            try:
                await step(self)
            except psycopg.IntegrityError as error:
                # what a constraint refuses, both refused, and nothing of it is left in either
                self.told.append(type(error).__name__)
        self.twin.compare("all")

    def last(self) -> str:
        """The steps that led here."""
        return " → ".join(self.told[-_LAST:])

    async def _enqueues(self) -> None:
        for _ in range(self.chances.random.randint(1, 5)):
            self.twin.enqueue(self.chances.request())

    async def _waits(self) -> None:
        self.twin.move(self.chances.seconds(0.1, 1, 5, 40, 40, 100, 1000))

    # -- leases --------------------------------------------------------------------------------------------------------

    async def _claims(self) -> None:
        hand, chances = self.chances.pick(self.hands), self.chances
        wanted = [self._wanted() for _ in range(chances.random.randint(1, 5))]
        wanted = list({(want.action, want.provider): want for want in wanted}.values())
        away_s = (chances.seconds(50), chances.seconds(1)) if chances.one_in(4) else None
        messages = await hand.leases.claim(
            wanted,
            doubts=chances.random.randrange(3),
            doubt_lease_s=chances.seconds(30),
            lookups=chances.pick(({}, {}, {"genace": "genace", "other": "other"})),
            is_free=not chances.one_in(3),
            away_s=away_s,
            turns=hand.turns,
        )
        for message in messages:
            hand.turns.take(message.action, message.tenant_id)
        hand.messages = [*hand.messages, *messages][-20:]
        await load_subjects(self.twin, [(message.slot, message.action) for message in messages])

    def _wanted(self) -> Wanted:
        chances = self.chances
        provider = chances.pick(tuple(ACCOUNTS))
        room = chances.random.randint(0, 6)
        return Wanted(
            action=chances.pick((Action.DISPATCH, Action.OBSERVE, Action.DELIVER)),
            provider=provider,
            account=ACCOUNTS[provider],
            room=room,
            lease_s=chances.seconds(30),
            reserve=chances.random.randint(0, min(1, room)),
        )

    async def _ends_leases(self) -> None:
        hand, chances = self.chances.pick(self.hands), self.chances
        # now and then what somebody else was given
        held = chances.pick(self.hands).messages if chances.one_in(2) else hand.messages
        messages = list({message.slot: message for message in chances.some(held, 3)}.values())
        match chances.random.randrange(8):
            case 0:
                await hand.leases.acknowledge([Acknowledge(message=message) for message in messages[:1]])
            case 1:
                reason = chances.pick((ParkReason.LEASE_COUNT, ParkReason.SPECIFICATION))
                await hand.leases.park([SetAside(message=message, reason=reason) for message in messages])
            case 2 | 3:
                await hand.leases.renew(messages)
            case _:
                await hand.leases.release([self._release(message) for message in messages])
        for message in messages:
            if held is hand.messages and chances.one_in(2):
                hand.turns.give_back(message.action, message.tenant_id)

    def _release(self, message: Message) -> Release:
        chances = self.chances
        forgives = chances.one_in(2)
        return Release(
            message=message,
            delay_s=chances.pick((0.0, chances.seconds(1, 20))),
            reason=chances.pick((None, WaitReason.TRANSIENT, WaitReason.ALLOWANCE, WaitReason.ACTIVE)),
            forgives=forgives,
            error=None if forgives else chances.pick((None, "ValueError")),
        )

    async def _asks_what_is_left(self) -> None:
        hand, chances = self.chances.pick(self.hands), self.chances
        names = chances.some(tuple(ACCOUNTS), 2)
        accounts = [ACCOUNTS[name] for name in names]
        await hand.leases.left(chances.some(tuple(Action), 4), names, accounts)
        await hand.leases.has_suspects([self._wanted()])
        if chances.one_in(3):
            await hand.leases.wake_waiting(names)
            await hand.leases.announce_sleep(chances.seconds(10))

    # -- saves ---------------------------------------------------------------------------------------------------------

    async def _marks(self) -> None:
        """What a tenant has prepared, in one batch: it shares an allowance and a budget."""
        prepared = [row for row in self.twin.memory.tables.operations if row["phase"] == "prepared"]
        tenant_id = self.chances.pick(TENANTS)
        ids = [row["operation_id"] for row in prepared if row["tenant_id"] == tenant_id]
        fresh = await load(self.twin, self.chances.some(ids, 6))
        mark = [
            (operation, advance(operation, marking(self.chances, operation), operation.read_at))
            for operation in fresh.values()
        ]
        batch = [self._save(operation, step) for operation, step in mark if isinstance(step, MarkStep)]
        if batch:
            await self._write(self.chances.pick(self.hands), batch)

    async def _happens(self) -> None:
        """One event each of some operations, saved in a batch for each kind."""
        hand, chances = self.chances.pick(self.hands), self.chances
        ids = list(self.twin.memory.tables.operations.rows)
        if not ids:
            return
        fresh = await load(self.twin, chances.some(ids, 6))
        steps: list[tuple[Operation, Step]] = []
        for operation_id, now in fresh.items():
            before = self.readings.get(operation_id, now)
            operation = before if chances.one_in(6) else now
            self.readings[operation_id] = now
            happening = event(chances, operation)
            if operation.phase is Phase.PREPARED and isinstance(happening, ev.Reply) and chances.one_in(2):
                # a failover lost its mark, and whoever made it goes on with what it knows
                operation = replace(operation, phase=Phase.DISPATCHING, dispatch_id=happening.dispatch_id)
            step = advance(operation, happening, operation.read_at)
            if isinstance(step, Step):
                steps.append((operation, step))
        for kind in {type(step): None for _, step in steps}:
            await self._write(hand, [self._save(operation, step) for operation, step in steps if type(step) is kind])

    async def _write(self, hand: Hand, batch: Sequence[Save]) -> None:
        writes: dict[type, Callable[..., Coroutine[Any, Any, Any]]] = {
            MarkSave: hand.door.mark,
            ConcludeSave: hand.door.conclude,
            SnapshotSave: hand.door.snapshot,
            DeliverSave: hand.door.deliver,
            DecideSave: hand.door.decide,
        }
        self.saved = [*self.saved, *batch][-_LAST:]
        await writes[type(batch[0])](batch)

    def _save(self, operation: Operation, step: Step) -> Save:
        chances = self.chances
        match step:
            case MarkStep():
                spans = {"send_s": 5, "quiescent_s": 77, "lease_s": chances.seconds(60), "pause_s": chances.seconds(10)}
                return MarkSave(step=step, **spans)
            case ConcludeStep():
                return self._conclude_save(operation, step)
            case SnapshotStep():
                return SnapshotSave(step=step)
            case DeliverStep():
                return DeliverSave(step=step)
            case DecideStep():
                return DecideSave(step=step)

    def _conclude_save(self, operation: Operation, step: ConcludeStep) -> ConcludeSave:
        chances = self.chances
        return ConcludeSave(
            step=step,
            exchange=chances.exchange(),
            account=operation.account or ACCOUNTS.get(operation.provider, "genace"),
            number=max(1, operation.dispatch_count),
            authorisation=operation.authorisation,
            authorised_by=operation.authorised_by,
            settle_s=12,
            begun_ago_s=chances.seconds(1),
            held=chances.pick((None, operation.estimate)),
            unit=chances.pick((None, operation.unit)),
            request_ids=chances.pick(({}, {"x-request-id": "r1"})),
            reply=chances.pick((None, b"a reply")),
            shut_s=chances.pick((None, None, chances.seconds(20))),
        )

    async def _saves_again(self) -> None:
        """The same batch once more, as after a commit that nobody saw."""
        if self.saved:
            await self._write(self.chances.pick(self.hands), [self.chances.pick(self.saved)])

    async def _looks_for_traces(self) -> None:
        traces = self.chances.pick(self.hands).traces
        save = self.chances.pick(self.saved) if self.saved else None
        match save:
            case MarkSave():
                await traces.marks([save])
            case ConcludeSave():
                await traces.conclusions([save])
            case SnapshotSave():
                await traces.snapshots([save])
            case DeliverSave():
                await traces.deliveries([save])
            case DecideSave():
                await traces.decisions([save])
            case None:
                pass

    async def _does_something_aside(self) -> None:
        await self.chances.pick(asides.ALL)(self.twin, self.chances)


_STEPS = (
    *(Course._enqueues,) * 3,
    *(Course._waits,) * 4,
    *(Course._claims,) * 8,
    *(Course._ends_leases,) * 2,
    Course._asks_what_is_left,
    *(Course._marks,) * 3,
    *(Course._happens,) * 10,
    *(Course._saves_again, Course._looks_for_traces),
    *(Course._does_something_aside,) * 3,
)
