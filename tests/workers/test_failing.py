"""A service that fails: its looks pause and go on by themselves, dispatches pause for a person, and neither stops the other or a delivery."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import postgres
from coatcheck.app.workplace import worker_of
from coatcheck.core.actions import Action
from coatcheck.seams import NO_FAULTS, Seams
from coatcheck.sim import ServiceSettings, ThreadedService, simulated_service
from coatcheck.store import pauses
from coatcheck.store.budgets import FAILED_LOOKS, Budget, change_budget
from coatcheck.store.db import Database, opened
from coatcheck.store.pauses import Pausable, ProviderRow
from coatcheck.workers.accounts import Accounts
from sim_service.raw_client import get
from store.ground import Ground
from waiting import until_async
from workers.studio import Studio

MANY = FAILED_LOOKS + 2
BROKEN: dict[str, Any] = {"on": "create", "kind": "status", "status": 500}
STUCK: Mapping[str, Any] = {"queued_s": 0, "processing_s": 3600}


class Field(Studio):
    """Workers are configured with KIND genace, unless a test says otherwise."""

    def environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        return super().environment({"KIND": "genace", **changes})

    def looks(self) -> int:
        """How many GETs of jobs arrived at the service."""
        return int(get(self.sim, "/_sim/ledger").json()["looks"]["count"])

    def account(self) -> dict[str, Any]:
        """The account with its budget and pauses, those of its one provider among them."""
        return self.one("select * from coatcheck.accounts join coatcheck.providers using (account)")

    def make_known(self) -> None:
        """As a worker does that starts."""
        self.rows(
            "insert into coatcheck.providers (name, account, kind) values ('genace', 'genace', 'genace') returning name"
        )
        self.rows("insert into coatcheck.accounts (account) values ('genace') returning account")

    def pause(self, what: Pausable) -> None:
        asyncio.run(self._order(partial(pauses.pause, reason="by hand", actor="ada", what=what, faults=NO_FAULTS)))

    def resume(self, what: Pausable) -> None:
        asyncio.run(self._order(partial(pauses.resume, reason="mended", actor="ada", what=what, faults=NO_FAULTS)))

    async def _order(self, order: Callable[[Database, str], Awaitable[ProviderRow]]) -> None:
        async with opened(self.url, seams=Seams.real(), name="test") as database:
            await order(database, "genace")

    def dispatch(self) -> None:
        """Let a worker send what is due, and look at nothing."""

        async def send() -> None:
            roles = [Action.DISPATCH]
            async with (
                asyncio.timeout(60),
                worker_of(self.settings(), self.url, seams=Seams.real(), roles=roles) as (worker, _),
            ):
                await worker.run(until_idle=True)

        asyncio.run(send())

    def try_once(self) -> None:
        """Let the instant come at which the pause of looks is tried, and a worker try it."""
        before = self.account()
        now = self.one("select coatcheck.lease_now() as now")["now"]
        self.database.move_time((before["observation_probe_at"] - now).total_seconds() + 0.05)
        self.work_until(
            lambda: self.account()["failed_probe_count"] != before["failed_probe_count"] or not self.is_unwatched
        )

    @property
    def is_unwatched(self) -> bool:
        return self.account()["observation_paused_at"] is not None

    def phases(self) -> list[str]:
        return [row["phase"] for row in self.rows("select phase from coatcheck.operations order by operation_id")]

    def delivered(self, orders: Sequence[UUID]) -> bool:
        return all(self.operation(order)["delivery_state"] == "delivered" for order in orders)


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7, settings=ServiceSettings(style="echo")) as running:
        yield running


@pytest.fixture
def field(database: postgres.Database, sim: ThreadedService, tmp_path: Path) -> Iterator[Field]:
    with Field(database, sim, tmp_path) as made:
        yield made


@pytest.mark.parametrize(("status", "cause"), [(503, "status_503"), (401, "status_401")])
def test_looks_that_all_fail_pause_by_themselves_and_go_on_when_the_service_is_back_while_dispatch_never_stopped(
    field: Field, status: int, cause: str
) -> None:
    orders = field.enqueue(count=MANY)
    field.sim.script([{"on": "look", "kind": "status", "status": status}])
    field.work()  # idle is who waits for a pause only
    paused, before = field.account(), field.looks()
    assert FAILED_LOOKS <= before <= MANY
    assert f"looks in a row failed, the last one with: {cause}" in paused["observation_pause_reason"]
    assert (paused["observation_paused_by"], paused["dispatch_paused_at"]) == ("coatcheck", None)
    for number in range(1, 4):
        field.try_once()
        assert field.looks() == before + number
    orders += field.enqueue()
    field.work_until(lambda: field.phases() == ["accepted"] * (MANY + 1))
    assert field.looks() == before + 3
    field.sim.script([], replace=True)
    field.try_once()
    field.work()
    assert field.delivered(orders)
    assert (field.is_unwatched, field.account()["failed_look_count"]) == (False, 0)
    field.check()


def test_a_service_that_refuses_connections_is_tried_with_one_look_at_a_time_until_it_is_back(field: Field) -> None:
    orders = field.enqueue(count=MANY)
    field.dispatch()
    assert field.phases() == ["accepted"] * MANY
    field.sim.stop()
    field.work()
    assert field.is_unwatched
    # whoever waits for its next look waits no less than before the pause
    field.try_once()
    assert field.is_unwatched
    field.sim.start()
    field.try_once()
    field.work()
    assert field.delivered(orders)
    assert field.looks() <= MANY + 2 * MANY


def test_renders_that_stalled_meanwhile_do_not_keep_the_pause_from_being_tried(field: Field) -> None:
    """Nobody asks about them, and each would use up the try of a whole lease."""
    field.enqueue(count=MANY)
    field.sim.script([{"on": "look", "kind": "status", "status": 503}])
    field.work()
    assert field.is_unwatched
    field.sim.script([], replace=True)
    field.rows(
        "update coatcheck.operations set observe_by_at = coatcheck.lease_now() where operation_id <> (select max(operation_id::text)::uuid"
        " from coatcheck.operations) returning operation_id"
    )
    field.rows(
        "update coatcheck.outbox set visible_at = coatcheck.lease_now() + case when operation_id = (select max(operation_id::text)::uuid"
        " from coatcheck.operations) then interval '1 s' else interval '0' end returning lane"
    )
    field.database.move_time(10)
    field.work_until(lambda: not field.is_unwatched)


def test_patience_that_one_look_was_asked_for_is_kept_for_every_job_of_the_account(field: Field) -> None:
    first, second = field.enqueue(count=2)
    field.sim.script([{"on": "look", "kind": "throttled", "retry_after": "40", "nth": 1}])
    field.work_until(lambda: field.account()["look_shut_until"] is not None, COATCHECK_CONCURRENCY__OBSERVE="1")
    field.database.move_time(30)
    assert (field.looks(), field.phases()) == (1, ["accepted"] * 2)
    with Ground(field.database, "another worker") as other:
        due = other.sql("select count(*) as number from coatcheck.outbox where visible_at <= coatcheck.due_now()")
        assert due[0]["number"] >= 1
        assert other.claim(Action.OBSERVE) == []
    field.database.move_time(11)
    field.work()
    assert field.delivered([first, second])


def test_an_answer_between_two_failures_is_heard_also_from_a_look_that_began_before_the_first(field: Field) -> None:
    field.enqueue({"queued_s": 0, "processing_s": 2}, count=2)
    field.dispatch()
    field.sim.script([{"on": "look", "kind": "status", "status": 503, "retry_after": "60", "nth": 1}])
    field.work_until(
        lambda: field.account()["look_shut_until"] is not None and not field.account()["failed_look_count"]
    )
    assert field.looks() == 2


def test_where_looks_failed_lately_the_next_one_wants_its_answer_now(field: Field) -> None:
    """Perhaps they fail because the line is held."""
    field.enqueue(STUCK)
    field.sim.script([{"on": "look", "kind": "status", "status": 503, "nth": 1}])
    # one that was held would bring its answer after a minute
    field.work_until(
        lambda: field.looks() > 1 and not field.account()["failed_look_count"], WAIT_S="60", OBSERVE_TIMEOUT_S="70"
    )


def test_doubts_in_a_row_pause_dispatch_until_a_person_resumes_it_and_never_by_itself(field: Field) -> None:
    field.enqueue(count=5)
    field.make_known()
    asyncio.run(change_budget(field.url, "genace", Budget(doubt_limit=3), faults=NO_FAULTS))
    field.sim.script([{"on": "create", "kind": "accept_then_drop"}])
    field.work()
    assert field.phases() == ["uncertain"] * 3 + ["prepared"] * 2
    paused = field.account()
    assert paused["dispatch_pause_reason"] == "3 dispatches in a row ended in doubt"
    assert (paused["dispatch_paused_by"], paused["observation_paused_at"]) == ("coatcheck", None)
    field.sim.script([], replace=True)
    field.database.move_time(24 * 3600)
    field.work()
    assert len(field.sim.posts) == 3
    field.resume(Pausable.DISPATCH)
    field.work()
    assert field.phases() == ["uncertain"] * 3 + ["accepted"] * 2
    assert (len(field.sim.posts), field.account()["doubt_count"]) == (5, 0)


def test_a_running_worker_whose_account_is_resumed_sends_one_request_until_it_is_answered_well(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw good answers before the pause; what was wrong then may be worse now."""
    monkeypatch.setattr("coatcheck.app.workplace.Accounts", partial(Accounts, wait_s=3600.0))
    asyncio.run(_resumed_too_early(field))
    assert sorted(field.phases()) == ["accepted", *["prepared"] * 5, "rejected"]
    assert len(field.sim.posts) == 2


