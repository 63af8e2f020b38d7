"""What waits, what was set aside and why, and taking it up again: free, on record, and under the rules that held before."""

import asyncio
from functools import partial
from typing import Any

import pytest

import postgres
from coatcheck import NotFound, StaleRevision, WrongPhase
from coatcheck.app.operating.operator import Operator
from coatcheck.core.operation import OperationId
from coatcheck.seams import Point
from coatcheck.workers.loop import BAD_LEASES
from faults.child import KILLED
from faults.stage import LEASES_OVER_S, QUICK
from faults.strike import Deed, Strike
from operating.office import WHY, Office
from operating.test_again import missing, stalled
from store.ground import Ground

FIELDS = {
    "message_id",
    "operation_id",
    "tenant_id",
    "provider",
    "account",
    "action",
    "phase",
    "lane",
    "visible_at",
    "lease_count",
    "leased_by",
    "leased_at",
    "wait_reason",
    "wait_since_at",
    "wait_count",
    "parked_at",
    "park_reason",
    "expected_revision",
    "last_error",
    "first_leased_at",
    "last_leased_at",
    "account_wait",
}


def poisoned(office: Office) -> str:
    """An operation whose message killed as many workers as it may."""
    operation = office.asked()
    for _ in range(BAD_LEASES):
        assert office.worker(Strike(point=Point.D2_LOADED)).ended() == KILLED
        office.database.move_time(LEASES_OVER_S)
    assert office.worker(Strike(point=Point.D2_LOADED)).ended() == 0
    return operation


def listed(office: Office, *words: str) -> list[dict[str, Any]]:
    ended = office.terminal().run("messages", *words, "--json")
    assert ended.code == 0, ended.err
    return ended.objects


def resumed(office: Office, message_id: str, **more: Any) -> Any:
    return office.asks(lambda eve: eve.resume(message_id, reason="mended", **more))


def given_back(office: Office, operation: str, count: int) -> bool:
    """Whether a handler's surprise gave the message back for the `count`th time."""
    lane = office.lane(operation)
    return bool((lane["lease_count"], lane["leased_by"]) == (count, None))


async def taken_up(message_id: str, eve: Operator) -> None:
    await eve.resume(message_id, reason="why")


def test_the_list_shows_what_waits_for_what_and_picks(office: Office) -> None:
    rendering = office.rendering()
    office.rows(
        "update coatcheck.providers set dispatch_paused_at = now(), dispatch_pause_reason = 'r', dispatch_paused_by = 'p' returning name"
    )
    paused = office.asked()
    office.work_until(lambda: office.lane(paused)["wait_reason"] == "pause", WAIT_S="0.1")
    both = listed(office, "list")
    assert [each["message_id"] for each in both] == [f"{rendering}.0", f"{paused}.0"]
    assert set(both[0]) == FIELDS
    assert [(each["action"], each["phase"], each["tenant_id"]) for each in both] == [
        ("observe", "accepted", "ada"),
        ("dispatch", "prepared", "ada"),
    ]
    assert [each["message_id"] for each in listed(office, "list", "--action", "observe")] == [f"{rendering}.0"]
    assert [each["message_id"] for each in listed(office, "list", "--waiting", "pause")] == [f"{paused}.0"]
    assert len(listed(office, "list", "--provider", "genace")) == 2
    assert listed(office, "list", "--provider", "nobody") == []
    assert listed(office, "parked") == []
    assert office.terminal().run("messages", "list", "--waiting", "gibberish").code == 2
    people = office.terminal().run("messages", "list").out
    assert f"{paused}.0" in people
    assert "pause" in people
    assert office.terminal().run("messages", "parked").err == "no message\n"


def test_what_killed_its_workers_is_listed_with_its_leases_and_taken_up_once_it_is_mended(office: Office) -> None:
    operation = poisoned(office)
    (parked,) = listed(office, "parked", "--reason", "lease_count")
    assert (parked["message_id"], parked["lease_count"], parked["last_error"]) == (f"{operation}.0", 5, "lease_ended")
    assert parked["first_leased_at"] < parked["last_leased_at"] <= parked["parked_at"]
    assert (parked["leased_by"], parked["phase"]) == (None, "prepared")
    before = office.standing(operation)["revision"]
    ended = office.terminal().run("messages", "resume", f"{operation}.0", *WHY, "--json")
    assert ended.code == 0, ended.err
    assert (ended.object["event"], ended.object["message_id"], ended.object["revision"]) == (
        "message_resumed",
        f"{operation}.0",
        before + 1,
    )
    told = office.newest(operation)
    assert (told["event"], told["actor"], told["reason"]) == ("message_resumed", "eve", "the customer called")
    lane = office.lane(operation)
    assert (lane["parked_at"], lane["lease_count"], lane["action"]) == (None, 0, "dispatch")
    office.work()
    assert (office.standing(operation)["delivery_state"], office.posts_of(operation)) == ("delivered", 1)
    office.audited()


