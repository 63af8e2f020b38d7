"""Looking and delivering again: free, by a person's word, and never a reason for another POST."""

import json
import threading

import pytest

import postgres
from coatcheck import NotFound, WrongPhase
from coatcheck.app.operating.operator import Operator
from coatcheck.core.actions import Action
from coatcheck.core.operation import OperationId, RenderState
from coatcheck.store.door import Status
from operating.office import LONG, WHY, Office
from store.ground import Ground, look

SOON = {"OBSERVE_FOR_S": "0.5", "WAIT_S": "0.1"}


def stalled(office: Office, job: dict[str, object]) -> str:
    """An operation whose render took longer than it may."""
    operation = office.asked(job=job)
    office.work_until(lambda: office.rows("select lane from coatcheck.outbox where park_reason = 'stalled'"), **SOON)
    return operation


def missing(office: Office) -> str:
    """An operation whose job the service says that it does not know; from the sixth look on it does."""
    operation = office.asked(job={**LONG, "processing_s": 0.1, "look": {"kind": "status", "status": 404, "times": 6}})
    office.work_until(
        lambda: office.rows("select lane from coatcheck.outbox where park_reason = 'missing'"), NOT_FOUND_GRACE_S="0.2"
    )
    return operation


def test_what_stalled_is_listed_and_looked_at_again_until_a_new_deadline(office: Office) -> None:
    operation = stalled(office, {"queued_s": 0, "processing_s": 2})
    listed = office.terminal().run("reconcile", "list", "--stuck", "--json").object
    assert (listed["operation_id"], listed["held"]) == (operation, 5)
    assert listed["decisions"] == ["write-off", "reobserve"]
    assert "reobserve" in office.terminal().run("reconcile", "list", "--stuck").out
    assert office.terminal().run("reconcile", "list", "--json").out == ""
    before = office.standing(operation)
    made = office.asks(lambda eve: eve.reobserve(operation, reason="the service says soon"))
    assert (made.event, made.operation.phase, made.operation.revision) == (
        "reobserve_requested",
        "accepted",
        before["revision"] + 1,
    )
    lane = office.lane(operation)
    assert (lane["park_reason"], lane["lease_count"], lane["action"]) == (None, 0, "observe")
    # as long as the provider's renders may take, by the settings of whoever asked
    (span,) = office.rows(
        "select extract(epoch from observe_by_at - clock_timestamp())::int as s from coatcheck.operations"
    )
    assert 86_000 < span["s"] <= 86_400
    office.work()
    assert office.standing(operation)["delivery_state"] == "delivered"
    assert (office.posts_of(operation), office.money()) == (1, (0, 5))
    office.audited()


def test_what_stalled_and_is_still_not_done_stalls_again(office: Office) -> None:
    operation = stalled(office, dict(LONG))
    office.asks(lambda eve: eve.reobserve(operation, reason="again"), **SOON)
    office.work_until(lambda: office.tale(operation).count("observation_stalled") == 2, **SOON)
    assert office.lane(operation)["park_reason"] == "stalled"


def test_a_good_snapshot_applies_to_what_was_missing(office: Office) -> None:
    operation = missing(office)
    assert office.standing(operation)["render_state"] == "missing"
    listed = office.terminal().run("reconcile", "list", "--stuck", "--json").object
    assert (listed["render_state"], listed["decisions"]) == ("missing", ["write-off", "reobserve"])
    office.asks(lambda eve: eve.reobserve(operation, reason="the key was another account's"))
    office.work(NOT_FOUND_GRACE_S="60")
    row = office.standing(operation)
    assert (row["render_state"], row["delivery_state"], row["cancel_requested_at"]) == ("succeeded", "delivered", None)
    assert office.posts_of(operation) == 1
    office.audited()


def test_a_look_that_is_being_made_keeps_its_lease_and_what_it_brings_is_stale(
    database: postgres.Database, office: Office
) -> None:
    operation = office.asked()
    operation_id = OperationId(office.uuid(operation))
    with Ground(database) as ground:
        job = ground.accept(operation_id)
        (held,) = ground.claim(Action.OBSERVE)
        seen = ground.step(operation_id, look(job, RenderState.RENDERING))
        office.asks(lambda eve: eve.reobserve(operation, reason="now"))
        lane = office.lane(operation)
        assert (lane["lease_token"], lane["leased_by"]) == (held.lease_token, "worker-1")
        assert ground.write([ground.as_save(seen)])[0].status is Status.STALE


def test_a_look_that_waits_for_its_time_is_due_at_once(office: Office) -> None:
    operation = office.rendering()
    office.rows("update coatcheck.outbox set visible_at = now() + interval '1 h' returning lane")
    office.asks(lambda eve: eve.reobserve(operation, reason="now"))
    assert office.one("select visible_at <= clock_timestamp() as due from coatcheck.outbox")["due"]


def test_a_render_that_is_over_and_one_that_was_not_sent_are_not_looked_at(office: Office) -> None:
    done = office.asked()
    office.work()
    prepared = office.asked()
    assert "not final" in office.refused(WrongPhase, lambda eve: eve.reobserve(done, reason="why")).message
    assert "needs accepted" in office.refused(WrongPhase, lambda eve: eve.reobserve(prepared, reason="why")).message
    office.refused(NotFound, lambda eve: eve.reobserve("op_nonsense", reason="why"))


