"""Workers behind a real PgBouncer: both of its modes carry operations to their delivery, doctor names the mode, and its crash costs no POST."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import postgres
from cli.terminal import Terminal, plain_environ
from coatcheck.sim import ThreadedService
from faults.pooler import Pooler, pooled
from faults.stage import LEASES_OVER_S, Stage
from waiting import until

pytestmark = pytest.mark.system

BUSY = {"queued_s": 0.1, "processing_s": 0.2, "create": {"kind": "stall", "seconds": 0.2}}
DONE = "select count(*) from coatcheck.operations where phase not in ('prepared', 'dispatching')"
LEFT = "select count(*) from coatcheck.outbox where parked_at is null"


@pytest.fixture
def transaction(database: postgres.Database) -> Iterator[Pooler]:
    with pooled(database, "transaction") as running:
        yield running


@pytest.fixture
def session(database: postgres.Database) -> Iterator[Pooler]:
    with pooled(database, "session") as running:
        yield running


def until_done(stage: Stage, count: int) -> None:
    until(lambda: stage.one(DONE)["count"] >= count, deadline_s=30)


def delivered(stage: Stage) -> int:
    found = stage.one("select count(*) from coatcheck.operations where delivery_state = 'delivered'")
    return int(found["count"])


def terminal_of(pooler: Pooler, folder: Path, wake: str) -> Terminal:
    """Commands that reach the database by way of the pooler."""
    own = {
        "COATCHECK_DATABASE_URL": pooler.url,
        "COATCHECK_WAKE": wake,
        "COATCHECK_HOME": str(folder / "home"),
        "COATCHECK_SINK": f"file://{folder / 'outputs'}",
    }
    return Terminal(folder=folder, environ={**plain_environ(), **own})


def doctor(pooler: Pooler, folder: Path, wake: str, *, code: int = 0, of: str = "pooler") -> dict[str, str]:
    """What it says of the pooler, or of something else."""
    ended = terminal_of(pooler, folder, wake).run("doctor", "--json")
    assert ended.code == code, ended.out + ended.err
    (check,) = [each for each in ended.object["checks"] if each["name"] == of]
    return {name: str(value) for name, value in check.items()}


def test_a_worker_that_polls_works_through_transaction_mode_with_its_prepared_statements(
    stage: Stage, transaction: Pooler
) -> None:
    stage.url = transaction.url
    stage.enqueue(count=20)
    worker = stage.worker(until_idle=False, COATCHECK_WAKE="poll")
    until(lambda: delivered(stage) == 20)
    servers = transaction.servers()
    assert max(int(each["prepared_statements"]) for each in servers) > 0
    worker.terminate()
    assert worker.ended() == 0, worker.talk
    assert worker.talk.splitlines()[1:] == ["draining"]
    stage.check()


def test_a_worker_that_is_notified_works_through_session_mode(stage: Stage, session: Pooler) -> None:
    stage.url = session.url
    worker = stage.worker(until_idle=False)
    worker.says("ready ")
    stage.enqueue(count=20)
    until(lambda: delivered(stage) == 20)
    worker.terminate()
    assert worker.ended() == 0, worker.talk
    assert worker.talk.splitlines()[1:] == ["draining"]
    stage.check()


def test_a_worker_that_waits_for_notifications_which_do_not_pass_loses_nothing(
    stage: Stage, transaction: Pooler
) -> None:
    """It hears nothing, and finds everything by looking."""
    stage.url = transaction.url
    worker = stage.worker(until_idle=False, COATCHECK_WAKE="notify")
    worker.says("ready ")
    stage.enqueue(count=5)
    until(lambda: delivered(stage) == 5)
    worker.terminate()
    assert worker.ended() == 0, worker.talk
    stage.check()


@pytest.mark.parametrize("turns", ["0", "1"], ids=["last-used-first", "round-robin"])
def test_doctor_names_transaction_mode_and_what_it_needs(
    database: postgres.Database, tmp_path: Path, turns: str
) -> None:
    """Also where the pooler lends its sessions in turn, and has several to lend."""
    with pooled(database, "transaction", server_round_robin=turns, min_pool_size="3") as pooler:
        until(lambda: turns == "0" or len(pooler.servers()) >= 3)
        found = doctor(pooler, tmp_path, "notify")
        assert (found["verdict"], found["remedy"][:23]) == ("warning", "set COATCHECK_WAKE=poll")
        found = doctor(pooler, tmp_path, "poll")
        assert (found["verdict"], found["reading"]) == ("ok", "one in transaction mode, and COATCHECK_WAKE=poll")


@pytest.mark.parametrize("turns", ["0", "1"], ids=["last-used-first", "round-robin"])
def test_doctor_fails_where_prepared_statements_do_not_pass(
    database: postgres.Database, tmp_path: Path, turns: str
) -> None:
    with pooled(
        database, "transaction", max_prepared_statements="0", server_round_robin=turns, min_pool_size="3"
    ) as pooler:
        until(lambda: turns == "0" or len(pooler.servers()) >= 3)
        found = doctor(pooler, tmp_path, "poll", code=5)
    assert (found["verdict"], "max_prepared_statements" in found["remedy"]) == ("failed", True)


def test_doctor_is_content_with_session_mode(session: Pooler, tmp_path: Path) -> None:
    found = doctor(session, tmp_path, "notify")
    assert (found["verdict"], found["reading"]) == ("ok", "one, which lent two sessions at once")


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_several_processes_work_behind_it_and_say_that_nobody_counted_its_connections(
    database: postgres.Database, sim: ThreadedService, tmp_path: Path, mode: str
) -> None:
    with pooled(database, mode) as pooler:
        terminal = terminal_of(pooler, tmp_path, "poll")
        provider = "COATCHECK_PROVIDERS__GENACE__"
        own = {f"{provider}BASE_URL": sim.base_url, f"{provider}API_KEY": "key", f"{provider}LOOK_MIN_S": "0.05"}
        for number in range(4):
            terminal.enqueue(f"k{number}")
        ended = replace(terminal, environ={**terminal.environ, **own}).run("worker", "--processes", "2", "--until-idle")
        assert ended.code == 0, ended.err
        assert "nobody checked that there is room for 12 connections to PostgreSQL (2 processes, 6 each)" in ended.err
        found = doctor(pooler, tmp_path, "poll", of="connections")
    assert (found["verdict"], found["reading"]) == ("ok", "a pooler's, whose limits cannot be seen from here")
    assert len(sim.posts) == 4


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_that_crashes_again_and_again_costs_no_second_post(
    stage: Stage, database: postgres.Database, sim: ThreadedService, mode: str
) -> None:
    """What it was given goes on at the server, and what it gave back may be lost: both look alike from here."""
    with pooled(database, mode) as pooler:
        stage.url = pooler.url
        worker = stage.worker(until_idle=False, COATCHECK_WAKE="poll", COATCHECK_CONCURRENCY__DISPATCH="8")
        for enqueued in (20, 40, 60):
            stage.enqueue(BUSY, count=20)
            until_done(stage, enqueued - 12)
            pooler.restart()
        until_done(stage, 50)
        stage.database.move_time(LEASES_OVER_S)
        until(lambda: stage.one(LEFT)["count"] == 0, deadline_s=60)
        worker.terminate()
        assert worker.ended() == 0, worker.talk
    stage.check()
    record = stage.record()
    assert {len(record.posts_of(each)) for each in record.operations} <= {0, 1}
    assert len(sim.posts) >= 50
