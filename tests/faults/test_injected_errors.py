"""Every statement that a worker executes fails with every error that PostgreSQL has for it, before and after its effect.

Each run is one whole day of a worker: everything that it may have to do is there, and the nth execution of every statement is struck. What
the error calls for is in a table; whatever it was, nothing is sent twice, nothing is lost, and everything ends.
"""

import json
import logging
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import psycopg
import pytest

from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId
from coatcheck.errors import CoatcheckError
from coatcheck.store.db import Trouble
from faults.answering import Answering, Injection, Moment, answering
from faults.stage import ALWAYS, LEASES_OVER_S, Stage
from figures import Report
from store.ground import Ground
from store.host import Host, kept

CALLS_FOR = {
    "40001": Trouble.AGAIN,
    "40P01": Trouble.AGAIN,
    "55P03": Trouble.LOCKED,
    "57014": Trouble.UNKNOWN,
    "57P01": Trouble.UNKNOWN,
    "25P03": Trouble.UNKNOWN,
    "53300": Trouble.UNKNOWN,
    "08006": Trouble.UNKNOWN,
}
"""What the committer makes of each: the same batch again, put back, or found out what is there."""
AT_THE_START = {"store/register_providers", "store/read_installation"}
"""Before anything is leased a worker does not start where the database fails; whoever started it starts it again."""
STRUCK = {
    *(f"queue/{name}" for name in ("acknowledge", "claim", "left", "park", "release", "retry_waiting", "sleep")),
    *(f"store/{name}" for name in ("mark", "conclude", "snapshot", "deliver", "decide")),
    *(f"store/{name}" for name in ("load_subjects", "note_incidents", "report_looks", "trace_end")),
    *(f"store/{name}" for name in ("check_installation", "list_providers", "report_worker")),
    *AT_THE_START,
}
"""Every statement of a whole day; each is struck in each run."""
OFTEN = {"queue/claim", "store/mark", "store/conclude", "store/snapshot"}
"""What a day brings more than once, however much is gathered into one batch."""
ONLY_AFTER_A_FAILURE = {"store/resolve", "store/find_sessions"}
"""What finds out what became of a failed one. Struck where a run comes to it."""
SAMPLE = [
    Injection(sqlstate="40001", moment=Moment.BEFORE),
    Injection(sqlstate="57014", moment=Moment.AFTER),
    Injection(sqlstate="08006", moment=Moment.AFTER),
]
STEPS = [f"store/{name}" for name in ("mark", "conclude", "snapshot", "deliver", "decide")]
STILL_S = 1.5
STARTS = 6
LOOKED_AT_OFTEN = {"queued_s": 0, "processing_s": 1}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A sample for every change, everything in the laboratory."""
    if "injection" in metafunc.fixturenames:
        everything = [
            Injection(sqlstate=state, moment=moment, nth=nth)
            for state in CALLS_FOR
            for moment in Moment
            for nth in (1, 2)
        ]
        chosen = everything if metafunc.config.getoption("--lab") else SAMPLE
        metafunc.parametrize("injection", chosen, ids=lambda each: f"{each.sqlstate}-{each.moment.name}-{each.nth}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """All that a worker finds in the morning, by what is to become of it."""

    delivered: list[UUID]
    rejected: UUID
    uncertain: UUID
    waiting: UUID
    parked: UUID
    closed: UUID


def day_of(stage: Stage, ground: Ground) -> Day:
    plain = stage.enqueue(LOOKED_AT_OFTEN, count=2)
    (throttled,) = stage.enqueue({**LOOKED_AT_OFTEN, "create": {"kind": "throttled", "times": 1}})
    (odd,) = stage.enqueue({**LOOKED_AT_OFTEN, "look": {"kind": "unknown_word", "times": 1}})
    (failing,) = stage.enqueue({**LOOKED_AT_OFTEN, "look": {"kind": "status", "status": 500, "times": 2}})
    (rejected,) = stage.enqueue({"create": {"kind": "status", "status": 422}})
    (parked,) = stage.enqueue()
    stage.rows(
        "update coatcheck.operations set specification_hash = sha256('another') where operation_id = %s returning 1",
        parked,
    )
    # its claim cannot tell what it is about, as where somebody changed it meanwhile
    stage.rows(
        "update coatcheck.outbox set expected_revision = expected_revision + 1 where operation_id = %s returning 1", odd
    )
    return Day(
        delivered=[*plain, throttled, odd, failing, spooled(stage, ground)],
        rejected=rejected,
        uncertain=abandoned_by_its_worker(stage, ground),
        waiting=too_dear(stage, ground),
        parked=parked,
        closed=cancelled_with_a_message_left(stage, ground),
    )


def abandoned_by_its_worker(stage: Stage, ground: Ground) -> UUID:
    """Marked by a worker that died at once; its lease has ended."""
    (one,) = stage.enqueue()
    ground.mark(OperationId(one))
    return one


def spooled(stage: Stage, ground: Ground) -> UUID:
    """Sent by a worker of this host that died with the reply on its disk."""
    (one,) = stage.enqueue(LOOKED_AT_OFTEN)
    dispatch_id = ground.mark(OperationId(one))
    reply = ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId(posted(stage, one)))
    record = kept(ground.operation(OperationId(one)), reply)
    Host(ground, stage.folder / "home").left(record)
    return one


def posted(stage: Stage, operation_id: UUID) -> str:
    """The job that a POST of this operation makes."""
    text = stage.one("select specification_text from coatcheck.specifications where operation_id = %s", operation_id)
    request = urllib.request.Request(
        f"{stage.sim.base_url}/api/v1/jobs",
        data=text["specification_text"].encode(),
        headers={"authorization": f"Bearer {ALWAYS['API_KEY']}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as reply:
        return str(json.load(reply)["job_id"])


def too_dear(stage: Stage, ground: Ground) -> UUID:
    """Waits for an allowance that nobody gives."""
    ground.sql(
        "insert into coatcheck.allowances (tenant_id, unit, ceiling, set_by, updated_at) values ('poor', 'credits', 0, 'day', now())"
    )
    return ground.enqueue("dear", tenant_id="poor", estimate="5", specification_text='{"prompt":"dear"}')


def cancelled_with_a_message_left(stage: Stage, ground: Ground) -> UUID:
    """A message of something that is closed: there is nothing to do but to acknowledge it."""
    one = ground.enqueue("closed", specification_text='{"prompt":"closed"}')
    ground.happen(one, ev.Cancel(actor="ada", reason="day"))
    ground.sql(
        "insert into coatcheck.outbox (operation_id, lane, action, provider, expected_revision, visible_at, tenant_id)"
        " values (%s, 0, 'dispatch', 'genace', 1, coatcheck.lease_now(), 't1')",
        one,
    )
    return one


def worked(stage: Stage, place: Answering, url: str) -> None:
    """Let a worker do all that is due, and start it again as often as it does not start."""
    direct, stage.url = stage.url, url
    with leases_ending(stage, place):
        for _ in range(STARTS):
            try:
                stage.work(WAIT_PARAM="")
            except (psycopg.Error, CoatcheckError):
                # one that is refused at the door may be any that opens its connection at the start
                assert place.is_at_the_door or not {*place.injected}.isdisjoint(AT_THE_START), place.injected
            else:
                break
    stage.url = direct


@contextmanager
def leases_ending(stage: Stage, place: Answering) -> Iterator[None]:
    """A claim whose answer was lost leaves leases that nobody knows of: time passes as soon as nothing else happens."""
    ended = threading.Event()

    def watch() -> None:
        before = -1
        while not ended.wait(STILL_S):
            happened = sum(place.executed[name] for name in STEPS)
            if happened == before:
                stage.database.move_time(LEASES_OVER_S)
            before = happened

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def test_whatever_fails_and_when_nothing_is_sent_twice_and_everything_ends(
    stage: Stage, injection: Injection, caplog: pytest.LogCaptureFixture, figures: Report
) -> None:
    stage.rows("update coatcheck.providers set doubt_limit = null returning name")
    with Ground(stage.database) as ground:
        day = day_of(stage, ground)
        stage.database.move_time(LEASES_OVER_S)
        ground.run(ground.line.close())
        with (
            answering(stage.database.url, injection, sorted(STRUCK | ONLY_AFTER_A_FAILURE)) as (place, url),
            caplog.at_level(logging.WARNING),
        ):
            worked(stage, place, url)
    stage.finish()
    figures("injected SQLSTATEs", len(place.injected))
    expected = STRUCK if injection.nth == 1 else OFTEN
    assert STRUCK >= set(place.injected) - ONLY_AFTER_A_FAILURE >= expected, expected - set(place.injected)
    it_was_read_rightly(injection, caplog)
    the_day_ended(stage, day, injection)


def it_was_read_rightly(injection: Injection, caplog: pytest.LogCaptureFixture) -> None:
    """The committer said what it made of each injected error, and it is what the table says."""
    said = [vars(record) for record in caplog.records if record.getMessage() == "batch failed"]
    assert said
    ours = [each["trouble"] for each in said if each["sqlstate"] == injection.sqlstate]
    assert {*ours} <= {CALLS_FOR[injection.sqlstate].name}
    assert ours or injection.sqlstate == "53300"


def the_day_ended(stage: Stage, day: Day, injection: Injection) -> None:
    stage.check()
    record = stage.record()

    def state(operation_id: UUID) -> tuple[str, str, int]:
        operation = record.operations[operation_id]
        return operation["phase"], operation["delivery_state"], len(record.posts_of(operation_id))

    for each in day.delivered:
        phase, delivery, posts = state(each)
        throttled = {row["outcome"] for row in record.dispatches[each]} >= {"throttled"}
        assert (phase, delivery, posts) == ("accepted", "delivered", 1 + throttled) or (
            # an error after a mark took effect is a lie that no server tells: the mark is found by whoever marks again, and nothing is sent
            injection.moment is Moment.AFTER and (phase, delivery, posts) == ("uncertain", "not_started", throttled)
        )
    doubt = {"uncertain"} if injection.moment is Moment.AFTER else set()
    assert state(day.rejected)[0] in {"rejected"} | doubt
    assert state(day.uncertain) == ("uncertain", "not_started", 0)
    assert state(day.waiting) == ("prepared", "not_started", 0)
    assert state(day.parked) == ("prepared", "not_started", 0)
    assert state(day.closed) == ("cancelled", "not_started", 0)
    assert day.closed not in record.lanes
