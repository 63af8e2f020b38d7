"""A lease names its token and its holder: what was lost writes nothing, and says so."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.actions import Action, ParkReason, WaitReason
from coatcheck.core.operation import RemoteJobId, RenderState
from coatcheck.queue.leases import Acknowledge, Message, Release, SetAside
from coatcheck.store.statements import statement
from store.ground import ACCOUNT, Ground, look
from waiting import until

Ending = Callable[[Ground, list[Message]], list[bool]]
ENDINGS: dict[str, Ending] = {
    "renew": lambda ground, messages: [
        slot in ground.run(ground.leases.renew(messages)) for slot in [each.slot for each in messages]
    ],
    "release": lambda ground, messages: ground.run(
        ground.leases.release([Release(message=each, delay_s=5) for each in messages])
    ),
    "acknowledge": lambda ground, messages: ground.run(
        ground.leases.acknowledge([Acknowledge(message=each) for each in messages])
    ),
    "park": lambda ground, messages: ground.run(
        ground.leases.park([SetAside(message=each, reason=ParkReason.LEASE_COUNT) for each in messages])
    ),
}


@pytest.fixture
def ends(ground: Ground, request: pytest.FixtureRequest) -> Ending:
    return ENDINGS[request.param]


@pytest.mark.parametrize("ends", [word for word in ENDINGS if word != "acknowledge"], indirect=True)
def test_only_what_is_still_held_is_written_and_the_rest_is_named(ground: Ground, ends: Ending) -> None:
    ground.enqueue_many(5)
    mine, claimed_again, aimed_anew, of_another, given_back = ground.claim(Action.DISPATCH)
    ground.sql(
        "update coatcheck.outbox set lease_token = nextval('coatcheck.lease_tokens') where operation_id = %s",
        claimed_again.operation_id,
    )
    ground.mark(aimed_anew.operation_id)
    ground.sql("update coatcheck.outbox set leased_by = 'other' where operation_id = %s", of_another.operation_id)
    ground.run(ground.leases.release([Release(message=given_back, delay_s=0)]))
    before = {row["operation_id"]: row for row in ground.sql("select * from coatcheck.outbox")}
    assert ends(ground, [given_back, of_another, mine, aimed_anew, claimed_again]) == [False, False, True, False, False]
    after = {row["operation_id"]: row for row in ground.sql("select * from coatcheck.outbox")}
    assert {key for key in before if before[key] != after.get(key)} == {mine.operation_id}


def test_an_acknowledged_lane_is_gone_unless_it_was_lost(ground: Ground) -> None:
    for operation_id in ground.enqueue_many(2):
        ground.happen(operation_id, look(ground.accept(operation_id), RenderState.FAILED))
    done, lost = ground.claim(Action.OBSERVE)
    ground.sql(
        "update coatcheck.outbox set lease_token = nextval('coatcheck.lease_tokens') where operation_id = %s",
        lost.operation_id,
    )
    assert ENDINGS["acknowledge"](ground, [done, lost]) == [True, False]
    assert [row["operation_id"] for row in ground.sql("select operation_id from coatcheck.outbox")] == [
        lost.operation_id
    ]


@pytest.mark.parametrize("ends", ["renew", "release"], indirect=True)
def test_time_is_counted_from_after_the_wait_for_a_lock(
    database: postgres.Database, ground: Ground, ends: Ending
) -> None:
    """A lease set from the start of a statement that waited would be short by the wait (measured: 0.2 s left of 2)."""
    ground.enqueue("k")
    (message,) = ground.claim(Action.DISPATCH, lease_s=5)
    with ThreadPoolExecutor(1) as pool, database.connect() as other:
        with other.transaction():
            other.execute("select from coatcheck.outbox for no key update")
            ending = pool.submit(ends, ground, [message])
            watching = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
            until(lambda: ground.connection.execute(watching).fetchall())
            waited = other.execute("select clock_timestamp()").fetchone()
        assert ending.result(timeout=20) == [True]
    assert waited is not None
    row = ground.one("outbox", message.operation_id)
    assert (row["visible_at"] - waited[0]).total_seconds() > 5


def released(ground: Ground, reason: WaitReason | None, *, forgives: bool = True) -> dict[str, Any]:
    (message,) = ground.claim(Action.DISPATCH)
    assert ground.run(
        ground.leases.release([Release(message=message, delay_s=0, reason=reason, forgives=forgives)])
    ) == [True]
    return ground.one("outbox", message.operation_id)


def test_a_run_of_one_reason_counts_up_and_keeps_its_beginning(ground: Ground) -> None:
    ground.enqueue("k")
    rows = [released(ground, WaitReason.TRANSIENT) for _ in range(3)]
    assert [row["wait_count"] for row in rows] == [1, 2, 3]
    assert len({row["wait_since_at"] for row in rows}) == 1
    other = released(ground, WaitReason.NOT_FOUND)
    assert (other["wait_count"], other["wait_since_at"] > rows[0]["wait_since_at"]) == (1, True)


def test_what_is_given_back_without_a_reason_goes_on_waiting_for_what_it_waited_for(ground: Ground) -> None:
    """A drained worker or a stale save must not lose that a look is owed, nor how long something has lasted."""
    ground.enqueue("k")
    fresh = released(ground, None)
    assert (fresh["wait_reason"], fresh["wait_since_at"], fresh["wait_count"]) == (None, None, 0)
    waiting = released(ground, WaitReason.ACCOUNTING)
    for forgives in (True, False):
        back = released(ground, None, forgives=forgives)
        assert [back[name] for name in ("wait_reason", "wait_since_at", "wait_count")] == [
            waiting[name] for name in ("wait_reason", "wait_since_at", "wait_count")
        ]


def test_only_bad_ends_of_leases_are_counted(ground: Ground) -> None:
    ground.enqueue("k")
    assert [released(ground, None, forgives=False)["lease_count"] for _ in range(3)] == [1, 2, 3]
    assert released(ground, None)["lease_count"] == 0
    assert released(ground, None, forgives=False)["lease_count"] == 1


def test_a_parked_message_stays_until_a_person_resumes_it(database: postgres.Database, ground: Ground) -> None:
    ground.enqueue("k")
    (message,) = ground.claim(Action.DISPATCH)
    assert ENDINGS["park"](ground, [message]) == [True]
    database.move_time(86_400 * 365)
    assert ground.claim(Action.DISPATCH) == []
    assert ENDINGS["release"](ground, [message]) == [False]


def test_tokens_of_a_lane_only_rise_through_a_whole_life(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    tokens = [ground.one("outbox", operation_id)["lease_token"]]
    for event in ("claim", "mark", "throttled", "claim", "mark", "accept", "claim"):
        match event:
            case "claim":
                assert len(ground.claim(Action.DISPATCH) + ground.claim(Action.OBSERVE)) == 1
            case "mark":
                ground.mark(operation_id)
            case _:
                dispatch_id = ground.operation(operation_id).dispatch_id
                assert dispatch_id is not None
                reply: ev.Event = ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None)
                if event == "accept":
                    reply = ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId("j"))
                assert ground.happen(operation_id, reply).applied
        tokens.append(ground.one("outbox", operation_id)["lease_token"])
    assert tokens == sorted(set(tokens))


# -- waiting for a pause -----------------------------------------------------------------------------------------------


def left(ground: Ground) -> dict[str, Any]:
    parameters = {
        "action": ["dispatch", "observe", "deliver"],
        "provider": ["genace"],
        "account": [ACCOUNT],
        "schema_version": [1],
    }
    (row,) = ground.run(ground.line.fetch(statement("queue", "left"), parameters))
    return row


def test_what_is_left_tells_work_from_what_waits_for_a_person_or_a_day(ground: Ground) -> None:
    assert left(ground) == {"left_count": 0, "waiting_count": 0, "next_s": None}
    due, parked, waiting, accounting, foreign = ground.enqueue_many(5)
    ground.sql(
        "update coatcheck.outbox set parked_at = now(), park_reason = 'lease_count' where operation_id = %s", parked
    )
    ground.sql(
        "update coatcheck.outbox set wait_reason = 'pause', visible_at = now() + interval '1 min' where operation_id = %s",
        waiting,
    )
    ground.sql(
        "update coatcheck.outbox set wait_reason = 'accounting', action = 'observe' where operation_id = %s", accounting
    )
    ground.sql("update coatcheck.outbox set provider = 'other' where operation_id = %s", foreign)
    ground.sql("update coatcheck.outbox set visible_at = now() + interval '1 h' where operation_id = %s", due)
    row = left(ground)
    assert (row["left_count"], row["waiting_count"]) == (1, 1)
    assert 3500 < row["next_s"] <= 3600


def test_what_waits_for_a_pause_is_left_until_it_was_tried_unless_a_full_account_lets_nobody_try(
    ground: Ground,
) -> None:
    waiting, _ = ground.enqueue_many(2)
    ground.sql("insert into coatcheck.accounts (account) values ('genace') on conflict do nothing")
    ground.sql("update coatcheck.outbox set wait_reason = 'pause' where operation_id = %s", waiting)
    ground.sql(
        "update coatcheck.providers set dispatch_paused_at = now(), dispatch_pause_reason = 'r', dispatch_paused_by = 'p'"
    )
    assert (left(ground)["left_count"], left(ground)["waiting_count"]) == (2, 0)
    ground.sql("update coatcheck.accounts set max_in_flight = 0")
    assert ground.claim(Action.DISPATCH) == []
    assert left(ground) == {"left_count": 0, "waiting_count": 2, "next_s": None}
    ground.sql(
        "update coatcheck.providers set dispatch_paused_at = null, dispatch_pause_reason = null, dispatch_paused_by = null"
    )
    assert left(ground)["left_count"] == 2, "a budget alone is no pause"


def test_what_waits_is_tried_once_more_on_demand_unless_somebody_has_it(ground: Ground) -> None:
    waiting, leased, transient = ground.enqueue_many(3)
    ground.sql("update coatcheck.outbox set visible_at = now() + interval '1 h'")
    ground.sql("update coatcheck.outbox set wait_reason = 'pause' where operation_id in (%s, %s)", waiting, leased)
    ground.sql("update coatcheck.outbox set wait_reason = 'transient' where operation_id = %s", transient)
    ground.sql("update coatcheck.outbox set leased_by = 'other', leased_at = now() where operation_id = %s", leased)
    ground.run(ground.line.fetch(statement("queue", "retry_waiting"), {"provider": ["genace"]}))
    assert [message.operation_id for message in ground.claim(Action.DISPATCH)] == [waiting]


def test_a_message_of_another_holder_is_not_mine_by_its_token_alone(ground: Ground) -> None:
    ground.enqueue("k")
    (message,) = ground.claim(Action.DISPATCH)
    with Ground(ground.database, "thief") as thief:
        for ending in ENDINGS.values():
            assert ending(thief, [replace(message)]) == [False]
    assert ENDINGS["renew"](ground, [message]) == [True]
