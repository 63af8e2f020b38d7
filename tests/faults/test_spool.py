"""The reply is there and the database is not: the reply lies on the disk before anything else, and no process has to live for it."""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coatcheck.devdb import DevPostgres
from coatcheck.seams import Point
from coatcheck.sim import ThreadedService
from faults.away import WAITS, Away, own_server
from faults.child import KILLED
from faults.points import FATES, points
from faults.stage import QUICK, Stage
from faults.strike import Deed, Strike
from waiting import until

AWAY_S = 30.0
DRAINED_S = 10.0
LOCKED_OUT = (
    "select from pg_stat_activity where datname = current_database() and application_name like 'coatcheck%%'"
    " and wait_event_type = 'Lock'"
)


@pytest.fixture(scope="module")
def shared(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevPostgres]:
    with own_server(str(pytestconfig.getoption("--pg")), tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def away(shared: DevPostgres, sim: ThreadedService, tmp_path: Path) -> Iterator[Away]:
    with Away(shared, sim, tmp_path, name=f"away_{os.urandom(6).hex()}") as made:
        try:
            yield made
        finally:
            shared.start()


def saved_once(stage: Stage, one: object) -> None:
    """In both books: one POST, its id, and no doubt left."""
    stage.check()
    (operation,) = stage.rows("select * from coatcheck.operations where operation_id = %s", one)
    assert (operation["phase"], operation["delivery_state"]) == ("accepted", "delivered")
    (job,) = stage.sim.jobs()
    assert operation["remote_job_id"] == job["id"]
    assert len(stage.sim.posts) == 1
    (dispatch,) = stage.rows("select * from coatcheck.dispatches where operation_id = %s", one)
    assert (dispatch["outcome"], dispatch["stage"], dispatch["http_status"]) == ("accepted", "body_received", 201)
    assert stage.events(operation["operation_id"]).count("generation_accepted") == 1


@pytest.mark.timeout(120)
def test_the_database_is_away_for_half_a_minute_after_the_reply_and_the_id_is_saved(away: Away) -> None:
    one, worker = away.spooled()
    (line,) = away.lines()
    assert line.operation_id == one
    comes_at = time.monotonic() + AWAY_S
    until(lambda: time.monotonic() > comes_at, deadline_s=AWAY_S + 10)
    assert worker.running
    away.comes()
    until(lambda: away.operation(one)["delivery_state"] == "delivered")
    saved_once(away, one)
    assert "became_uncertain" not in away.events(one)
    until(lambda: not away.files())
    worker.terminate()
    assert worker.ended() == 0, worker.talk
    assert list(away.spool.iterdir()) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("told", ["before the reply", "after the line"])
def test_a_worker_that_is_told_to_end_leaves_its_reply_on_the_disk_and_ends(away: Away, told: str) -> None:
    """It does not outwait an outage: the next worker of the host replays the line."""
    one, worker = away.replied(go_on=False)
    if told == "before the reply":
        worker.terminate()
    worker.go_on()
    until(away.files)
    if told == "after the line":
        worker.terminate()
    assert worker.ended(within_s=DRAINED_S) == 0, worker.talk
    assert "never retrieved" not in worker.talk
    (line,) = away.lines()
    assert line.operation_id == one
    away.comes()
    assert away.operation(one)["phase"] == "dispatching"
    away.work()
    saved_once(away, one)
    assert list(away.spool.iterdir()) == []


@pytest.mark.timeout(120)
def test_a_commit_that_waits_for_its_standby_holds_up_neither_the_end_of_a_worker_nor_the_next_ones_beginning(
    away: Away,
) -> None:
    """The database answers reads and no commit returns, so nothing is known to be away; a replay waits by itself."""
    (one,) = away.enqueue()
    worker = away.worker(Strike(point=Point.D11_PARSED, deed=Deed.STOP), until_idle=False)
    worker.stopped()
    with away.without_standby():
        worker.go_on()
        until(away.files)
        worker.terminate()
        assert worker.ended(within_s=DRAINED_S + 10) == 0, worker.talk
        assert len(away.lines()) == 1
        following = away.worker(until_idle=False)
        following.says("ready")
        assert len(away.lines()) == 1
    until(lambda: away.operation(one)["delivery_state"] == "delivered")
    saved_once(away, one)
    following.terminate()
    assert following.ended() == 0, following.talk
    assert list(away.spool.iterdir()) == []


@pytest.mark.timeout(120)
def test_a_worker_whose_lease_no_standby_confirms_is_told_to_end_and_ends(away: Away) -> None:
    worker = away.worker(until_idle=False)
    worker.says("ready")
    with away.without_standby():
        away.commits_at_once()
        (one,) = away.enqueue()
        until(lambda: away.rows("select" + WAITS, "coatcheck leases"))
        worker.terminate()
        assert worker.ended(within_s=DRAINED_S + 30) == 0, worker.talk
    assert not away.sim.posts
    away.finish()
    saved_once(away, one)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("swept", [False, True], ids=["dispatching", "uncertain"])
def test_the_worker_is_killed_as_well_and_the_next_one_saves_the_id(away: Away, swept: bool) -> None:
    one, worker = away.spooled()
    worker.kill()
    away.comes()
    if swept:
        away.database.move_time(120)
        # on another host, which does not have this spool
        elsewhere = away.worker(COATCHECK_HOME=os.fspath(away.folder / "elsewhere"))
        assert elsewhere.ended() == 0, elsewhere.talk
        assert away.operation(one)["phase"] == "uncertain"
    assert len(away.lines()) == 1
    away.work()
    saved_once(away, one)
    assert ("became_uncertain" in away.events(one)) is swept
    assert list(away.spool.iterdir()) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("point", points("S"))
def test_a_process_is_killed_at_any_point_of_the_spool(away: Away, point: Point) -> None:
    fate = FATES[point]
    strike = Strike(point=point)
    if point in (Point.S1_APPENDING, Point.S2_SPOOLED):
        one, doomed = away.replied(strike)
        assert doomed.ended() == KILLED, doomed.talk
        away.comes()
    else:
        one, worker = away.spooled()
        worker.kill()
        away.comes()
        doomed = away.worker(strike)
        assert doomed.ended() == KILLED, doomed.talk
    left = away.operation(one)
    assert (left["phase"], left["render_state"], left["delivery_state"]) == fate.left
    away.finish()
    away.check()
    end = away.operation(one)
    assert end["phase"] == ("accepted" if fate.delivered else "uncertain")
    if fate.delivered:
        saved_once(away, one)
    assert len(away.sim.posts) == 1
    assert not away.spool.exists() or list(away.spool.iterdir()) == []


@pytest.mark.timeout(120)
def test_a_worker_that_lives_replays_what_its_neighbour_left(away: Away) -> None:
    one, worker = away.spooled()
    neighbour = away.worker(until_idle=False, COATCHECK_WAKE="poll")
    worker.kill()
    away.comes()
    until(lambda: away.operation(one)["delivery_state"] == "delivered")
    saved_once(away, one)
    neighbour.terminate()
    assert neighbour.ended() == 0, neighbour.talk


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "create", [{"kind": "status", "status": 400}, {"kind": "status", "status": 500}], ids=["rejected", "doubted"]
)
def test_every_kind_of_reply_is_spooled(away: Away, create: dict[str, object]) -> None:
    one, worker = away.replied(job={**QUICK, "create": create})
    until(away.files)
    worker.kill()
    away.comes()
    away.work()
    away.check()
    rejected = create["status"] == 400
    assert away.operation(one)["phase"] == ("rejected" if rejected else "uncertain")
    (dispatch,) = away.dispatches(one)
    assert dispatch["http_status"] == create["status"]
    assert dispatch["ended_at"] is not None
    assert list(away.spool.iterdir()) == []