async def _resumed_too_early(field: Field) -> None:
    async with asyncio.timeout(120), worker_of(field.settings({}), field.url, seams=Seams.real()) as (worker, _):
        running = asyncio.create_task(worker.run())
        field.enqueue()
        await until_async(lambda: field.phases() == ["accepted"])
        await asyncio.to_thread(field.pause, Pausable.DISPATCH)
        field.enqueue(count=6)
        await until_async(lambda: len(field.rows("select 1 from coatcheck.outbox where wait_reason = 'pause'")) == 6)
        field.sim.script([{"on": "create", "kind": "status", "status": 401, "times": "always"}])
        await asyncio.to_thread(field.resume, Pausable.DISPATCH)
        await until_async(
            lambda: (
                field.account()["dispatch_pause_reason"] == "the service answered 401 to a dispatch"
                and len(field.rows("select 1 from coatcheck.outbox where wait_reason = 'pause'")) == 5
            )
        )
        worker.drain()
        await running


@pytest.mark.parametrize(("rules", "phase"), [([], "accepted"), ([BROKEN], "uncertain")])
def test_an_answer_that_leaves_doubt_shows_no_more_of_an_account_than_none(
    field: Field, monkeypatch: pytest.MonkeyPatch, rules: list[dict[str, Any]], phase: str
) -> None:
    trust = Accounts()
    monkeypatch.setattr("coatcheck.app.workplace.Accounts", lambda: trust)
    field.sim.script(rules)
    field.enqueue()
    field.work_until(lambda: field.phases() == [phase])
    assert trust.knows("genace") is (phase == "accepted")