def test_what_raised_is_listed_with_the_class_of_the_error_and_never_its_text(office: Office) -> None:
    operation = office.asked()
    for count in range(1, BAD_LEASES + 1):
        office.work_until(partial(given_back, office, operation, count), Strike(point=Point.D2_LOADED, deed=Deed.RAISE))
        assert office.lane(operation)["last_error"] == "Unforeseen"
        office.database.move_time(LEASES_OVER_S)
    office.work(Strike(point=Point.D2_LOADED, deed=Deed.RAISE))
    (parked,) = listed(office, "parked")
    assert (parked["park_reason"], parked["last_error"], parked["lease_count"]) == ("lease_count", "Unforeseen", 5)
    resumed(office, f"{operation}.0")
    office.work()
    assert office.lane_count == 0
    assert office.posts_of(operation) == 1


def test_a_service_that_fails_again_and_again_spends_no_count(office: Office) -> None:
    operation = office.asked(job={**QUICK, "look": {"kind": "status", "status": 503, "times": 4}})
    counts: list[int] = []

    def has_failed_a_few_times() -> bool:
        lane = office.rows("select lease_count, wait_reason, wait_count from coatcheck.outbox")[0]
        counts.append(lane["lease_count"])
        return bool(lane["wait_reason"] == "transient" and lane["wait_count"] > 2)

    office.work_until(has_failed_a_few_times)
    assert max(counts) <= 1
    office.work()
    assert office.standing(operation)["delivery_state"] == "delivered"


def test_what_is_still_broken_is_set_aside_again(office: Office) -> None:
    operation = office.asked()
    with office.database.connect() as connection:
        connection.execute("alter table coatcheck.specifications disable trigger user")
    kept = office.one("select specification_text as text from coatcheck.specifications")["text"]
    change = "update coatcheck.specifications set specification_text = %s returning operation_id"
    office.rows(change, "{}")
    office.work()
    assert listed(office, "parked", "--reason", "specification")[0]["message_id"] == f"{operation}.0"
    resumed(office, f"{operation}.0")
    office.work()
    assert office.lane(operation)["park_reason"] == "specification"
    assert office.sim.posts == ()
    office.rows(change, kept)
    resumed(office, f"{operation}.0")
    office.work()
    assert (office.posts_of(operation), office.standing(operation)["delivery_state"]) == (1, "delivered")


@pytest.mark.parametrize("park", ["missing", "stalled"])
def test_a_look_that_was_given_up_is_taken_up_with_a_new_deadline(office: Office, park: str) -> None:
    operation = missing(office) if park == "missing" else stalled(office, {"queued_s": 0, "processing_s": 1})
    (parked,) = listed(office, "parked", "--reason", park)
    resumed(office, parked["message_id"])
    office.work()
    assert office.standing(operation)["delivery_state"] == "delivered"
    assert office.posts_of(operation) == 1


def test_a_look_that_was_set_aside_for_its_leases_keeps_its_deadline_and_what_it_waits_for(office: Office) -> None:
    operation = office.asked(job={"queued_s": 0, "processing_s": 0, "outcome": "failed"})
    office.work()
    lane = office.lane(operation) if office.lane_count else None
    # the service told its charge at once, so nothing is owed any more
    assert lane is None
    going = office.rendering()
    deadline = office.standing(going)["observe_by_at"]
    office.rows(
        "update coatcheck.outbox set parked_at = now(), park_reason = 'lease_count', wait_reason = 'no_output' returning lane"
    )
    resumed(office, f"{going}.0")
    assert office.standing(going)["observe_by_at"] == deadline
    assert (office.lane(going)["park_reason"], office.lane(going)["wait_reason"]) == (None, "no_output")


