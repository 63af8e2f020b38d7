"""Proving absent, redispatching and writing off: what each costs, when it is possible, and that only one person decides."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

import pytest

from coatcheck import (
    CandidateExists,
    Failed,
    NotQuiescent,
    Refused,
    SecondPerson,
    StaleRevision,
    StillLooking,
    Unavailable,
    WrongPhase,
)
from coatcheck.app.reconciling import Decision, Doubt, OperatorDecisions
from coatcheck.config import load_settings
from faults.stage import QUICK
from reconcile.scene import Scene
from reconcile.test_adopting import refused

BY_TWO = {"COATCHECK_REDISPATCH_BY_TWO": "true"}


def prove_absent(scene: Scene, operation: str) -> Decision:
    return scene.decides(lambda eve: eve.prove_absent(operation, reason="not on the bill"))


def redispatch(scene: Scene, operation: str, *, actor: str = "eve", **more: str) -> Decision:
    return scene.decides(lambda eve: eve.redispatch(operation, reason="needed today"), actor=actor, **more)


def write_off(scene: Scene, operation: str, *, released: bool = False) -> Decision:
    return scene.decides(lambda eve: eve.write_off(operation, reason="not needed", released=released))


def test_a_job_proven_absent_releases_its_hold_and_leads_to_one_more_post(scene: Scene) -> None:
    operation = scene.quiet(created=False)
    made = prove_absent(scene, operation)
    assert (made.event, made.operation.phase, made.authorises) == ("proven_absent", "prepared", True)
    assert (made.released, made.spent, made.estimate, made.unit) == (Decimal(5), Decimal(0), Decimal(5), "credits")
    assert "one more POST is authorised" in made.next
    assert scene.money() == (0, 0)
    for _ in range(3):
        scene.finish()
    end = scene.standing(operation)
    assert (end["phase"], end["delivery_state"], end["authorisation"]) == ("accepted", "delivered", 2)
    assert (scene.posts_of(operation), scene.money()) == (2, (0, 5))
    assert [row["outcome"] for row in scene.dispatches(scene.uuid(operation))] == ["proven_absent", "accepted"]


def test_what_was_withdrawn_is_sent_again_only_because_a_person_said_so_and_they_are_told(scene: Scene) -> None:
    operation = scene.quiet(created=False, dispatch_by_at="2999-01-01T00:00:00Z")
    scene.rows("update coatcheck.operations set cancel_requested_at = now() returning revision")
    made = prove_absent(scene, operation)
    assert made.cleared == ("cancel", "deadline")
    assert "the wish to cancel it and the deadline for sending it no longer counts" in made.next
    scene.work()
    assert scene.posts_of(operation) == 2


@pytest.mark.parametrize("decide", [prove_absent, redispatch], ids=lambda each: each.__name__)
def test_until_nothing_can_arrive_any_more_no_post_is_authorised(
    slow_scene: Scene, decide: Callable[[Scene, str], Decision]
) -> None:
    operation = slow_scene.in_doubt(created=False)
    quiescent_at: datetime = slow_scene.dispatches(slow_scene.uuid(operation))[0]["quiescent_at"]
    told = refused(slow_scene, NotQuiescent, lambda: decide(slow_scene, operation))
    whole = quiescent_at + timedelta(seconds=1) if quiescent_at.microsecond else quiescent_at
    assert f"until {whole:%Y-%m-%dT%H:%M:%S}Z, in 3" in told
    slow_scene.database.move_time(3601)
    assert decide(slow_scene, operation).authorises
    slow_scene.work()
    assert slow_scene.posts_of(operation) == 2


def test_a_redispatch_states_its_cost_and_leaves_the_former_dispatch_as_spent(scene: Scene) -> None:
    operation = scene.quiet()
    cost = scene.decides(lambda eve: eve.redispatch_cost(operation))
    assert (cost.spent, cost.estimate, cost.unit) == (Decimal(5), Decimal(5), "credits")
    made = redispatch(scene, operation)
    assert (made.event, made.authorises) == ("redispatch_authorised", True)
    assert (made.spent, made.released) == (Decimal(5), Decimal(0))
    assert scene.money() == (0, 5)
    scene.work()
    assert (scene.posts_of(operation), scene.money()) == (2, (0, 10))
    assert scene.standing(operation)["authorised_by"] == "eve"


def test_two_persons_are_needed_where_a_setting_says_so(scene: Scene) -> None:
    operation = scene.quiet()
    first = redispatch(scene, operation, **BY_TWO)
    assert (first.result, first.event, first.operation.phase) == ("requested", "redispatch_requested", "uncertain")
    assert "somebody else has to run" in first.next
    for actor in ("eve", "EVE", "e\u200bve", "\uff45\uff56\uff45"):
        refused(scene, SecondPerson, partial(redispatch, scene, operation, actor=actor, **BY_TWO))
    scene.work()
    assert scene.posts_of(operation) == 1
    second = redispatch(scene, operation, actor="max", **BY_TWO)
    assert (second.result, second.event) == ("done", "redispatch_authorised")
    assert scene.happened(operation) == ["redispatch_requested", "redispatch_authorised"]
    scene.work()
    assert scene.posts_of(operation) == 2


def test_anything_that_happens_in_between_needs_a_new_request(scene: Scene) -> None:
    operation = scene.quiet()
    redispatch(scene, operation, **BY_TWO)
    scene.rows(
        "with moved as (update coatcheck.operations set revision = revision + 1 returning *)"
        " insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state,"
        " to_render_state, from_delivery_state, to_delivery_state) select operation_id, revision, 'cancel_requested', 'max', now(), phase,"
        " phase, render_state, render_state, delivery_state, delivery_state from moved returning revision"
    )
    assert redispatch(scene, operation, actor="max", **BY_TWO).result == "requested"


def test_what_was_refused_by_the_service_may_be_sent_again_at_the_cost_of_one_post(scene: Scene) -> None:
    operation = scene.asked(job={**QUICK, "create": {"kind": "status", "status": 422, "times": 1}})
    scene.work()
    assert scene.standing(operation)["phase"] == "rejected"
    scene.database.move_time(60)
    assert scene.decides(lambda eve: eve.redispatch_cost(operation)).spent == 0
    assert redispatch(scene, operation).spent == 0
    scene.work()
    assert (scene.standing(operation)["phase"], scene.money()) == ("accepted", (0, 5))


@pytest.mark.parametrize(("released", "money"), [(False, (0, 5)), (True, (0, 0))])
def test_what_is_written_off_counts_as_spent_unless_it_is_released(
    scene: Scene, released: bool, money: tuple[int, int]
) -> None:
    operation = scene.quiet()
    made = write_off(scene, operation, released=released)
    assert made.operation.phase == "abandoned"
    assert (int(made.spent), int(made.released)) == (money[1], 5 - money[1])
    assert scene.money() == money
    scene.finish()
    assert (scene.posts_of(operation), scene.rows("select lane from coatcheck.outbox")) == (1, [])


@pytest.mark.parametrize("park", ["missing", "stalled"])
def test_a_job_that_observing_gave_up_is_written_off_and_no_other(scene: Scene, park: str) -> None:
    operation = scene.in_doubt()
    scene.decides(lambda eve: eve.adopt(operation, scene.job_of(operation), reason="ledger"))
    seen = scene.standing(operation)["revision"]
    refused(
        scene,
        StillLooking,
        lambda: scene.decides(lambda eve: eve.write_off(operation, reason="late", revision=seen)),
    )
    scene.rows(
        "update coatcheck.outbox set parked_at = now(), park_reason = %s, leased_by = null, leased_at = null returning lane",
        park,
    )
    if park == "missing":
        scene.rows(
            "with gone as (update coatcheck.operations set render_state = 'missing' returning operation_id, revision),"
            " told as (insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state,"
            " to_render_state, from_delivery_state, to_delivery_state) select operation_id, revision + 1, 'render_missing', 'sweep', now(),"
            " 'accepted', 'accepted', 'none', 'missing', 'not_started', 'not_started' from gone) select * from gone"
        )
        scene.rows("update coatcheck.operations set revision = revision + 1 returning revision")
    assert [each.operation_id for each in scene.decides(lambda eve: _all(eve, stuck=True))] == [operation]
    assert scene.decides(lambda eve: _all(eve, stuck=False)) == []
    assert write_off(scene, operation).operation.phase == "abandoned"
    assert scene.money() == (0, 5)


async def _all(eve: OperatorDecisions, *, stuck: bool) -> list[Doubt]:
    return await eve.doubts(stuck=stuck)


def test_two_people_at_once_one_wins_and_the_other_is_told_who(scene: Scene) -> None:
    operation = scene.quiet(created=False)
    seen = scene.standing(operation)["revision"]
    answers: dict[str, Decision | StaleRevision] = {}
    both = threading.Barrier(2)

    def decide(actor: str, absent: bool) -> None:
        async def ask(handle: OperatorDecisions) -> Decision:
            await handle.doubt(operation)
            both.wait(20)
            if absent:
                return await handle.prove_absent(operation, reason="at once", revision=seen)
            return await handle.write_off(operation, reason="at once", revision=seen)

        try:
            answers[actor] = scene.decides(ask, actor=actor)
        except StaleRevision as error:
            answers[actor] = error

    threads = [threading.Thread(target=decide, args=each) for each in (("eve", True), ("max", False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (winner,) = [actor for actor, answer in answers.items() if isinstance(answer, Decision)]
    (loser,) = [answer for answer in answers.values() if isinstance(answer, StaleRevision)]
    assert f'by "{winner}"' in loser.message
    assert (loser.exit_code, len(scene.happened(operation))) == (4, 1)


def test_whoever_comes_after_a_decision_is_told_of_it_and_not_that_their_words_are_wrong(scene: Scene) -> None:
    operation = scene.quiet()
    write_off(scene, operation)
    told = refused(scene, StaleRevision, lambda: prove_absent(scene, operation))
    assert 'abandoned at revision 3 (written_off by "eve" at ' in told
    prepared = scene.asked()
    for decide in (prove_absent, redispatch, write_off):
        assert "prepared" in refused(scene, WrongPhase, partial(decide, scene, prepared))


def test_an_old_decision_is_no_news_to_whoever_decides_about_what_came_after_it(scene: Scene) -> None:
    operation = scene.quiet(created=False)
    prove_absent(scene, operation)
    scene.work()
    assert scene.standing(operation)["phase"] == "accepted"
    assert "still_looking" in refused(scene, StillLooking, lambda: write_off(scene, operation))


def test_what_a_person_found_out_is_kept_in_any_phase_and_moves_nothing(scene: Scene) -> None:
    for operation in (scene.asked(), scene.in_doubt()):
        before, money = scene.standing(operation), scene.money()
        made = scene.decides(lambda eve: eve.note(operation, reason="theirs, says ticket 4711"))  # noqa: B023 - asked at once
        assert (made.event, made.operation.phase, made.spent, made.authorises) == (
            "noted",
            before["phase"],
            Decimal(0),
            False,
        )
        after = scene.standing(operation)
        assert {**after, "revision": None, "updated_at": None} == {**before, "revision": None, "updated_at": None}
        assert (after["revision"], scene.money()) == (before["revision"] + 1, money)
        told = scene.one(
            "select actor, reason from coatcheck.history where operation_id = %s and event = 'noted'",
            after["operation_id"],
        )
        assert told == {"actor": "eve", "reason": "theirs, says ticket 4711"}
    refused(scene, Refused, lambda: scene.decides(lambda eve: eve.note(operation, reason=" ")))


@pytest.mark.parametrize("words", ["", "  ", "a\0b", "\udc80"])
def test_a_decision_needs_an_actor_and_a_reason(scene: Scene, words: str) -> None:
    operation = scene.in_doubt()
    refused(scene, Refused, lambda: scene.decides(lambda eve: eve.write_off(operation, reason=words)))
    refused(scene, Refused, lambda: scene.decides(lambda eve: eve.write_off(operation, reason="why"), actor=words))


def test_a_database_that_is_away_decides_nothing(scene: Scene) -> None:
    operation = scene.in_doubt()
    before = scene.dump()
    nobody = {"COATCHECK_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    calls: list[Callable[[OperatorDecisions], object]] = [
        lambda eve: eve.adopt(operation, "job", reason="why"),
        lambda eve: eve.prove_absent(operation, reason="why"),
        lambda eve: eve.redispatch(operation, reason="why"),
        lambda eve: eve.write_off(operation, reason="why"),
        lambda eve: eve.evidence(operation),
        lambda eve: eve.resolve_orphan("job", account="genace", reason="why"),
    ]
    for call in calls:
        with pytest.raises(Unavailable):
            scene.decides(call, **nobody)  # type: ignore[arg-type] # each answers something else
    assert scene.dump() == before


@pytest.mark.breaks("S1", "S11")
def test_an_operation_whose_dispatch_row_is_gone_is_left_to_the_audit(scene: Scene) -> None:
    operation = scene.quiet()
    kept = scene.rows("delete from coatcheck.dispatches returning dispatch_id")
    with pytest.raises(Failed, match="coatcheck"):
        scene.decides(lambda eve: eve.prove_absent(operation, reason="why"))
    assert len(kept) == 1
    assert write_off(scene, operation).operation.phase == "abandoned"


def test_the_setting_is_off_unless_it_is_set(scene: Scene) -> None:
    assert load_settings({}, scene.folder).redispatch_by_two is False
    assert scene.settings(BY_TWO).redispatch_by_two is True


def _shown(scene: Scene, *, exists: bool) -> str:
    """An operation in doubt whose cut reply showed its job; the service has it, or does not know it any more."""
    operation = scene.asked(job={**QUICK, "create": {"kind": "cut", "at": -10, "times": 1}})
    scene.work()
    if not exists:
        scene.sim.script([{"on": "look", "times": "always", "kind": "status", "status": 404}])
    scene.database.move_time(3600)
    return operation


def test_what_a_reply_showed_and_the_service_has_is_not_proven_absent(scene: Scene) -> None:
    operation = _shown(scene, exists=True)
    prove = partial(scene.decides, lambda eve: eve.prove_absent(operation, reason="why"))
    assert scene.job_of(operation) in refused(scene, CandidateExists, prove)
    scene.decides(lambda eve: eve.prove_absent(operation, reason="why", force=True))
    assert "forced past" in str(scene.rows("select reason from coatcheck.history where event = 'proven_absent'"))


def test_what_a_reply_showed_and_the_service_does_not_know_is_proven_absent(scene: Scene) -> None:
    operation = _shown(scene, exists=False)
    assert scene.decides(lambda eve: eve.prove_absent(operation, reason="why")).event == "proven_absent"


def test_money_is_not_released_while_it_could_still_be_spent(scene: Scene) -> None:
    operation = scene.in_doubt()
    early = partial(scene.decides, lambda eve: eve.write_off(operation, reason="why", released=True))
    refused(scene, NotQuiescent, early)
    scene.database.move_time(3600)
    assert scene.decides(lambda eve: eve.write_off(operation, reason="why", released=True)).released == Decimal(5)
