"""What the tests of store and queue stand on: a database, one worker's door and leases, and short words for a life's events.

Everything is synchronous here: the event loop runs only inside a call. Two workers are two grounds on one database.
"""

import asyncio
import json
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from typing import Any, LiteralString, Self, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.identity import parse_operation_id
from coatcheck.core.machine import advance
from coatcheck.core.operation import DispatchId, Operation, OperationId, RemoteJobId, RenderState
from coatcheck.core.steps import ConcludeStep, DecideStep, DeliverStep, MarkStep, Refusal, SnapshotStep, Step
from coatcheck.queue.leases import Leases, Message, Wanted
from coatcheck.seams import Seams
from coatcheck.store.db import Database
from coatcheck.store.door import ConcludeSave, DecideSave, DeliverSave, Door, MarkSave, Save, Saved, SnapshotSave
from coatcheck.store.operations import load

Answer = TypeVar("Answer")
ACCOUNT = "genace"
SEEN = Exchange(stage=Stage.BODY_RECEIVED, bytes_sent=200, bytes_received=100, status=201, complete=True)


class Ground(ExitStack):
    """One worker's tools on one database."""

    def __init__(self, database: postgres.Database, worker: str = "worker-1") -> None:
        super().__init__()
        self.database = database
        self.seams = Seams.real()
        self.worker = worker
        self._runner = self.enter_context(asyncio.Runner())
        self.line = Database(database.url, seams=self.seams, name=worker)
        self.callback(lambda: self.run(self.line.close()))
        self.door = Door(self.line, worker)
        self.leases = Leases(self.line, worker)
        self.connection = self.enter_context(psycopg.connect(database.url, autocommit=True, row_factory=dict_row))

    def __enter__(self) -> Self:
        self.sql(
            "insert into coatcheck.providers (name, account, kind, default_estimate) values ('genace', 'genace', 'genace', 2)"
            " on conflict do nothing"
        )
        # counted without a limit, so that every story is also one of money
        self.sql(
            "insert into coatcheck.allowances (tenant_id, unit, set_by, updated_at) values ('t1', 'credits', 'ground', now())"
            " on conflict do nothing"
        )
        # a limit that stops nobody, so that what is in flight is counted in every story, too
        self.sql(
            "insert into coatcheck.accounts (account, max_in_flight) values ('genace', 1000000) on conflict do nothing"
        )
        return self

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run a coroutine to its end on this ground's own loop."""
        return self._runner.run(work)

    def sql(self, query: LiteralString, *parameters: object) -> list[dict[str, Any]]:
        """Rows by name, in a transaction of its own."""
        cursor = self.connection.execute(query, parameters or None)
        return cursor.fetchall() if cursor.description else []

    def lock_waiters(self) -> int:
        """How many sessions of this database wait for a lock."""
        waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        return len(self.connection.execute(waiting).fetchall())

    def one(self, table: LiteralString, operation_id: OperationId, *more: str) -> dict[str, Any]:
        """The only row of a table that belongs to an operation."""
        (row,) = self.all(table, operation_id)
        return {name: row[name] for name in more} if more else row

    def all(self, table: LiteralString, operation_id: OperationId) -> list[dict[str, Any]]:
        """The rows of a table that belong to an operation."""
        query = sql.SQL("select * from coatcheck.{} where operation_id = %s").format(sql.Identifier(table))
        return self.connection.execute(query, [operation_id]).fetchall()

    # -- in ------------------------------------------------------------------------------------------------------------

    def enqueue(self, key: str, **fields: object) -> OperationId:
        """One prepared operation."""
        request = {
            "v": 1,
            "tenant_id": "t1",
            "operation_key": key,
            "provider": "genace",
            "specification_text": '{"p":1}',
            **fields,
        }
        (answer,) = self.sql("select coatcheck.enqueue_v1(%s::text::jsonb) as answer", json.dumps(request))
        assert answer["answer"]["result"] == "created", answer
        return cast("OperationId", parse_operation_id(answer["answer"]["operation_id"]))

    def enqueue_many(self, count: int, **fields: object) -> list[OperationId]:
        """Many at once, in the order of their ids."""
        return sorted(self.enqueue(f"k{number}", **fields) for number in range(count))

    def operation(self, operation_id: OperationId) -> Operation:
        """The record as it stands."""
        return self.run(load(self.line, [operation_id]))[operation_id]

    # -- one event -----------------------------------------------------------------------------------------------------

    def step(self, operation_id: OperationId, event: ev.Event) -> Step:
        """What the table makes of an event now."""
        operation = self.operation(operation_id)
        step = advance(operation, event, operation.read_at)
        assert not isinstance(step, Refusal), step
        return step

    def save(self, *steps: Step, exchange: Exchange = SEEN, marked: Operation | None = None) -> list[Saved]:
        """Save steps of one kind in one batch."""
        return self.write([self.as_save(step, exchange, marked) for step in steps])

    def as_save(self, step: Step, exchange: Exchange = SEEN, marked: Operation | None = None) -> Save:
        """A step as a worker hands it to the door."""
        match step:
            case MarkStep():
                return MarkSave(step=step, send_s=5, quiescent_s=77, lease_s=90, pause_s=10)
            case ConcludeStep():
                operation = marked or self.operation(step.operation_id)
                return ConcludeSave(
                    step=step,
                    exchange=exchange,
                    account=operation.account or ACCOUNT,
                    number=max(1, operation.dispatch_count),
                    authorisation=operation.authorisation,
                    authorised_by=operation.authorised_by,
                    settle_s=12,
                    begun_ago_s=1,
                    reply=b"a reply",
                )
            case SnapshotStep():
                return SnapshotSave(step=step)
            case DeliverStep():
                return DeliverSave(step=step)
            case DecideStep():
                return DecideSave(step=step)

    def write(self, saves: Sequence[Save]) -> list[Saved]:
        """Hand a batch of one kind to the door."""
        writes: Mapping[type, Any] = {
            MarkSave: self.door.mark,
            ConcludeSave: self.door.conclude,
            SnapshotSave: self.door.snapshot,
            DeliverSave: self.door.deliver,
            DecideSave: self.door.decide,
        }
        return cast("list[Saved]", self.run(writes[type(saves[0])](saves)))

    def happen(self, operation_id: OperationId, event: ev.Event, exchange: Exchange = SEEN) -> Saved:
        """One event, decided and saved by itself."""
        return self.save(self.step(operation_id, event), exchange=exchange)[0]

    # -- the stations of a life ----------------------------------------------------------------------------------------

    def mark(self, operation_id: OperationId) -> DispatchId:
        """Bring a prepared operation to dispatching."""
        dispatch_id = DispatchId(self.seams.ids.uuid7())
        assert self.happen(operation_id, ev.Mark(dispatch_id=dispatch_id, account=ACCOUNT)).applied
        return dispatch_id

    def accept(self, operation_id: OperationId, job: str | None = None) -> RemoteJobId:
        """Bring a prepared operation to accepted."""
        remote_job_id = RemoteJobId(job or f"job-{operation_id}")
        event = ev.Accepted(dispatch_id=self.mark(operation_id), remote_job_id=remote_job_id)
        assert self.happen(operation_id, event).applied
        return remote_job_id

    def succeed(self, operation_id: OperationId, outputs: int = 1) -> None:
        """Bring a prepared operation to a render that succeeded."""
        assert self.happen(
            operation_id, look(self.accept(operation_id), RenderState.SUCCEEDED, outputs=outputs)
        ).applied

    def claim(
        self, action: Action, room: int = 100, *, doubts: int = 0, lease_s: float = 90, account: str = ACCOUNT
    ) -> list[Message]:
        """Lease what is due."""
        wanted = [Wanted(action=action, provider="genace", account=account, room=room, lease_s=lease_s)]
        return self.run(self.leases.claim(wanted, doubts=doubts, doubt_lease_s=30))


def look(
    job: RemoteJobId,
    state: RenderState | None,
    *,
    outputs: int = 0,
    charged: int | None = None,
    word: str | None = None,
    host: str = "a",
) -> ev.Snapshot:
    """A snapshot of a remote job."""
    urls = tuple(
        ev.Output(index=index, url=f"http://{host}/{index}", content_type="image/png") for index in range(outputs)
    )
    figures = None if charged is None else ev.Credits(charged=Decimal(charged))
    return ev.Snapshot(
        remote_job_id=job, remote_status=word or state or "?", render_state=state, outputs=urls, credits=figures
    )


def stored(index: int = 0) -> ev.OutputStored:
    """An output that lies in the sink."""
    return ev.OutputStored(index=index, uri=f"file:///{index}", sha256="ab" * 32, bytes=7, sniffed_type="image/png")
