"""The server's disk is full: new work is refused or waits, a reply that came lies in the spool, and with space everything goes on."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from coatcheck.seams import Point
from coatcheck.sim import ThreadedService
from faults.away import Away, own_server
from faults.shortage import short_of
from faults.stage import LEASES_OVER_S
from faults.strike import Deed, Strike
from figures import Report
from waiting import until

IN_FLIGHT = 40
SLOW = {"queued_s": 0, "processing_s": 0.1, "create": {"kind": "stall", "seconds": 4}}
LEFT = "select from coatcheck.outbox where parked_at is null"


@pytest.fixture
def away(sim: ThreadedService, pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Away]:
    with (
        own_server(str(pytestconfig.getoption("--pg")), tmp_path / "server") as server,
        Away(server, sim, tmp_path) as stage,
    ):
        yield stage


@pytest.mark.timeout(180)
@pytest.mark.parametrize("what", ["tables", "log"])
def test_a_full_disk_costs_no_post_and_no_id_and_whatever_waited_goes_on(
    away: Away, what: str, figures: Report
) -> None:
    with short_of(what, away) as space:
        sent = away.enqueue(SLOW, count=IN_FLIGHT)
        worker = away.worker(
            Strike(point=Point.D11_PARSED, deed=Deed.STOP),
            until_idle=False,
            TIMEOUT_S="40",
            COATCHECK_CONCURRENCY__DISPATCH=str(IN_FLIGHT),
        )
        # with a reply in its hand and many others on their way: so many cannot all be saved in what is left of pages
        worker.stopped()
        on_their_way = [each for each in sent if away.posts(each)]
        space.begins()
        refused(away)
        worker.go_on()
        until(away.files)
        space.ends()
        away.comes()
        (late,) = away.enqueue()
        until(lambda: delivered(away, *on_their_way, late), deadline_s=60)
        away.database.move_time(LEASES_OVER_S)
        until(lambda: not away.rows(LEFT), deadline_s=60)
        worker.terminate()
        assert worker.ended() == 0, worker.talk
        away.check()
        assert {away.posts(each) for each in (*on_their_way, late)} == {1}
        assert {away.posts(each) for each in sent} <= {0, 1}
        assert away.files() == []
        figures(f"full disks: {space.kind}", 1)


def delivered(away: Away, *operation_ids: UUID) -> bool:
    return {away.operation(each)["delivery_state"] for each in operation_ids} == {"delivered"}


def refused(away: Away) -> None:
    """New work comes in until there is no room for it; who brought it is told."""
    with pytest.raises(psycopg.OperationalError):
        brought_in(away)


def brought_in(away: Away) -> None:
    for _ in range(1_000):
        away.enqueue(count=10)
        # what is left of a segment of the log is no room
        away.rows("select pg_switch_wal()")
