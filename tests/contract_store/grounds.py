"""One store at a time, for stories that say what must come out: the same tools on either, and rows by table."""

import abc
import asyncio
from collections.abc import Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast
from uuid import UUID

from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.identity import parse_operation_id
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Operation, OperationId
from coatcheck.core.steps import ConcludeStep, DecideStep, DeliverStep, MarkStep, Refusal, SnapshotStep, Step
from coatcheck.queue.leases import Leases, Message, Wanted
from coatcheck.store.db import Database
from coatcheck.store.door import ConcludeSave, DecideSave, DeliverSave, Door, MarkSave, Save, Saved, SnapshotSave
from coatcheck.store.requests import OperationOf, Reader
from coatcheck.store.statements import statement
from contract_store.twin import BEGINNING, OnPostgres
from memory.line import MemoryDatabase
from memory.store import Memory

Answer = TypeVar("Answer")
Row = Mapping[str, Any]


class Ground(abc.ABC):
    """One worker's tools on one store, whose clock stands still until it is moved."""

    line: Database

    def __init__(self, runner: asyncio.Runner, worker: str = "w1") -> None:
        self._runner = runner
        self._number = 0
        self.at: datetime = BEGINNING
        self.door = Door(self.line, worker)
        self.leases = Leases(self.line, worker)
        self.reader = Reader(self.line)
        self.fetch("register_providers", name=["genace"], account=["genace"], kind=["genace"])

    @abc.abstractmethod
    def rows(self, table: str) -> list[Row]:
        """All rows of a table."""

    @abc.abstractmethod
    def move(self, seconds: float) -> None:
        """Let time pass."""

    @abc.abstractmethod
    def _enqueue(self, request: Mapping[str, Any]) -> Row: ...

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """A coroutine to its end."""
        return self._runner.run(work)

    def fetch(self, name: str, /, **parameters: Any) -> list[Row]:
        """One statement of the store, for what has no wrapper that takes a connection."""
        return list(self.run(self.line.fetch(statement("store", name), parameters)))

    def enqueue(self, key: str, **fields: object) -> OperationId:
        """One prepared operation."""
        request = {"v": 1, "tenant_id": "t1", "operation_key": key, "provider": "genace", "specification_text": "{}"}
        answer = self._enqueue({**request, **fields})
        assert answer["result"] == "created", answer
        return cast("OperationId", parse_operation_id(answer["operation_id"]))

    def operation(self, operation_id: OperationId) -> Operation:
        """The record as it stands."""
        (found,) = self.run(self.reader.operations([OperationOf(operation_id=operation_id)]))
        assert found is not None
        return found

    def row(self, table: str, operation_id: OperationId, **more: object) -> Row:
        """The only row of an operation in a table that fits."""
        found = [row for row in self.rows(table) if row["operation_id"] == operation_id]
        (row,) = [row for row in found if all(row[name] == value for name, value in more.items())]
        return row

    def dispatch_id(self) -> DispatchId:
        """A fresh one."""
        self._number += 1
        return DispatchId(UUID(int=(1 << 100) + self._number))

    def step(self, operation_id: OperationId, event: ev.Event) -> Step:
        """What the table makes of an event now."""
        operation = self.operation(operation_id)
        step = advance(operation, event, operation.read_at)
        assert not isinstance(step, Refusal), step
        return step

    def save(self, *steps: Step) -> list[Saved]:
        """Steps of one kind, as one batch."""
        writes: Mapping[type, Any] = {
            MarkSave: self.door.mark,
            ConcludeSave: self.door.conclude,
            SnapshotSave: self.door.snapshot,
            DeliverSave: self.door.deliver,
            DecideSave: self.door.decide,
        }
        batch = [self._save(step) for step in steps]
        return cast("list[Saved]", self.run(writes[type(batch[0])](batch)))

    def happen(self, operation_id: OperationId, event: ev.Event) -> Saved:
        """One event, decided and saved by itself."""
        return self.save(self.step(operation_id, event))[0]

    def mark(self, operation_id: OperationId) -> DispatchId:
        """From prepared to dispatching."""
        dispatch_id = self.dispatch_id()
        assert self.happen(operation_id, ev.Mark(dispatch_id=dispatch_id, account="genace")).applied
        return dispatch_id

    def claim(self, action: Action, room: int = 10, *, doubts: int = 0) -> list[Message]:
        """What is due."""
        wanted = [Wanted(action=action, provider="genace", account="genace", room=room, lease_s=30)]
        return self.run(self.leases.claim(wanted, doubts=doubts, doubt_lease_s=30))

    def _save(self, step: Step) -> Save:
        match step:
            case MarkStep():
                return MarkSave(step=step, send_s=5, quiescent_s=77, lease_s=90, pause_s=10)
            case ConcludeStep():
                return self._conclude_save(step)
            case SnapshotStep():
                return SnapshotSave(step=step)
            case DeliverStep():
                return DeliverSave(step=step)
            case DecideStep():
                return DecideSave(step=step)

    def _conclude_save(self, step: ConcludeStep) -> ConcludeSave:
        operation = self.operation(step.operation_id)
        return ConcludeSave(
            step=step,
            exchange=Exchange(stage=Stage.BODY_RECEIVED, bytes_sent=200, bytes_received=100, status=201),
            account="genace",
            number=max(1, operation.dispatch_count),
            authorisation=operation.authorisation,
            authorised_by=operation.authorised_by,
            settle_s=12,
            begun_ago_s=1,
        )


class InMemory(Ground):
    """The store in memory."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.memory = Memory(lambda: self.at)
        self.line = MemoryDatabase(self.memory)
        super().__init__(runner)

    def rows(self, table: str) -> list[Row]:
        return list(self.memory.snapshot()[table])

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)

    def _enqueue(self, request: Mapping[str, Any]) -> Row:
        return self.memory.enqueue(request)


class InPostgres(Ground):
    """The store that production has."""

    def __init__(self, store: OnPostgres, runner: asyncio.Runner) -> None:
        self._store = store
        self.line = store.line
        store.begin(BEGINNING)
        super().__init__(runner)

    def rows(self, table: str) -> list[Row]:
        return list(self._store.state()[table])

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        self._store.move(self.at)

    def _enqueue(self, request: Mapping[str, Any]) -> Row:
        return self._store.enqueue(request)

    def close(self) -> None:
        """Close what is open."""
        self.run(self.line.close())
        self._store.connection.close()
