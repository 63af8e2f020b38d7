"""Cancelling: before the mark it always works and nothing is ever sent; afterwards it is a wish, which is kept and promises nothing."""

import asyncio
import json
import threading
from collections.abc import Callable

import pytest

import postgres
from coatcheck import Coatcheck, NotCancellable, NotFound, Refused, StaleRevision
from coatcheck.app.operating.operator import Operator
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import DispatchId, OperationId
from coatcheck.core.steps import MarkStep
from faults.stage import QUICK
from operating.office import CANCELS, LONG, WHY, Office
from store.ground import Ground

RACES = 200


def cancelled(office: Office, operation: str, **more: str) -> str:
    return office.asks(lambda eve: eve.cancel(operation, reason="not wanted"), **more).operation.phase


def not_cancellable(office: Office, operation: str) -> NotCancellable:
    with pytest.raises(NotCancellable) as raised:
        cancelled(office, operation)
    return raised.value


def test_what_was_not_sent_yet_never_is(office: Office) -> None:
    operation = office.asked()
    made = office.asks(lambda eve: eve.cancel(operation, reason="not wanted", revision=0))
    assert (made.result, made.event, made.operation.phase, made.operation.revision) == (
        "done",
        "cancelled",
        "cancelled",
        1,
    )
    told = office.newest(operation)
    assert (told["actor"], told["reason"], told["from_phase"]) == ("eve", "not wanted", "prepared")
    office.finish()
    assert (office.sim.posts, office.rows("select lane from coatcheck.outbox"), office.money()) == ((), [], (0, 0))
    office.audited()


@pytest.mark.parametrize("wait_reason", ["pause", "allowance"])
def test_what_waits_for_leave_to_be_sent_is_cancelled_as_well(office: Office, wait_reason: str) -> None:
    if wait_reason == "allowance":
        office.rows("update coatcheck.allowances set ceiling = 1 returning unit")
    else:
        office.work()
        office.rows(
            "update coatcheck.providers set dispatch_paused_at = now(), dispatch_pause_reason = 'r', dispatch_paused_by = 'p' returning name"
        )
    operation = office.asked()
    office.work()
    assert office.lane(operation)["wait_reason"] == wait_reason
    assert cancelled(office, operation) == "cancelled"
    assert office.sim.posts == ()


def test_of_a_cancellation_and_a_mark_that_race_one_wins(database: postgres.Database, office: Office) -> None:
    """The real statement of the mark, on a connection of its own, against the library's own call, many times over."""
    with Ground(database, "worker-1") as ground:
        operations = [office.asked() for _ in range(RACES)]
        answers: dict[str, str] = {}
        start = threading.Barrier(2)

        def ask_each() -> None:
            async def run(eve: Operator) -> None:
                for operation in operations:
                    start.wait(20)
                    try:
                        made = await eve.cancel(operation, reason="race")
                        answers[operation] = made.operation.phase
                    except NotCancellable as late:
                        answers[operation] = f"recorded {late.is_recorded}"

            office.asks(run)

        asking = threading.Thread(target=ask_each)
        asking.start()
        marked = set()
        for operation in operations:
            operation_id = OperationId(office.uuid(operation))
            step = ground.step(
                operation_id,
                ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account="genace"),
            )
            assert isinstance(step, MarkStep)
            save = ground.as_save(step)
            start.wait(20)
            if ground.write([save])[0].applied:
                marked.add(operation)
        asking.join(60)
    assert answers == {each: "recorded True" if each in marked else "cancelled" for each in operations}
    for operation in operations:
        row = office.standing(operation)
        dispatches = office.dispatches(row["operation_id"])
        if operation in marked:
            assert (row["phase"], len(dispatches), row["cancel_requested_at"] is None) == ("dispatching", 1, False)
        else:
            assert (row["phase"], len(dispatches), row["cancel_requested_at"] is None) == ("cancelled", 0, True)
    # both orders came about, or the race was none
    assert 0 < len(marked) < RACES


def test_a_wish_that_comes_while_the_request_is_on_its_way_is_kept_and_counts_if_nothing_was_made(
    database: postgres.Database, office: Office
) -> None:
    operation = office.asked()
    operation_id = OperationId(office.uuid(operation))
    with Ground(database) as ground:
        dispatch_id = ground.mark(operation_id)
        late = not_cancellable(office, operation)
        assert (late.code, late.exit_code, late.is_recorded) == ("not_cancellable", 1, True)
        assert "promises neither that the render stops nor that it is refunded" in late.message
        assert office.standing(operation)["phase"] == "dispatching"
        ground.happen(operation_id, ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None))
    assert office.standing(operation)["phase"] == "cancelled"
    assert office.tale(operation)[1:] == ["dispatch_marked", "cancel_requested", "throttled_and_withdrawn"]