def test_deliveries_that_failed_are_tried_again_with_all_their_tries_and_nothing_is_rendered(office: Office) -> None:
    operation = office.undelivered(2)
    downloads = office.sim.jobs()[0]["downloads"]
    made = office.asks(lambda eve: eve.redeliver(operation, reason="the disk is larger now"))
    assert (made.event, made.operation.delivery_state) == ("redeliver_requested", "pending")
    assert [row["wait_count"] for row in office.rows("select wait_count from coatcheck.outbox order by lane")] == [0, 0]
    office.work(COATCHECK_DELIVER_TRIES="3")
    assert office.sim.jobs()[0]["downloads"] == downloads + 6
    assert office.standing(operation)["delivery_state"] == "failed"
    office.sim.script([{"on": "output", "kind": "slow", "times": "always"}], replace=True)
    assert office.posts_of(operation) == 1
    office.audited()


def test_only_the_output_that_is_named_is_tried_again(office: Office) -> None:
    operation = office.undelivered(2, output={"kind": "status", "status": 500, "times": 4})
    office.refused(WrongPhase, lambda eve: eve.redeliver(operation, output=2, reason="there is none"))
    ended = office.terminal().run("operations", "redeliver", operation, "--output", "1", *WHY, "--json")
    assert (ended.code, ended.object["event"]) == (0, "redeliver_requested")
    office.work()
    states = office.rows("select state from coatcheck.deliveries order by output_index")
    assert [row["state"] for row in states] == ["failed", "delivered"]
    office.refused(WrongPhase, lambda eve: eve.redeliver(operation, output=1, reason="it is there"))
    office.asks(lambda eve: eve.redeliver(operation, reason="the rest"))
    office.work()
    assert office.standing(operation)["delivery_state"] == "delivered"
    assert (office.posts_of(operation), len(office.sim.jobs())) == (1, 1)
    nothing = office.refused(WrongPhase, lambda eve: eve.redeliver(operation, reason="why"))
    assert "every output is delivered" in nothing.message
    office.audited()


def test_an_address_that_expired_meanwhile_is_looked_up(office: Office) -> None:
    operation = office.undelivered(
        output=[{"kind": "status", "status": 500, "times": 2}, {"kind": "expired", "nth": 3}]
    )
    looks = office.sim.jobs()[0]["looks"]
    office.asks(lambda eve: eve.redeliver(operation, reason="after the weekend"))
    office.work()
    assert office.standing(operation)["delivery_state"] == "delivered"
    assert office.tale(operation)[-4:] == ["redeliver_requested", "source_expired", "refreshed", "output_delivered"]
    assert office.sim.jobs()[0]["looks"] == looks + 1
    assert office.posts_of(operation) == 1


def test_an_output_without_a_message_gets_one_again(office: Office) -> None:
    """What the audit says to do about `output_lane_missing`."""
    operation = office.undelivered()
    office.rows("update coatcheck.deliveries set state = 'pending', cause = null returning state")
    office.rows(
        "with moved as (update coatcheck.operations set failed_count = 0, delivery_state = 'pending', revision = revision + 1 returning *)"
        " insert into coatcheck.history (operation_id, revision, event, actor, at, from_phase, to_phase, from_render_state,"
        " to_render_state, from_delivery_state, to_delivery_state) select operation_id, revision, 'x', 'x', now(), phase, phase,"
        " render_state, render_state, 'failed', 'pending' from moved returning revision"
    )
    office.rows("delete from coatcheck.outbox returning lane")
    office.asks(lambda eve: eve.redeliver(operation, reason="the audit says so"))
    office.holds()
    assert office.lane(operation, 1)["action"] == "deliver"


def test_two_people_who_ask_at_once_are_both_answered_and_each_is_on_record(office: Office) -> None:
    operation = stalled(office, dict(LONG))
    both = threading.Barrier(2)
    made: list[int] = []

    def ask(actor: str) -> None:
        async def run(eve: Operator) -> None:
            await eve.doubt(operation)
            both.wait(20)
            made.append((await eve.reobserve(operation, reason="now")).operation.revision)

        office.asks(run, actor=actor)

    threads = [threading.Thread(target=ask, args=[actor]) for actor in ("eve", "max")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    last = office.standing(operation)["revision"]
    assert sorted(made) == [last - 1, last]
    actors = office.rows("select actor from coatcheck.history where event = 'reobserve_requested'")
    assert {row["actor"] for row in actors} == {"eve", "max"}


@pytest.mark.parametrize("command", ["reobserve", "redeliver"])
def test_the_commands_tell_how_each_ended(office: Office, command: str) -> None:
    good = stalled(office, dict(LONG)) if command == "reobserve" else office.undelivered()
    prepared = office.asked()
    lines = f"{good}\n{json.dumps({'operation_id': prepared, 'reason': 'own'})}\n".encode()
    ended = office.terminal().run("operations", command, "--from", "-", *WHY, "--json", given=lines)
    assert ended.code == 1
    assert [(each["result"], each.get("code")) for each in ended.objects] == [
        ("done", None),
        ("refused", "wrong_phase"),
    ]
    seen = office.standing(good)["revision"]
    stale = office.terminal().run("operations", command, good, "--revision", str(seen - 1), *WHY, "--json")
    assert (stale.code, stale.error["code"]) == (4, "stale")
    assert office.terminal().run("operations", command, good, "--reason", " ", "--json").code == 2
