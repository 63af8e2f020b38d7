"""An application and its workers while the schema moves: plain statements of the first version, each timed from its beginning to its end.

Nothing of this code's own statements is used, so the same traffic runs before and after every migration.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import psycopg
from psycopg.rows import TupleRow

import postgres

ENQUEUE = """
with made as (
  insert into coatcheck.operations (operation_id, tenant_id, operation_key, provider, specification_hash, authorised_by, created_at, updated_at)
    values (%(id)s, 't1', %(key)s, 'genace', sha256('{}'), 'test', now(), now())
    returning operation_id
), asked as (
  insert into coatcheck.specifications (operation_id, specification_text) select operation_id, '{}' from made
), noted as (
  insert into coatcheck.history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)
    select operation_id, 0, 'generation_requested', 'test', now(), 'prepared', 'none', 'not_started' from made
)
insert into coatcheck.outbox (operation_id, lane, action, provider, expected_revision, visible_at)
  select operation_id, 0, 'dispatch', 'genace', 0, now() from made
"""
CLAIM = """
update coatcheck.outbox set leased_by = 'w', leased_at = now(), visible_at = now() + interval '1 hour', lease_token = nextval('coatcheck.lease_tokens')
where (operation_id, lane) = (select operation_id, lane from coatcheck.outbox
  where provider = 'genace' and action = 'dispatch' and parked_at is null and visible_at <= now() limit 1 for update skip locked)
returning operation_id
"""
MARK = """
with marked as (
  update coatcheck.operations set phase = 'dispatching', dispatch_id = operation_id, dispatch_count = 1, account = 'a', revision = 1
    where operation_id = %(id)s and phase = 'prepared' returning operation_id
), kept as (
  insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at, send_by_at, quiescent_at)
    select operation_id, operation_id, 1, 1, 'test', 'a', 'w', now(), now(), now() from marked
)
insert into coatcheck.history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)
  select operation_id, 1, 'marked', 'w', now(), 'dispatching', 'none', 'not_started' from marked
"""
CONCLUDE = """
with won as (
  insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)
    values ('a', %(key)s, %(id)s, %(id)s, 'owner', now()) returning operation_id
), ended as (
  update coatcheck.dispatches set outcome = 'accepted', remote_job_id = %(key)s, ended_at = now() where dispatch_id = %(id)s
), aimed as (
  update coatcheck.outbox set action = 'observe', leased_by = null, leased_at = null, lease_count = 0 where operation_id = %(id)s
)
update coatcheck.operations set phase = 'accepted', remote_job_id = %(key)s, revision = 2 where operation_id in (select operation_id from won)
"""


@dataclass(kw_only=True)
class Traffic:
    """What happened so far. A statement that the server ended is begun again, as every client of ours does."""

    enqueued: int = 0
    accepted: int = 0
    refused: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    failures: list[BaseException] = field(default_factory=list)
    _ending: Event = field(default_factory=Event)

    def enqueue(self, database: postgres.Database) -> None:
        with database.connect() as connection:
            while not self._ending.is_set():
                self._timed(connection, ENQUEUE, uuid.uuid4())
                self.enqueued += 1

    def work(self, database: postgres.Database) -> None:
        with database.connect() as connection:
            while not self._ending.is_set():
                for operation_id in self._timed(connection, CLAIM, uuid.uuid4()):
                    self._timed(connection, MARK, operation_id)
                    self._timed(connection, CONCLUDE, operation_id)
                    self.accepted += 1

    def end(self) -> None:
        self._ending.set()

    def _timed(
        self, connection: psycopg.Connection[TupleRow], statement: str, operation_id: uuid.UUID
    ) -> list[uuid.UUID]:
        began_s = time.monotonic()
        while (found := self._tried(connection, statement, operation_id)) is None:
            pass
        self.longest_s = max(self.longest_s, time.monotonic() - began_s)
        return found

    def _tried(
        self, connection: psycopg.Connection[TupleRow], statement: str, operation_id: uuid.UUID
    ) -> list[uuid.UUID] | None:
        try:
            cursor = connection.execute(statement.encode(), {"id": operation_id, "key": str(operation_id)})
        except psycopg.errors.DeadlockDetected as error:
            self.refused.append(type(error).__name__)
            return None
        return [each for (each,) in cursor.fetchall()] if cursor.description else []


@contextmanager
def flowing(database: postgres.Database) -> Iterator[Traffic]:
    """Two that enqueue and two that work, until the block ends. What one of them could not do is raised at the end."""
    traffic = Traffic()

    def kept(run: object) -> None:
        try:
            assert callable(run)
            run(database)
        except BaseException as error:  # noqa: BLE001 - a thread has nobody to raise to
            traffic.failures.append(error)

    threads = [Thread(target=kept, args=(run,)) for run in [traffic.enqueue, traffic.work] * 2]
    for each in threads:
        each.start()
    try:
        yield traffic
    finally:
        traffic.end()
        for each in threads:
            each.join(timeout=60)
    if traffic.failures:
        raise traffic.failures[0]