def test_a_wish_about_what_is_in_doubt_is_kept_and_ends_no_doubt(office: Office) -> None:
    operation = office.in_doubt()
    assert not_cancellable(office, operation).is_recorded
    office.finish()
    assert office.standing(operation)["phase"] == "uncertain"
    assert office.money() == (5, 0)


def test_a_service_that_can_be_told_is_told_and_its_word_is_what_counts(office: Office) -> None:
    office.sim.script({"service": {"cancel_path": CANCELS["CANCEL_PATH"]}})
    operation = office.rendering()
    late = not_cancellable(office, operation)
    assert late.is_recorded
    assert "a worker passes the wish on" in late.message
    office.work(**CANCELS)
    row = office.standing(operation)
    assert (row["phase"], row["render_state"], row["cancel_answer"]) == ("accepted", "cancelled", "taken")
    assert office.tale(operation)[-3:] == ["cancel_requested", "cancel_taken", "render_finished"]
    assert office.cancels == 1
    assert (office.posts_of(operation), office.money()) == (1, (0, 0))
    office.audited()


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_refusal_is_final_until_somebody_asks_again_and_the_render_goes_on(office: Office, method: str) -> None:
    office.sim.script({"service": {"cancel_path": CANCELS["CANCEL_PATH"], "cancel_status": 409}})
    operation = office.rendering({"queued_s": 0, "processing_s": 3})
    settings = {**CANCELS, "CANCEL_METHOD": method, "WAIT_S": "0.1"}
    not_cancellable(office, operation)
    office.work_until(lambda: office.standing(operation)["cancel_answer"] == "refused", **settings)
    assert office.newest(operation)["reason"] == "status_409"
    not_cancellable(office, operation)
    assert office.standing(operation)["cancel_answer"] is None
    office.work(**settings)
    assert office.cancels == 2
    row = office.standing(operation)
    assert (row["render_state"], row["delivery_state"]) == ("succeeded", "delivered")
    assert (office.posts_of(operation), office.money()) == (1, (0, 5))


def test_a_service_that_does_not_answer_is_told_again_with_each_look_and_keeps_nothing_from_being_seen(
    office: Office,
) -> None:
    office.sim.script({"service": {"cancel_path": CANCELS["CANCEL_PATH"], "cancel_status": 503}})
    operation = office.rendering({"queued_s": 0, "processing_s": 2})
    not_cancellable(office, operation)
    office.work_until(lambda: office.cancels > 2, **CANCELS)
    assert office.standing(operation)["cancel_answer"] is None
    office.work(**CANCELS)
    assert office.standing(operation)["delivery_state"] == "delivered"
    assert "cancel_refused" not in office.tale(operation)


def test_where_the_service_cannot_be_told_the_wish_is_kept_and_looks_go_on(office: Office) -> None:
    operation = office.rendering({"queued_s": 0, "processing_s": 1})
    not_cancellable(office, operation)
    office.work()
    row = office.standing(operation)
    assert (row["render_state"], row["cancel_answer"], row["cancel_requested_at"] is None) == ("succeeded", None, False)
    assert len(office.sim.posts) == 1


def succeeded(office: Office) -> str:
    found = office.asked()
    office.work()
    return found


def rejected(office: Office) -> str:
    found = office.asked(job={**QUICK, "create": {"kind": "status", "status": 422}})
    office.work()
    return found


def written_off(office: Office) -> str:
    found = office.in_doubt()
    office.decides(lambda eve: eve.write_off(found, reason="over"))
    return found


def withdrawn(office: Office) -> str:
    found = office.asked()
    cancelled(office, found)
    return found


@pytest.mark.parametrize("over", [succeeded, rejected, written_off, withdrawn], ids=lambda each: each.__name__)
def test_what_is_over_is_not_cancelled_and_nothing_is_kept(office: Office, over: Callable[[Office], str]) -> None:
    operation = over(office)
    error = office.refused(NotCancellable, lambda eve: eve.cancel(operation, reason="late"))
    assert not error.is_recorded
    assert "nothing was recorded" in error.message


