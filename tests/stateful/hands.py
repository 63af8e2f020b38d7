"""What drives the real store: one worker's door and leases under each of two names, a person's tools, and what can be read of it all."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import psycopg

import postgres
from coatcheck.core import events as ev
from coatcheck.core.machine import advance
from coatcheck.core.operation import Operation, OperationId
from coatcheck.core.steps import Refusal
from coatcheck.errors import CommitUnknown
from coatcheck.store.audit import Finding
from coatcheck.store.door import (
    ConcludeSave,
    DecideSave,
    DeliverSave,
    MarkSave,
    Save,
    Saved,
    SnapshotSave,
)
from coatcheck.store.operations import find, load
from coatcheck.store.resolution import Traces
from store.audited import audited
from store.ground import Ground
from waiting import until_async

WORKERS = ("ann", "bob")
BROKEN = (psycopg.Error, CommitUnknown)
"""What a caller sees of a connection that was killed under it."""

_RECORDS: LiteralString = """
select o.operation_id, o.phase, o.revision, o.authorisation, o.dispatch_id, o.render_state, o.delivery_state, o.remote_job_id,
  o.cancel_requested_at is not null as is_cancel_requested,
  (select array_agg(h.revision order by h.revision) from coatcheck.history as h where h.operation_id = o.operation_id) as revisions,
  (select coalesce(json_object_agg(d.output_index, d.state), '{}') from coatcheck.deliveries as d where d.operation_id = o.operation_id)
    as outputs,
  (select coalesce(json_object_agg(m.lane, json_build_array(m.action, m.park_reason, m.leased_by is not null)), '{}')
    from coatcheck.outbox as m where m.operation_id = o.operation_id) as lanes,
  (select coalesce(json_object_agg(d.dispatch_id, json_build_array(d.number, d.authorisation, d.outcome, d.remote_job_id,
      d.settled_at is null, d.charged::text, d.displaced)), '{}')
    from coatcheck.dispatches as d where d.operation_id = o.operation_id) as dispatches
from coatcheck.operations as o"""
_CLOCK: LiteralString = """
create table public.moved (seconds float8 not null);
insert into public.moved values (0);
grant select on public.moved to public;
create or replace function coatcheck.due_now() returns timestamptz language sql stable parallel safe
  as $$ select pg_catalog.statement_timestamp() + pg_catalog.make_interval(secs => (select seconds from public.moved)) $$;
create or replace function coatcheck.lease_now() returns timestamptz language sql volatile parallel safe
  as $$ select pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => (select seconds from public.moved)) $$"""
"""Time that moves with a row: functions that are replaced, as elsewhere, cost every session its plans, and here time moves all the time."""
_EVERYTHING: LiteralString = """
do $$ declare name text; begin
  foreach name in array array['outbox', 'history', 'dispatches', 'remote_jobs', 'deliveries', 'snapshots', 'specifications', 'incidents',
      'operations'] loop
    execute format('delete from coatcheck.%I', name);
  end loop;
  update coatcheck.allowances set held = 0, charged = 0, ceiling = null;
  update coatcheck.accounts set in_flight_count = 0;
  update coatcheck.providers set dispatch_paused_at = null, dispatch_pause_reason = null, dispatch_paused_by = null;
