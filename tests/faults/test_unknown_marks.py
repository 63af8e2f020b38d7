"""A mark whose commit nobody saw is never followed by a POST, whether it was committed or not; the operation is sent once, later."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.rows import TupleRow

from faults.child import KILLED
from faults.proxy import Cut, End, Side, cutting
from faults.stage import Stage
from figures import Report
from waiting import until

MARK = b"may be sent from now on"
"""The words by which the statement of the mark is known."""
MARKING = (
    "select pid from pg_stat_activity where datname = current_database() and query like '%%may be sent from now on%%'"
    " and wait_event_type = 'Lock'"
)


def outcomes(stage: Stage) -> list[list[str]]:
    """The outcomes of each operation's dispatches, in the order in which the operations were enqueued."""
    rows = stage.rows("select operation_id from coatcheck.operations order by operation_id")
    return [[each["outcome"] for each in stage.dispatches(row["operation_id"])] for row in rows]


def delivered_once_each(stage: Stage) -> None:
    stage.check()
    assert {row["delivery_state"] for row in stage.rows("select delivery_state from coatcheck.operations")} == {
        "delivered"
    }
    assert len(stage.sim.posts) == stage.one("select count(*) from coatcheck.operations")["count"]


@contextmanager
def gate_at_the_mark(stage: Stage) -> Iterator[psycopg.Connection[TupleRow]]:
    """Every mark waits inside its statement until the block ends."""
    with stage.database.connect() as connection:
        connection.execute("select pg_advisory_lock(7)")
        connection.execute(
            "create function wait() returns trigger language plpgsql as"
            " $$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$"
        )
        connection.execute(
            "create trigger gate after insert on coatcheck.dispatches for each row"
            " when (new.outcome = 'open') execute function wait()"
        )
        yield connection


@pytest.mark.parametrize("end", End)
def test_a_mark_cut_at_any_share_of_request_or_reply_is_not_followed_by_a_post(
    stage: Stage, end: End, figures: Report
) -> None:
    """At every byte, and without a worker around it: tests/store/test_cut_commits.py."""
    cuts = [Cut(side=side, share=at / 12, end=end) for side in Side for at in range(12)]
    stage.enqueue(count=len(cuts))
    with cutting(stage.database.url, MARK, cuts, by_tcp=end is End.RST) as (proxy, url):
        stage.url = url
        stage.work(COATCHECK_CONCURRENCY__DISPATCH="1")
        assert proxy.cut_count == len(cuts)
    figures("commit cuts", len(cuts))
    delivered_once_each(stage)
    ends = outcomes(stage)
    assert sorted(map(len, ends)) == [1] * 12 + [2] * 12
    assert all(each in (["accepted"], ["not_sent", "accepted"]) for each in ends)
    causes = {row["cause"] for row in stage.rows("select cause from coatcheck.dispatches where outcome = 'not_sent'")}
    assert causes == {"mark_commit_unknown"}


def test_a_mark_whose_backend_is_terminated_is_not_followed_by_a_post(stage: Stage) -> None:
    stage.enqueue()
    with gate_at_the_mark(stage) as gate:
        worker = stage.worker()
        until(lambda: stage.rows(MARKING))
        stage.one("select pg_terminate_backend(%s)", stage.one(MARKING)["pid"])
        until(lambda: not stage.rows(MARKING))
        gate.execute("drop trigger gate on coatcheck.dispatches")
    assert worker.ended() == 0, worker.talk
    delivered_once_each(stage)
    assert outcomes(stage) == [["accepted"]]


def test_a_mark_that_is_committed_after_its_worker_died_ends_in_doubt(stage: Stage) -> None:
    (one,) = stage.enqueue()
    with gate_at_the_mark(stage):
        worker = stage.worker()
        until(lambda: stage.rows(MARKING))
        worker.kill()
        assert worker.ended() == KILLED
    until(lambda: stage.operation(one)["phase"] == "dispatching")
    stage.finish()
    stage.check()
    assert stage.operation(one)["phase"] == "uncertain"
    assert stage.sim.posts == ()


def test_a_mark_that_no_standby_confirmed_is_taken_back(stage: Stage) -> None:
    """The server warns with 01000 when it stops waiting for a standby; here a trigger says so, once."""
    stage.enqueue()
    with stage.database.connect() as connection:
        connection.execute("create sequence warned")
        connection.execute(
            "create function warn() returns trigger language plpgsql as"
            " $$ begin if nextval('warned') = 1 then raise warning using errcode = '01000', message = 'not replicated';"
            " end if; return null; end $$"
        )
        connection.execute(
            "create trigger warning after insert on coatcheck.dispatches for each row"
            " when (new.outcome = 'open') execute function warn()"
        )
    stage.work()
    delivered_once_each(stage)
    assert outcomes(stage) == [["not_sent", "accepted"]]