@pytest.mark.timeout(120)
def test_a_file_is_its_accounts_alone_and_holds_neither_key_nor_specification(away: Away) -> None:
    (one,) = away.enqueue(words="canary-text of a specification")
    worker = away.worker(Strike(point=Point.D11_PARSED, deed=Deed.STOP), until_idle=False, API_KEY="canary-key-77f0")
    worker.stopped()
    away.goes()
    worker.go_on()
    until(away.files)
    (file,) = away.files()
    (line,) = away.lines()
    status = file.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert stat.S_IMODE(away.spool.stat().st_mode) == 0o700
    assert status.st_uid == os.geteuid()
    assert b"canary" not in file.read_bytes() + line.exchange.body
    worker.kill()
    away.comes()
    away.work(API_KEY="canary-key-77f0")
    assert away.operation(one)["delivery_state"] == "delivered"


def test_a_worker_that_is_told_to_stop_at_once_leaves_its_reply_on_the_disk(stage: Stage) -> None:
    """The database only lets itself be waited for, so nobody knows it to be away."""
    (one,) = stage.enqueue()
    worker = stage.worker(Strike(point=Point.D11_PARSED, deed=Deed.STOP), until_idle=False)
    worker.stopped()
    with stage.database.connect() as gate, gate.transaction():
        gate.execute("lock table coatcheck.dispatches in share row exclusive mode")
        worker.go_on()
        until(lambda: stage.rows(LOCKED_OUT))
        worker.stop()
        worker.ended()
        (file,) = (stage.folder / "home" / "spool").iterdir()
        assert len(file.read_bytes().splitlines()) == 1, worker.talk
    stage.work()
    saved_once(stage, one)
    assert not file.exists()
