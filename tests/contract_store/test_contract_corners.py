"""The sharp corners of the store, told as stories with their ends, each against the store in memory and against PostgreSQL."""

from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest

from coatcheck.core import events as ev
from coatcheck.core.actions import Action
from coatcheck.core.operation import RemoteJobId, RenderState
from coatcheck.core.steps import DecideStep, MarkStep, SnapshotStep
from coatcheck.queue.leases import Acknowledge, Release, Wanted
from coatcheck.queue.turns import Turns
from coatcheck.store.door import Status
from contract_store.grounds import Ground

JOB = RemoteJobId("job-1")
BY = {"actor": "ops", "reason": "seen"}


def test_an_id_that_comes_after_the_sweep_concludes(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    assert ground.happen(operation_id, ev.LeaseEnded()).applied
    assert ground.row("outbox", operation_id)["park_reason"] == "uncertain"
    assert ground.happen(operation_id, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=JOB)).applied
    lane = ground.row("outbox", operation_id)
    assert (lane["action"], lane["parked_at"], lane["expected_remote_job_id"]) == ("observe", None, JOB)
    assert [row["role"] for row in ground.rows("remote_jobs")] == ["owner"]


def test_an_id_of_a_former_dispatch_is_an_orphan_with_its_cost(ground: Ground) -> None:
    operation_id = ground.enqueue("k", estimate=2)
    former = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.move(100)
    ground.happen(
        operation_id, ev.Redispatch(quiescent_at=ground.row("dispatches", operation_id)["quiescent_at"], **BY)
    )
    present = ground.mark(operation_id)
    saved = ground.happen(operation_id, ev.Accepted(dispatch_id=former, remote_job_id=JOB))
    assert saved.status is Status.EVIDENCE
    assert [(row["remote_job_id"], row["role"]) for row in ground.rows("remote_jobs")] == [(JOB, "orphan")]
    assert ground.row("incidents", operation_id)["kind"] == "late_remote_job"
    assert ground.operation(operation_id).dispatch_id == present
    money = {row["number"]: (row["outcome"], row["charged"], row["basis"]) for row in ground.rows("dispatches")}
    assert money == {1: ("accepted", 2, "assumed"), 2: ("open", None, None)}


def test_an_id_that_another_operation_has_leads_into_doubt(ground: Ground) -> None:
    first, second = ground.enqueue("k1"), ground.enqueue("k2")
    ground.happen(first, ev.Accepted(dispatch_id=ground.mark(first), remote_job_id=JOB))
    saved = ground.happen(second, ev.Accepted(dispatch_id=ground.mark(second), remote_job_id=JOB))
    assert saved.status is Status.OWNED
    operation = ground.operation(second)
    assert (operation.phase, operation.remote_job_id) == ("uncertain", None)
    assert ground.row("outbox", second)["park_reason"] == "uncertain"
    faults = {(row["operation_id"], row["kind"], row["boundary"]) for row in ground.rows("incidents")}
    assert faults == {(second, "remote_id_owned", "theirs"), (first, "remote_id_disputed", "theirs")}


def test_an_orphan_of_its_own_may_be_adopted_and_opens_its_own_dispatch(ground: Ground) -> None:
    operation_id = ground.enqueue("k", estimate=2)
    former = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.move(100)
    ground.happen(operation_id, ev.Redispatch(quiescent_at=None, **BY))
    present = ground.mark(operation_id)
    ground.happen(operation_id, ev.Accepted(dispatch_id=former, remote_job_id=JOB))
    ground.happen(operation_id, ev.Doubted(dispatch_id=present, cause="reset"))
    saved = ground.happen(operation_id, ev.Adopt(remote_job_id=JOB, actor="ops", reason="found"))
    assert (saved.status, saved.spent) == (Status.APPLIED, Decimal(2))
    assert ground.operation(operation_id).dispatch_id == former
    assert [(row["role"], row["dispatch_id"]) for row in ground.rows("remote_jobs")] == [("owner", former)]
    charged = {row["dispatch_id"]: (row["charged"], row["settled_at"] is None) for row in ground.rows("dispatches")}
    assert charged == {former: (None, True), present: (2, False)}


