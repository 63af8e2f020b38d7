"""Doubt at a service that repeats our reference: what is found is adopted by itself, what is not is a person's, and no POST is ever added."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId
from coatcheck.seams import Point
from coatcheck.sim import ServiceSettings, ThreadedService, simulated_service
from faults.child import KILLED
from faults.nursery import Nursery, nursery_of
from faults.strike import Deed, Strike
from sim_service.raw_client import exchange, get, request_bytes
from store.ground import Ground
from workers.studio import LOST, Studio

ADOPTED = ["generation_requested", "dispatch_marked", "became_uncertain", "adopted"]
SLOW_SERVICE = {"SERVICE_LAG_S": "60"}
"""For a minute after the end of its POST a job may still come to exist."""


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7, settings=ServiceSettings(style="echo")) as running:
        yield running


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with nursery_of() as running:
        yield running


@pytest.fixture
def studio(database: postgres.Database, sim: ThreadedService, tmp_path: Path, nursery: Nursery) -> Iterator[Studio]:
    with Studio(database, sim, tmp_path) as made:
        made.nursery = nursery
        yield made


def lists(sim: ThreadedService) -> int:
    return int(get(sim, "/_sim/ledger").json()["lists"]["count"])


def stands(studio: Studio, operation_id: UUID) -> tuple[str, str]:
    operation = studio.operation(operation_id)
    return operation["phase"], operation["delivery_state"]


@pytest.mark.parametrize("rules", [[], [{"on": "list", "kind": "unfiltered"}]], ids=["asked for", "all that there is"])
def test_tenants_whose_replies_are_lost_in_one_window_each_get_their_own_job(
    studio: Studio, rules: list[dict[str, Any]]
) -> None:
    studio.sim.script(rules)
    orders = [studio.order(tenant) for tenant in ("ada", "bob", "cy", "ada-2")]
    studio.work()
    assert [stands(studio, order) for order in orders] == [("accepted", "delivered")] * 4
    assert [studio.operation(order)["remote_job_id"] for order in orders] == [studio.job_of(order) for order in orders]
    assert len(studio.sim.posts) == 4
    assert all(studio.events(order)[:4] == ADOPTED for order in orders)


def test_an_adoption_is_a_decision_with_the_worker_as_its_actor_and_a_reason(studio: Studio) -> None:
    order = studio.order()
    studio.work()
    (row,) = studio.rows("select actor, reason from coatcheck.history where event = 'adopted'")
    (dispatch,) = studio.dispatches(order)
    assert row == {"actor": dispatch["worker"], "reason": "the service repeats the dispatch id"}
    assert (dispatch["outcome"], dispatch["remote_job_id"]) == ("accepted", studio.job_of(order))


@pytest.mark.parametrize("point", [Point.D8_REQUEST_COMPLETE, Point.D11_PARSED, Point.D12_SAVE_COMMIT_SENT])
def test_a_worker_that_is_killed_in_its_post_costs_a_lookup_and_no_second_post(studio: Studio, point: Point) -> None:
    order = studio.order(job={"queued_s": 0, "processing_s": 0.15})
    doomed = studio.worker(Strike(point=point))
    assert doomed.ended() == KILLED, doomed.talk
    studio.finish()
    assert stands(studio, order) == ("accepted", "delivered")
    assert (len(studio.sim.posts), len(studio.dispatches(order))) == (1, 1)


def test_an_error_that_nobody_foresaw_costs_a_lookup_and_no_second_post(studio: Studio) -> None:
    order = studio.order(job={"queued_s": 0, "processing_s": 0.15})
    studio.work(Strike(point=Point.D10_RESPONSE_COMPLETE, deed=Deed.RAISE))
    assert stands(studio, order) == ("accepted", "delivered")
    assert len(studio.sim.posts) == 1


@pytest.mark.parametrize("point", [Point.R3_DECISION_COMMIT_SENT, Point.R4_DECIDED])
def test_a_worker_that_is_killed_as_it_adopts_leaves_it_adopted_or_to_be_looked_up(
    studio: Studio, point: Point
) -> None:
    order = studio.order()
    doomed = studio.worker(Strike(point=point))
    assert doomed.ended() == KILLED, doomed.talk
    studio.finish()
    assert stands(studio, order) == ("accepted", "delivered")
    assert (studio.events(order).count("adopted"), len(studio.sim.posts)) == (1, 1)


def test_where_the_provider_does_not_echo_nothing_is_asked_and_nothing_adopted(studio: Studio) -> None:
    """Though the service could: what counts is how the provider is configured."""
    order = studio.order()
    studio.work(KIND="genace")
    assert studio.operation(order)["phase"] == "uncertain"
    assert studio.is_parked(order)
    assert "x-client-reference" not in studio.sim.posts[0].headers
    assert (len(studio.sim.posts), lists(studio.sim)) == (1, 0)


def test_a_worker_of_another_configuration_leaves_to_a_person_what_was_to_be_looked_up(studio: Studio) -> None:
    order = studio.order()
    studio.sim.script([{"on": "list", "kind": "status", "status": 503}])
    studio.work_until(lambda: studio.waits(order, 1))
    studio.database.move_time(120)
    studio.work(KIND="genace")
    assert studio.is_parked(order)


def test_a_job_that_repeats_another_reference_is_never_adopted(studio: Studio) -> None:
    order = studio.order()
    studio.sim.script([{"on": "list", "kind": "wrong_reference"}])
    studio.work()
    assert studio.operation(order)["phase"] == "uncertain"
    assert studio.is_parked(order)
    assert (len(studio.sim.posts), lists(studio.sim)) == (1, 1)


def test_what_is_not_found_is_asked_for_until_nothing_can_arrive_and_then_a_persons(studio: Studio) -> None:
    """Absence is never concluded: the operation stays uncertain, and its hold stays."""
    order = studio.order(job={**LOST, "create": "drop_before_accept"})
    studio.work_until(lambda: studio.waits(order, 1), **SLOW_SERVICE)
    lane = studio.lane(order)
    assert 3 < (lane["visible_at"] - studio.one("select coatcheck.lease_now() as now")["now"]).total_seconds() <= 60
    studio.database.move_time(30)
    studio.work_until(lambda: studio.waits(order, 2), **SLOW_SERVICE)
    studio.database.move_time(90)
    studio.work(**SLOW_SERVICE)
    assert studio.operation(order)["phase"] == "uncertain"
    assert studio.is_parked(order)
    assert (studio.dispatches(order)[0]["outcome"], len(studio.sim.posts), lists(studio.sim)) == ("uncertain", 1, 3)


def test_a_job_that_comes_to_exist_late_is_found_late(studio: Studio) -> None:
    order = studio.order(job={**LOST, "create": "drop_before_accept"})
    studio.work_until(lambda: studio.waits(order, 1), **SLOW_SERVICE)
    late = reposted(studio, order)
    studio.database.move_time(30)
    studio.work(**SLOW_SERVICE)
    assert studio.operation(order)["remote_job_id"] == late


STRIKES: Mapping[str, dict[str, Any]] = {
    "status": {"kind": "status", "status": 503},
    "html": {"kind": "status", "status": 404, "form": "html"},
    "throttled": {"kind": "throttled", "retry_after": "3"},
    "drop": {"kind": "drop"},
    "cut": {"kind": "cut", "at": -5},
    "no json": {"kind": "malformed", "form": "html"},
    "denied": {"kind": "status", "status": 403},
}


@pytest.mark.parametrize("strike", STRIKES)
def test_a_service_that_does_not_answer_is_asked_again_until_it_does(studio: Studio, strike: str) -> None:
    order = studio.order()
    studio.sim.script([{"on": "list", **STRIKES[strike]}])
    for count in (1, 2):
        studio.work_until(lambda: studio.waits(order, count))  # noqa: B023 - called within the round
        assert studio.operation(order)["phase"] == "uncertain"
        studio.database.move_time(120)
    studio.sim.script([], replace=True)
    studio.work()
    assert stands(studio, order) == ("accepted", "delivered")
    assert studio.incidents(order) == ([("look_denied", "theirs")] if strike == "denied" else [])
    assert len(studio.sim.posts) == 1


def test_a_service_that_is_down_is_asked_again_when_it_is_back(studio: Studio) -> None:
    order = studio.order()
    studio.sim.script([{"on": "list", "kind": "status", "nth": 1}])
    studio.work_until(lambda: studio.waits(order, 1))
    studio.sim.stop()
    studio.database.move_time(120)
    studio.work_until(lambda: studio.waits(order, 2))
    studio.sim.start()
    studio.database.move_time(120)
    studio.work()
    assert stands(studio, order) == ("accepted", "delivered")


def reposted(studio: Studio, order: UUID) -> str:
    """Somebody else's POST with the reference of the operation's dispatch; the answer is its job."""
    (dispatch,) = studio.dispatches(order)
    headers = {"Authorization": "Bearer key-for-tests", "X-Client-Reference": str(dispatch["dispatch_id"])}
    made = exchange(studio.sim.base_url, request_bytes("POST", "/api/v1/jobs", b"{}", **headers))
    return str(made.json()["job_id"])


def test_several_jobs_that_repeat_one_reference_are_an_incident_and_a_persons(studio: Studio) -> None:
    order = studio.order()
    studio.sim.script([{"on": "list", "kind": "status", "nth": 1}])
    studio.work_until(lambda: studio.waits(order, 1))
    reposted(studio, order)
    studio.database.move_time(120)
    studio.work()
    assert studio.operation(order)["phase"] == "uncertain"
    assert studio.is_parked(order)
    assert studio.incidents(order) == [("reference_repeated", "theirs")]


def test_a_list_that_makes_no_sense_is_an_incident_and_a_persons(studio: Studio) -> None:
    order = studio.order()
    studio.sim.script([{"on": "list", "kind": "malformed", "form": "id_number"}])
    studio.work()
    assert studio.is_parked(order)
    assert studio.incidents(order) == [("malformed", "theirs")]


def test_a_job_that_another_operation_owns_is_not_taken_from_it(studio: Studio) -> None:
    order, other = studio.order(), studio.order("bob", job={"outcome": "stuck"})
    studio.sim.script([{"on": "list", "kind": "status", "nth": 1}])
    studio.work_until(lambda: studio.waits(order, 1) and studio.operation(other)["phase"] == "accepted")
    with psycopg.connect(studio.url) as connection:
        connection.execute(
            "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at) values ('genace', %s, %s, 'owner', now())",
            [studio.job_of(order), other],
        )
    studio.database.move_time(120)
    studio.work_until(lambda: studio.is_parked(order))
    assert (studio.operation(order)["phase"], studio.operation(order)["remote_job_id"]) == ("uncertain", None)
    assert ("remote_id_owned", "theirs") in studio.incidents(order)


def test_what_a_person_decided_meanwhile_stands(studio: Studio) -> None:
    """The search is under way when somebody writes the operation off: what it finds changes nothing."""
    order = studio.order()
    studio.sim.script([{"on": "list", "kind": "stall", "seconds": 1}])

    def write_off() -> bool:
        with Ground(studio.database, "a person") as ground:
            return ground.happen(OperationId(order), ev.WriteOff(actor="ann", reason="late")).applied

    async def decided() -> bool:
        return lists(studio.sim) == 1 and await asyncio.to_thread(write_off)

    studio.work_until(decided)
    assert stands(studio, order) == ("abandoned", "not_started")
    assert "adopted" not in studio.events(order)
