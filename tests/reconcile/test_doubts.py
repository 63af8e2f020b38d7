"""What a person sees before deciding: every doubt with the money at risk, and the evidence about one of them."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

import pytest

from coatcheck.app.reconciling import Doubt, Evidence, OperatorDecisions
from coatcheck.seams import Seams
from coatcheck.sim import ServiceSettings, ThreadedService, simulated_service
from coatcheck.store.db import Database
from coatcheck.store.doubts import doubts
from faults.stage import QUICK
from reconcile.scene import Scene


async def listed(eve: OperatorDecisions, tenant_id: str | None = None) -> list[Doubt]:
    return await eve.doubts(tenant_id=tenant_id)


def evidence(scene: Scene, operation: str, changes: Mapping[str, str] = {}, *, ask: bool = True) -> Evidence:
    return scene.decides(lambda eve: eve.evidence(operation, ask=ask), **changes)


def test_a_doubt_tells_its_dispatch_its_money_and_what_is_possible_now(slow_scene: Scene) -> None:
    operation = slow_scene.in_doubt()
    (found,) = slow_scene.decides(listed)
    assert (found.operation_id, found.tenant_id, found.phase, found.render_state) == (
        operation,
        "ada",
        "uncertain",
        "none",
    )
    assert (found.provider, found.account, found.number, found.authorisation) == ("genace", "genace", 1, 1)
    assert (found.held, found.unit, found.stage, found.http_status) == (
        Decimal(5),
        "credits",
        "body_sent",
        None,
    )
    assert found.revision == slow_scene.standing(operation)["revision"]
    assert (found.is_quiescent, found.decisions) == (False, ("adopt", "write-off"))
    assert 0 <= found.age_s < 60
    slow_scene.database.move_time(3700)
    (later,) = slow_scene.decides(listed)
    assert (later.is_quiescent, later.decisions) == (True, ("adopt", "prove-absent", "redispatch", "write-off"))
    assert later.age_s > 3600


def test_only_what_is_in_doubt_is_listed_and_under_a_tenant_only_theirs(scene: Scene) -> None:
    theirs, ours = scene.in_doubt("bob"), scene.in_doubt("ada")
    scene.asked(job=QUICK)
    scene.work()
    scene.asked(job=QUICK)
    assert [each.operation_id for each in scene.decides(listed)] == [theirs, ours]
    assert [each.operation_id for each in scene.decides(lambda eve: listed(eve, "bob"))] == [theirs]
    assert scene.decides(lambda eve: listed(eve, "nobody")) == []


def test_a_list_longer_than_a_page_misses_none(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck.store.doubts.PAGE", 2)
    job = {**QUICK, "create": {"kind": "accept_then_drop", "times": 1}}
    asked = [scene.asked(job=job) for _ in range(5)]
    scene.work()

    async def read(_: OperatorDecisions) -> list[str]:
        database = Database(scene.url, seams=Seams.real(), name="reader")
        found = [each.operation.operation_key async for each in doubts(database, tenant_id=None, with_stuck=True)]
        await database.close()
        return found

    # ids of one millisecond come in any order
    assert sorted(scene.decides(read)) == sorted(scene.standing(each)["operation_key"] for each in asked)


def test_the_evidence_is_the_story_the_candidates_and_the_commands(scene: Scene) -> None:
    cut = {"kind": "cut", "at": -3}
    operation = scene.asked(job={**QUICK, "create": cut})
    scene.work()
    scene.database.move_time(1)
    found = evidence(scene, operation)
    job = scene.job_of(operation)
    assert [(each.remote_job_id, each.source) for each in found.candidates] == [(job, "reply")]
    assert [each.command for each in found.possible] == [
        f"coatcheck reconcile adopt {operation} {job} --reason REASON",
        f"coatcheck reconcile prove-absent {operation} --reason REASON",
        f"coatcheck reconcile redispatch {operation} --yes --reason REASON",
        f"coatcheck reconcile write-off {operation} --reason REASON",
    ]
    assert "uncertain" in found.story[0].title
    assert "no list" in found.service
    # nothing was acted on
    assert scene.standing(operation)["phase"] == "uncertain"


def test_what_is_not_in_doubt_has_a_story_and_nothing_to_decide(scene: Scene) -> None:
    operation = scene.asked()
    found = evidence(scene, operation)
    assert (found.possible, found.candidates, found.doubt.phase) == ((), (), "prepared")


@pytest.fixture
def echoing() -> Iterator[ThreadedService]:
    with simulated_service(seed=7, settings=ServiceSettings(style="echo")) as running:
        yield running


def test_a_service_with_a_list_shows_the_jobs_of_that_time_and_who_has_them(
    scene: Scene, echoing: ThreadedService
) -> None:
    """Asked in the style `genace` with a path for the list: nothing is looked up by itself."""
    scene.sim = echoing
    with_list = {"LIST_PATH": "/api/v1/jobs"}
    operation, other = scene.in_doubt(), scene.in_doubt()
    scene.decides(lambda eve: eve.adopt(other, scene.job_of(other), reason="ledger"))
    scene.rows("update coatcheck.dispatches set quiescent_at = now() + interval '60 s' returning number")
    found = evidence(scene, operation, with_list)
    jobs = {each.remote_job_id: each for each in found.candidates}
    assert jobs[scene.job_of(operation)].source == "list"
    assert jobs[scene.job_of(operation)].taken_by is None
    assert jobs[scene.job_of(other)].taken_by == other
    assert "listed 2 jobs" in found.service
    assert evidence(scene, operation, with_list, ask=False).candidates == ()
    echoing.script([{"on": "list", "kind": "status", "status": 503, "times": "always"}])
    away = evidence(scene, operation, with_list)
    assert (away.candidates, "could not be asked" in away.service) == ((), True)


def test_a_service_that_cannot_be_asked_is_said_and_the_rest_is_shown(scene: Scene) -> None:
    operation = scene.in_doubt()
    found = evidence(scene, operation, {"ACCOUNT": "another"})
    assert "not asked" in found.service
    assert [each.decision for each in found.possible] == ["adopt", "prove-absent", "redispatch", "write-off"]
