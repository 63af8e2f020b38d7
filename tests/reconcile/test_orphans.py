"""Orphans: paid jobs that no operation could take, listed with their cost until one person has dealt with each."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial

import pytest

from coatcheck import NotFound, Refused, StaleRevision
from coatcheck.app.reconciling import OperatorDecisions, Orphan, Resolution
from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId, RenderState
from coatcheck.seams import Seams
from coatcheck.store.db import Database
from coatcheck.store.orphans import orphans
from reconcile.scene import Scene
from reconcile.test_adopting import refused
from store.audited import audited
from store.ground import Ground, look

REASON = "cancelled at the service, and refunded"


@pytest.fixture
def ground(scene: Scene) -> Iterator[Ground]:
    with Ground(scene.database) as made:
        yield made


def late(ground: Ground, key: str, job: str) -> OperationId:
    """An operation that was written off, and of which a job came to light after all."""
    operation_id = ground.enqueue(key, estimate=5)
    dispatch_id = ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.WriteOff(actor="eve", reason="lost", released=True))
    ground.happen(operation_id, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId(job)))
    return operation_id


async def listed(eve: OperatorDecisions, *, resolved: bool = False) -> list[Orphan]:
    return await eve.orphans(resolved=resolved)


def resolve(scene: Scene, job: str, more: Mapping[str, object] = {}, *, actor: str = "eve") -> Resolution:
    async def ask(eve: OperatorDecisions) -> Resolution:
        given = {"account": "genace", "reason": REASON, **more}
        return await eve.resolve_orphan(job, **given)  # type: ignore[arg-type] # what each story gives

    return scene.decides(ask, actor=actor)


def money(ground: Ground) -> tuple[float, float]:
    (row,) = ground.sql("select held, charged from coatcheck.allowances where tenant_id = 't1'")
    return float(row["held"]), float(row["charged"])


def test_an_orphan_is_listed_with_its_cost_until_it_is_resolved(scene: Scene, ground: Ground) -> None:
    late(ground, "k1", "job-1")
    (found,) = scene.decides(listed)
    assert (found.remote_job_id, found.account, found.phase, found.tenant_id) == ("job-1", "genace", "abandoned", "t1")
    assert (found.number, found.cost, found.unit, found.basis, found.resolved_at) == (
        1,
        Decimal(5),
        "credits",
        "assumed",
        None,
    )
    made = resolve(scene, "job-1")
    assert (made.resolved_by, made.resolution, made.phase) == ("eve", REASON, "abandoned")
    assert scene.decides(listed) == []
    (kept,) = scene.decides(lambda eve: listed(eve, resolved=True))
    assert (kept.resolved_by, kept.resolution, kept.resolved_at) == ("eve", REASON, made.resolved_at)
    assert money(ground) == (0, 5)


@pytest.mark.parametrize("charged", [0, "4.25", Decimal(7)])
def test_what_the_service_says_that_it_cost_corrects_the_charge_also_of_a_closed_operation(
    scene: Scene, ground: Ground, charged: object
) -> None:
    operation_id = late(ground, "k1", "job-1")
    revision = ground.operation(operation_id).revision
    made = resolve(scene, "job-1", {"charged": charged})
    assert money(ground) == (0, float(str(charged)))
    row = ground.one("dispatches", operation_id, "charged", "basis")
    assert row == {"charged": Decimal(str(charged)), "basis": "service"}
    assert made.revision == revision + 1
    (told,) = [row for row in ground.all("history", operation_id) if row["revision"] == made.revision]
    assert (told["event"], told["actor"], told["reason"]) == ("orphan_resolved", "eve", REASON)
    assert (told["from_phase"], told["to_phase"]) == ("abandoned", "abandoned")


def test_one_person_resolves_and_the_next_is_told_who_did(scene: Scene, ground: Ground) -> None:
    late(ground, "k1", "job-1")
    resolve(scene, "job-1")
    told = refused(scene, StaleRevision, lambda: resolve(scene, "job-1", {"charged": 0}, actor="max"))
    assert 'resolved by "eve" at ' in told


def test_what_is_no_orphan_is_not_found_and_what_is_wrong_is_refused(scene: Scene, ground: Ground) -> None:
    operation_id = late(ground, "k1", "job-1")
    owned = ground.accept(ground.enqueue("k2"))
    for job, more in (("job-2", {}), ("job-1", {"account": "other"}), (owned, {})):
        refused(scene, NotFound, partial(resolve, scene, job, more))
    amounts = ("-1", "NaN", "Infinity", "1e3", "x", "", "1_000", " 5 ", "+5", "0.0000000000001", True)
    wrong: list[dict[str, object]] = [{"reason": " "}, {"account": ""}, {"revision": -1}, {"revision": 2**63}]
    wrong += [{"charged": amount} for amount in amounts]
    for each in wrong:
        refused(scene, Refused, partial(resolve, scene, "job-1", each))
    refused(scene, Refused, lambda: resolve(scene, "job\n1"))
    seen = ground.operation(operation_id).revision
    assert f"revision {seen}" in refused(scene, StaleRevision, lambda: resolve(scene, "job-1", {"revision": seen - 1}))
    assert resolve(scene, "job-1", {"revision": seen}).revision == seen + 1


@pytest.mark.parametrize("is_final", [False, True])
def test_what_another_job_of_the_same_post_cost_is_added_to_the_charge_of_its_dispatch(
    scene: Scene, ground: Ground, is_final: bool
) -> None:
    operation_id = ground.enqueue("k1", estimate=5)
    dispatch_id = ground.mark(operation_id)
    for job in ("job-1", "job-2"):
        ground.happen(operation_id, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId(job)))
    (found,) = scene.decides(listed)
    assert (found.remote_job_id, found.cost, found.basis) == ("job-2", Decimal(5), "assumed")
    figure = look(RemoteJobId("job-1"), RenderState.FAILED, charged=3)
    if is_final:
        ground.happen(operation_id, figure)
    assert resolve(scene, "job-2", {"charged": 9}).charged == 9
    assert money(ground) == ((0, 12) if is_final else (5, 0))
    if not is_final:
        ground.happen(operation_id, figure)
    assert money(ground) == (0, 12)
    assert ground.one("dispatches", operation_id, "charged", "orphaned") == {"charged": 12, "orphaned": 9}
    assert audited(scene.database) == []


def test_an_orphan_of_which_no_dispatch_is_recorded_has_no_charge_to_correct(scene: Scene, ground: Ground) -> None:
    operation_id = ground.enqueue("k1", estimate=5)
    ground.sql(
        "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at) values ('genace', 'job-1', %s, 'orphan', now())",
        operation_id,
    )
    told = refused(scene, Refused, lambda: resolve(scene, "job-1", {"charged": 9}))
    assert "got none recorded" in told
    assert resolve(scene, "job-1").charged is None


def test_a_list_longer_than_a_page_misses_none(scene: Scene, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck.store.orphans.PAGE", 2)
    for number in range(5):
        late(ground, f"k{number}", f"job-{number}")

    async def read() -> list[str]:
        database = Database(scene.url, seams=Seams.real(), name="reader")
        found: list[str] = [each.remote_job_id async for each in orphans(database, with_resolved=False)]
        await database.close()
        return found

    assert ground.run(read()) == [f"job-{number}" for number in range(5)]