def test_a_batch_of_marks_holds_until_the_first_that_does_not_fit(ground: Ground) -> None:
    ground.fetch("open_allowance", tenant_id="t1", unit="credits", ceiling=Decimal(5), actor="ops")
    operations = [ground.enqueue(f"k{amount}", estimate=amount) for amount in (3, 4, 1)]
    steps = [ground.step(each, ev.Mark(dispatch_id=ground.dispatch_id(), account="genace")) for each in operations]
    assert [saved.status for saved in ground.save(*steps)] == [Status.APPLIED, Status.ALLOWANCE, Status.ALLOWANCE]
    (purse,) = ground.rows("allowances")
    assert (purse["held"], purse["charged"]) == (3, 0)
    assert ground.row("outbox", operations[2])["wait_reason"] == "allowance"


def _budget(ground: Ground, **limits: float) -> None:
    names = ("max_in_flight", "dispatches_per_s", "looks_per_s", "look_floor_s")
    sets = {f"sets_{name}": name in limits for name in names}
    ground.fetch("change_budget", name="genace", **sets, **{name: limits.get(name) for name in names})


def test_a_mark_beyond_the_cap_waits_unleased(ground: Ground) -> None:
    _budget(ground, max_in_flight=1)
    operations = [ground.enqueue(f"k{number}") for number in range(2)]
    steps = [ground.step(each, ev.Mark(dispatch_id=ground.dispatch_id(), account="genace")) for each in operations]
    assert [saved.status for saved in ground.save(*steps)] == [Status.APPLIED, Status.CAP]
    assert [row["in_flight_count"] for row in ground.rows("accounts")] == [1]
    lane = ground.row("outbox", operations[1])
    assert (lane["wait_reason"], lane["leased_by"]) == ("cap", None)


def test_a_mark_beyond_the_rate_is_told_when_its_turn_comes(ground: Ground) -> None:
    _budget(ground, dispatches_per_s=0.5)
    operations = [ground.enqueue(f"k{number}") for number in range(2)]
    steps = [ground.step(each, ev.Mark(dispatch_id=ground.dispatch_id(), account="genace")) for each in operations]
    assert [saved.status for saved in ground.save(*steps)] == [Status.APPLIED, Status.RATE]
    waits_s = (ground.row("outbox", operations[1])["visible_at"] - ground.at).total_seconds()
    assert waits_s == pytest.approx(2.0)


def test_a_lost_lease_ends_nothing(ground: Ground) -> None:
    ground.enqueue("k")
    (lost,) = ground.claim(Action.DISPATCH)
    ground.move(31)
    (held,) = ground.claim(Action.DISPATCH)
    assert (held.lease_count, held.lease_token > lost.lease_token) == (2, True)
    assert ground.run(ground.leases.acknowledge([Acknowledge(message=lost)])) == [False]
    assert ground.run(ground.leases.release([Release(message=lost, delay_s=0)])) == [False]
    assert ground.run(ground.leases.renew([lost])) == set()
    assert ground.run(ground.leases.acknowledge([Acknowledge(message=held)])) == [True]
    assert ground.rows("outbox") == []


def test_a_suspect_is_leased_alone(ground: Ground) -> None:
    suspect = ground.enqueue("k1")
    for _ in range(2):
        ground.claim(Action.DISPATCH)
        ground.move(31)
    ground.enqueue("k2")
    (alone,) = ground.claim(Action.DISPATCH)
    assert (alone.operation_id, alone.is_suspect, alone.lease_count) == (suspect, True, 3)


def test_two_looks_at_a_job_keep_the_floor_between_them(ground: Ground) -> None:
    _budget(ground, look_floor_s=60)
    operation_id = ground.enqueue("k")
    ground.happen(operation_id, ev.Accepted(dispatch_id=ground.mark(operation_id), remote_job_id=JOB))
    ground.move(10)
    (look,) = ground.claim(Action.OBSERVE)
    ground.run(ground.leases.release([Release(message=look, delay_s=0)]))
    ground.move(59)
    assert ground.claim(Action.OBSERVE) == []
    ground.move(1)
    assert [message.slot for message in ground.claim(Action.OBSERVE)] == [look.slot]