def test_a_pause_of_looks_stops_neither_dispatch_nor_delivery_and_one_of_dispatch_neither_looks_nor_delivery(
    field: Field,
) -> None:
    (delivering,) = field.enqueue()
    field.sim.script([{"on": "output", "kind": "status", "status": 503}])
    field.work_until(lambda: field.operation(delivering)["render_state"] == "succeeded")
    (rendering,) = field.enqueue(STUCK)
    field.pause(Pausable.OBSERVATION)
    before = field.looks()
    field.sim.script([], replace=True)
    field.database.move_time(60)
    field.work()
    assert field.delivered([delivering])
    assert (field.operation(rendering)["phase"], field.looks()) == ("accepted", before)
    (waiting,) = field.enqueue()
    field.pause(Pausable.DISPATCH)
    field.resume(Pausable.OBSERVATION)
    field.work_until(lambda: field.looks() > before)
    assert (field.operation(waiting)["phase"], len(field.sim.posts)) == ("prepared", 2)


def test_doubt_is_not_looked_up_while_looks_are_paused(field: Field) -> None:
    field.make_known()
    field.pause(Pausable.OBSERVATION)
    order = field.order()
    field.work(KIND="echo")
    field.database.move_time(60)
    field.work(KIND="echo")
    assert field.phases() == ["uncertain"]
    assert get(field.sim, "/_sim/ledger").json()["lists"]["count"] == 0
    field.resume(Pausable.OBSERVATION)
    field.work(KIND="echo")
    assert (field.operation(order)["phase"], field.operation(order)["remote_job_id"]) == (
        "accepted",
        field.job_of(order),
    )