def test_a_delivery_that_was_set_aside_is_tried_again_by_itself(office: Office) -> None:
    operation = office.undelivered(2, output={"kind": "status", "status": 500, "times": 4})
    parked = listed(office, "parked", "--reason", "delivery_failed")
    assert [(each["message_id"], each["last_error"]) for each in parked] == [
        (f"{operation}.1", "status"),
        (f"{operation}.2", "status"),
    ]
    resumed(office, f"{operation}.2")
    office.work()
    states = office.rows("select state from coatcheck.deliveries order by output_index")
    assert [row["state"] for row in states] == ["failed", "delivered"]
    assert office.posts_of(operation) == 1
    office.audited()


def test_doubt_is_never_taken_up(office: Office) -> None:
    operation = office.in_doubt()
    error = office.refused(WrongPhase, lambda eve: eve.resume(f"{operation}.0", reason="please"))
    assert f"coatcheck reconcile show {operation}" in error.next
    ended = office.terminal().run("messages", "resume", f"{operation}.0", *WHY, "--json")
    assert (ended.code, ended.error["code"]) == (1, "wrong_phase")
    assert office.posts_of(operation) == 1


def test_what_may_have_been_sent_becomes_doubt_and_nothing_is_sent(database: postgres.Database, office: Office) -> None:
    operation = office.asked()
    with Ground(database) as ground:
        ground.mark(OperationId(office.uuid(operation)))
    office.rows(
        "update coatcheck.outbox set parked_at = now(), park_reason = 'lease_count', leased_by = null, leased_at = null returning lane"
    )
    made = resumed(office, f"{operation}.0")
    assert "uncertain" in made.next
    office.work()
    assert (office.standing(operation)["phase"], office.sim.posts) == ("uncertain", ())


def test_of_a_dispatch_that_was_taken_up_a_cancellation_may_still_win(office: Office) -> None:
    operation = poisoned(office)
    resumed(office, f"{operation}.0")
    assert office.asks(lambda eve: eve.cancel(operation, reason="over")).operation.phase == "cancelled"
    office.work()
    assert office.sim.posts == ()


def test_what_is_live_or_unknown_is_not_taken_up(office: Office) -> None:
    operation = office.asked()
    live = office.refused(WrongPhase, lambda eve: eve.resume(f"{operation}.0", reason="why"))
    assert "not set aside" in live.message
    for unknown in (
        f"{operation}.1",
        operation,
        f"{operation}.",
        f"{operation}.-1",
        f"{operation}.99999",
        "op_x.0",
        "",
    ):
        office.refused(NotFound, partial(taken_up, unknown))


def test_several_are_taken_up_each_by_itself(office: Office) -> None:
    first, second = office.undelivered(), office.asked()
    ended = office.terminal().run("messages", "resume", f"{first}.1", f"{second}.0", "nonsense", *WHY, "--json")
    assert ended.code == 1
    assert [(each.get("message_id"), each["result"], each.get("code")) for each in ended.objects] == [
        (f"{first}.1", "done", None),
        (f"{second}.0", "refused", "wrong_phase"),
        ("nonsense", "refused", "not_found"),
    ]
    for words in ((), (f"{first}.1", f"{first}.1"), (f"{first}.1", f"{second}.0", "--revision", "1")):
        refusal = office.terminal().run("messages", "resume", *words, *WHY, "--json")
        assert (refusal.code, refusal.error["code"]) == (2, "refused")


def test_of_two_who_take_up_the_same_one_is_told_that_it_is_live(office: Office) -> None:
    operation = office.undelivered()
    seen = office.standing(operation)["revision"]

    async def both(eve: Any) -> list[Any]:
        calls = (eve.resume(f"{operation}.1", reason=str(number), revision=seen) for number in range(2))
        return await asyncio.gather(*calls, return_exceptions=True)

    answers = office.asks(both)
    assert sorted(isinstance(answer, StaleRevision | WrongPhase) for answer in answers) == [False, True]
    assert office.tale(operation).count("message_resumed") == 1


def test_a_list_longer_than_a_page_has_every_message_once(office: Office) -> None:
    office.rows(
        "insert into coatcheck.outbox (operation_id, lane, action, provider, expected_revision, visible_at)"
        " select coatcheck.new_id(), lane, 'deliver', 'genace', 0, now() from generate_series(1, 400) as n,"
        " generate_series(1, 3) as lane returning lane"
    )

    async def ids(eve: Any) -> list[str]:
        return [message.message_id async for message in eve.messages()]

    found = office.asks(ids)
    assert len(found) == len(set(found)) == 1200
    office.rows("delete from coatcheck.outbox returning lane")