def test_tenants_take_turns_from_claim_to_claim(ground: Ground) -> None:
    for number in range(2):
        for tenant_id in ("t1", "t2", "t3"):
            ground.enqueue(f"k{number}", tenant_id=tenant_id)
    turns = Turns()
    wanted = [Wanted(action=Action.DISPATCH, provider="genace", account="genace", room=1, lease_s=30)]
    served = []
    for _ in range(4):
        (message,) = ground.run(ground.leases.claim(wanted, doubts=0, doubt_lease_s=30, turns=turns))
        served.append(message.tenant_id)
    assert served == ["t1", "t2", "t3", "t1"]


@pytest.mark.parametrize("first", ["genace", "second"])
def test_of_two_names_of_one_account_whoever_has_been_due_for_longer_gets_the_last_place(
    ground: Ground, first: str
) -> None:
    ground.fetch("register_providers", name=["second"], account=["genace"], kind=["genace"])
    _budget(ground, max_in_flight=1)
    names = sorted(("genace", "second"), key=lambda name: name != first)
    operations = []
    for name in names:
        operations.append(ground.enqueue(f"for {name}", provider=name))
        ground.move(1)
    wanted = [
        Wanted(action=Action.DISPATCH, provider=name, account="genace", room=1, lease_s=30)
        for name in ("genace", "second")
    ]
    (message,) = ground.run(ground.leases.claim(wanted, doubts=0, doubt_lease_s=30))
    assert message.operation_id == operations[0]


def test_a_final_state_stays(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.happen(operation_id, ev.Accepted(dispatch_id=ground.mark(operation_id), remote_job_id=JOB))
    early = ground.step(
        operation_id, ev.Snapshot(remote_job_id=JOB, remote_status="rendering", render_state=RenderState.RENDERING)
    )
    assert isinstance(early, SnapshotStep)
    done = ev.Snapshot(remote_job_id=JOB, remote_status="failed", render_state=RenderState.FAILED)
    assert ground.happen(operation_id, done).applied
    late = replace(early, revision=ground.operation(operation_id).revision)
    assert [saved.status for saved in ground.save(late)] == [Status.STALE]
    assert ground.operation(operation_id).render_state is RenderState.FAILED


def test_a_decision_on_an_old_revision_is_stale(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    step = ground.step(operation_id, ev.Cancel(**BY))
    assert isinstance(step, DecideStep)
    ground.mark(operation_id)
    assert [saved.status for saved in ground.save(step)] == [Status.STALE]
    assert [row["event"] for row in ground.rows("history")] == ["generation_requested", "dispatch_marked"]


def test_a_second_mark_of_an_authorisation_meets_the_wall_and_leaves_nothing(ground: Ground) -> None:
    """The guard of the mark is passed by a failover that lost the operation's phase; the index behind it is not."""
    operation_id = ground.enqueue("k", estimate=2)
    ground.fetch("open_allowance", tenant_id="t1", unit="credits", ceiling=None, actor="ops")
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, ev.NotSent(dispatch_id=dispatch_id, cause="refused"))
    step = ground.step(operation_id, ev.Mark(dispatch_id=dispatch_id, account="genace"))
    assert isinstance(step, MarkStep)
    before = {name: ground.rows(name) for name in ("operations", "dispatches", "history", "outbox", "allowances")}
    with pytest.raises(psycopg.errors.UniqueViolation):
        ground.save(step)
    assert {name: ground.rows(name) for name in before} == before


def test_what_a_pause_held_back_is_due_with_its_end(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    ground.fetch("pause_provider", name="genace", **BY)
    step = ground.step(operation_id, ev.Mark(dispatch_id=ground.dispatch_id(), account="genace"))
    assert [saved.status for saved in ground.save(step)] == [Status.PAUSED]
    assert ground.claim(Action.DISPATCH) == []
    ground.fetch("resume_provider", name="genace", **BY)
    (message,) = ground.claim(Action.DISPATCH)
    assert message.operation_id == operation_id


@pytest.mark.parametrize(("word", "error"), [("a\0b", psycopg.DataError), ("\ud800", UnicodeEncodeError)])
def test_what_is_no_text_is_refused_before_anything_is_written(
    ground: Ground, word: str, error: type[Exception]
) -> None:
    operation_id = ground.enqueue("k")
    with pytest.raises(error):
        ground.happen(operation_id, ev.Cancel(actor="ops", reason=word))
    assert ground.operation(operation_id).phase == "prepared"