end $$"""


class Hands:
    """Two workers on one database, and a hand that does what neither of them may."""

    def __init__(self, database: postgres.Database) -> None:
        self.database = database
        self.grounds = {name: Ground(database, name) for name in WORKERS}
        for ground in self.grounds.values():
            ground.__enter__()
        self.ann = self.grounds["ann"]
        self.ann.sql(
            "insert into coatcheck.allowances (tenant_id, unit, set_by, updated_at) values ('t2', 'credits', 'ground', now())"
        )

        self.ann.sql(_CLOCK)

    def move_time(self, seconds: float) -> None:
        """Move what the database takes for now."""
        self.ann.sql("update public.moved set seconds = seconds + %s", seconds)

    def close(self) -> None:
        """End every connection."""
        for ground in self.grounds.values():
            ground.close()

    def forget(self) -> None:
        """Everything gone, as it was before the first example."""
        self.ann.sql(_EVERYTHING)

    # -- reading -------------------------------------------------------------------------------------------------------

    def records(self) -> dict[UUID, dict[str, Any]]:
        """Every operation with all that belongs to it."""
        return {row["operation_id"]: row for row in self.ann.sql(_RECORDS)}

    def jobs(self) -> dict[str, tuple[UUID, UUID | None, str]]:
        """Whose each job is."""
        rows = self.ann.sql("select remote_job_id, operation_id, dispatch_id, role from coatcheck.remote_jobs")
        return {row["remote_job_id"]: (row["operation_id"], row["dispatch_id"], row["role"]) for row in rows}

    def allowances(self) -> dict[str, tuple[Any, Any]]:
        """What each tenant holds and was charged."""
        rows = self.ann.sql("select tenant_id, held, charged from coatcheck.allowances")
        return {row["tenant_id"]: (row["held"], row["charged"]) for row in rows}

    def read(self, operation: UUID) -> Operation:
        """The record as a worker reads it."""
        return self.ann.run(load(self.ann.line, [OperationId(operation)]))[OperationId(operation)]

    def find(self, operation: UUID, tenant: str) -> Operation | None:
        """The record as a tenant reads it."""
        return self.ann.run(find(self.ann.line, OperationId(operation), tenant))

    def quiescent_at(self, dispatch: UUID | None) -> datetime | None:
        """When nothing of a dispatch can arrive any more, as the operator's tools read it."""
        rows = self.ann.sql("select quiescent_at from coatcheck.dispatches where dispatch_id = %s", dispatch)
        found: datetime | None = rows[0]["quiescent_at"] if rows else None
        return found

    def audit(self) -> list[Finding]:
        """What the audit finds."""
        return audited(self.database)

    # -- writing -------------------------------------------------------------------------------------------------------

    def prepared(self, operation: Operation, event: ev.Event, marked: Operation | None = None) -> Save | None:
        """What a worker would save for an event on what it read; None where the table refuses."""
        step = advance(operation, event, operation.read_at)
        return None if isinstance(step, Refusal) else self.ann.as_save(step, marked=marked or operation)

    def write(self, worker: str, save: Save) -> Saved:
        """Save it."""
        (saved,) = self.grounds[worker].write([save])
        return saved

    def resolve(self, worker: str, save: Save) -> Saved | None:
        """What a worker finds of a save whose answer it did not see; None and a mark without a revision: nothing."""
        ground = self.grounds[worker]
        traces = Traces(ground.line, worker)
        match save:
            case MarkSave():
                (saved,) = ground.run(traces.marks([save]))
                return saved if saved.revision is not None else None
            case ConcludeSave():
                return ground.run(traces.conclusions([save]))[0]
            case SnapshotSave():
                return ground.run(traces.snapshots([save]))[0]
            case DecideSave():
                return ground.run(traces.decisions([save]))[0]
            case DeliverSave():
                return ground.run(traces.deliveries([save]))[0]

    def write_and_be_killed(self, worker: str, save: Save) -> None:
        """Save it, and be cut off while the statement waits for the operation's row: nothing of it is committed."""
        ground = self.grounds[worker]
        other = self.grounds[WORKERS[worker == WORKERS[0]]].connection

        async def work() -> None:
            writing = asyncio.create_task(_written(ground, save))
            await until_async(lambda: other.execute(_WAITING).fetchall())
            other.execute(f"select pg_terminate_backend(pid) from ({_WAITING}) as waiting")
            with suppress(*BROKEN):
                await writing
                raise AssertionError("expected the connection to break under the statement")

        with self._locked(ground, save.step.operation_id):
            ground.run(work())

    def lose_the_line(self, worker: str) -> None:
        """Cut a worker off while it does nothing: it finds out when it sends its next statement, which is not carried out."""
        ground = self.grounds[worker]
        (row,) = ground.run(ground.line.fetch("select pg_backend_pid() as pid"))
        self.ann.sql("select pg_terminate_backend(%s, 5000)", row["pid"])
        with suppress(*BROKEN):
            ground.run(ground.line.fetch("select 1 as one"))

    @contextmanager
    def _locked(self, ground: Ground, operation: OperationId) -> Iterator[None]:
        with ground.connection.transaction():
            ground.sql("select from coatcheck.operations where operation_id = %s for update", operation)
            yield


_WAITING: LiteralString = (
    "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)


async def _written(ground: Ground, save: Save) -> None:
    writes: dict[type, Any] = {
        MarkSave: ground.door.mark,
        ConcludeSave: ground.door.conclude,
        SnapshotSave: ground.door.snapshot,
        DeliverSave: ground.door.deliver,
        DecideSave: ground.door.decide,
    }
    await writes[type(save)]([save])