def test_a_tenant_cancels_its_own_and_of_others_it_learns_nothing(office: Office) -> None:
    mine, theirs = office.asked("ada"), office.asked("bob")

    async def ask(tenant: str, operation: str, reason: str = "changed our mind") -> str:
        settings = office.settings({"COATCHECK_DATABASE_URL": office.url})
        async with Coatcheck(settings) as coatcheck:
            return (await coatcheck.for_tenant(tenant).cancel(operation, reason=reason)).operation.phase

    before = office.dump()
    for foreign in (theirs, "op_00000000000000000000000001", "nonsense"):
        with pytest.raises(NotFound) as raised:
            asyncio.run(ask("ada", foreign))
        assert raised.value.message == "expected the id of an operation, got one that names none here"
    with pytest.raises(Refused):
        asyncio.run(ask("ada", mine, " "))
    assert office.dump() == before
    assert asyncio.run(ask("ada", mine)) == "cancelled"
    assert office.newest(mine)["actor"] == "tenant ada"
    office.work()
    assert office.standing(theirs)["delivery_state"] == "delivered"


def test_who_named_a_revision_is_told_of_any_other(office: Office) -> None:
    operation = office.rendering()
    error = office.refused(StaleRevision, lambda eve: eve.cancel(operation, reason="late", revision=0))
    assert "expected" in error.message


def test_the_command_says_how_each_ended(office: Office) -> None:
    going = office.in_doubt()
    waiting = office.asked()
    terminal = office.terminal()
    single = terminal.run("operations", "cancel", going, *WHY, "--json")
    assert (single.code, single.error["code"]) == (1, "not_cancellable")
    assert "The wish is recorded" in single.error["message"]
    assert office.newest(going)["event"] == "cancel_requested"
    other = terminal.run("operations", "cancel", waiting, "--tenant", "bob", *WHY, "--json")
    assert (other.code, other.error["code"]) == (3, "not_found")
    waits = office.asked()
    lines = f"{waits}\n" + json.dumps({"operation_id": going, "reason": "again"}) + "\n"
    several = terminal.run("operations", "cancel", "--from", "-", *WHY, "--json", given=lines.encode())
    assert several.code == 1
    assert [(each["operation_id"], each["result"], each.get("code"), each["phase"]) for each in several.objects] == [
        (waits, "done", None, "cancelled"),
        (going, "requested", "not_cancellable", "uncertain"),
    ]
    assert several.objects[0]["event"] == "cancelled"
    people = terminal.run("operations", "cancel", waiting, *WHY)
    assert people.code == 0
    assert people.out.startswith(f"{waiting}: cancelled; cancelled at revision 1\n")
    assert terminal.run("operations", "cancel", going).code == 2
    assert terminal.run("operations", "cancel", *WHY, "--json").error["code"] == "refused"


def test_a_deadline_that_passes_while_the_account_is_paused_cancels(office: Office) -> None:
    office.work()
    assert office.terminal().run("providers", "pause", "genace", "--reason", "rotating", "--json").code == 0
    operation = office.asked(dispatch_by_at="2999-01-01T00:00:00Z")
    kept = office.asked()
    office.work()
    assert [office.lane(each)["wait_reason"] for each in (operation, kept)] == ["pause", "pause"]
    office.rows(
        "update coatcheck.operations set dispatch_by_at = now() + interval '30 s' where dispatch_by_at is not null returning revision"
    )
    office.database.move_time(60)
    office.work()
    assert office.tale(operation) == ["generation_requested", "deadline_passed"]
    assert (office.standing(operation)["phase"], office.standing(kept)["phase"]) == ("cancelled", "prepared")
    assert office.terminal().run("providers", "resume", "genace", "--reason", "rotated", "--json").code == 0
    office.work()
    assert (office.posts_of(operation), office.posts_of(kept)) == (0, 1)
    assert operation_text(OperationId(office.uuid(operation))) == operation


def test_looks_of_what_nobody_wants_any_more_are_made_at_once_and_not_again_for_every_wish(office: Office) -> None:
    operation = office.rendering(LONG)
    office.rows("update coatcheck.outbox set visible_at = now() + interval '1 h' returning lane")
    not_cancellable(office, operation)
    assert office.one("select visible_at <= clock_timestamp() as due from coatcheck.outbox")["due"]
    office.rows("update coatcheck.outbox set visible_at = now() + interval '1 h' returning lane")
    not_cancellable(office, operation)
    assert not office.one("select visible_at <= clock_timestamp() as due from coatcheck.outbox")["due"]
