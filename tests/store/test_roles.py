"""The worker's role suffices for a whole life and owns nothing; the application's may enqueue and nothing else."""

import json
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import conninfo

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action, ParkReason
from coatcheck.core.operation import RenderState
from coatcheck.core.steps import Boundary, Incident
from coatcheck.queue.leases import Acknowledge, Release, SetAside
from coatcheck.seams import NO_FAULTS
from coatcheck.store.budgets import Budget, LookReport, change_budget, report_looks
from coatcheck.store.incidents import Note, note
from coatcheck.store.operations import story
from coatcheck.store.pauses import Pausable, listed, pause, resume
from coatcheck.store.whereabouts import check
from store.ground import Ground, look, stored

REQUEST = json.dumps({"v": 1, "tenant_id": "t", "operation_key": "k", "provider": "genace", "specification_text": "{}"})


@pytest.fixture
def worker(database: postgres.Database) -> Iterator[Ground]:
    """A ground whose every statement runs as coatcheck_worker."""
    with Ground(database) as boss:
        url = conninfo.make_conninfo(database.url, options="-c role=coatcheck_worker")
        with Ground(postgres.Database(name=database.name, url=url, server=database.server)) as ground:
            ground.connection = boss.connection
            yield ground


def test_a_worker_needs_no_more_than_its_role_for_a_whole_life(worker: Ground) -> None:
    operation_id, other = worker.enqueue_many(2)
    messages = worker.claim(Action.DISPATCH)
    worker.run(worker.leases.renew(messages))
    worker.run(worker.leases.release([Release(message=messages[1], delay_s=0)]))
    job = worker.accept(operation_id)
    worker.happen(operation_id, look(job, RenderState.SUCCEEDED, outputs=2, charged=1))
    worker.happen(operation_id, ev.SourceExpired(index=0, delay_s=0))
    (course,) = worker.claim(Action.OBSERVE)
    worker.run(worker.leases.acknowledge([Acknowledge(message=course)]))
    worker.run(
        worker.leases.park(
            [SetAside(message=each, reason=ParkReason.LEASE_COUNT) for each in worker.claim(Action.DELIVER)]
        )
    )
    worker.happen(operation_id, stored(0))
    worker.happen(other, ev.Cancel(actor="p", reason="r"))
    worker.run(
        note(worker.line, [Note(operation_id=other, incident=Incident(kind="k", boundary=Boundary.OURS, detail="d"))])
    )
    worker.run(pause(worker.line, "genace", reason="r", actor="a", faults=NO_FAULTS))
    worker.run(resume(worker.line, "genace", reason="r", actor="a", faults=NO_FAULTS))
    worker.run(
        change_budget(
            worker.database.url, "genace", Budget(max_in_flight=5, dispatches_per_s=1, doubt_limit=3), faults=NO_FAULTS
        )
    )
    failed = LookReport(operation_id=operation_id, account="genace", leased_at=course.leased_at, failure="status_503")
    worker.run(report_looks(worker.line, [failed]))
    worker.run(pause(worker.line, "genace", reason="r", actor="a", what=Pausable.OBSERVATION, faults=NO_FAULTS))
    worker.run(resume(worker.line, "genace", reason="r", actor="a", what=Pausable.OBSERVATION, faults=NO_FAULTS))
    worker.sql("update coatcheck.installation set timeline = 77")
    assert worker.run(check(worker.line, worker="w", promotion_is_safe=False)) is not None
    assert len(worker.run(listed(worker.line))) == 1
    assert len(worker.run(story(worker.line, operation_id))["history"]) == 6


@pytest.mark.parametrize("table", ["history", "specifications"])
def test_a_worker_may_not_rewrite_what_was_written_down(database: postgres.Database, table: str) -> None:
    with database.connect() as connection:
        connection.execute("set role coatcheck_worker")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"update coatcheck.{table} set operation_id = operation_id".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"truncate coatcheck.{table}".encode())


def test_the_application_may_enqueue_and_nothing_else(database: postgres.Database) -> None:
    with database.connect() as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'coatcheck'").fetchall()
        connection.execute("set role coatcheck_app")
        answer = connection.execute("select coatcheck.enqueue_v1(%s::jsonb) ->> 'result'", [REQUEST]).fetchone()
        assert answer == ("created",)
        assert len(tables) >= 12
        for (table,) in tables:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"select from coatcheck.{table}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select coatcheck.new_id()")
