"""A decision whose commit nobody saw: found by its content, made when it is not there, and never made twice."""

import pytest

from coatcheck import CommitUnknown
from coatcheck.app.reconciling import OperatorDecisions
from coatcheck.core import events as ev
from coatcheck.core.operation import RemoteJobId
from faults.proxy import Cut, Side, cutting
from reconcile.scene import Scene
from store.ground import Ground

DECIDE = b"a batch of decisions"
RESOLVE = b"a person dealt with an orphan"


@pytest.mark.parametrize("side", Side, ids=lambda side: side.name.lower())
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_decision_that_is_cut_is_made_and_told_as_one(scene: Scene, side: Side, share: float) -> None:
    operation = scene.quiet(created=False)
    with cutting(scene.database.url, DECIDE, [Cut(side=side, share=share)]) as (proxy, url):
        made = scene.decides(lambda eve: eve.prove_absent(operation, reason="not there"), COATCHECK_DATABASE_URL=url)
        assert proxy.cut_count == 1
    assert made.operation.revision == scene.standing(operation)["revision"]
    assert scene.happened(operation) == ["proven_absent"]
    assert scene.money() == (0, 0)


def test_a_decision_that_is_never_seen_is_said_to_be_unknown(scene: Scene) -> None:
    operation = scene.quiet(created=False)
    cuts = [Cut(side=Side.REPLY)] * 20
    with (
        cutting(scene.database.url, b"a batch of ", cuts) as (_, url),
        pytest.raises(CommitUnknown) as caught,
    ):
        scene.decides(lambda eve: eve.prove_absent(operation, reason="not there"), COATCHECK_DATABASE_URL=url)
    assert f"coatcheck operations show {operation}" in caught.value.next
    assert scene.happened(operation) == ["proven_absent"]


@pytest.mark.parametrize("side", Side, ids=lambda side: side.name.lower())
def test_an_orphan_that_is_resolved_unseen_is_resolved_once(scene: Scene, side: Side) -> None:
    with Ground(scene.database) as ground:
        operation_id = ground.enqueue("k1", estimate=5)
        dispatch_id = ground.mark(operation_id)
        ground.happen(operation_id, ev.LeaseEnded())
        ground.happen(operation_id, ev.WriteOff(actor="eve", reason="lost"))
        ground.happen(operation_id, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId("job-1")))
        before = ground.operation(operation_id).revision

        async def ask(eve: OperatorDecisions) -> int | None:
            found = await eve.resolve_orphan("job-1", account="genace", reason="refunded", charged=0)
            return found.revision

        with cutting(scene.database.url, RESOLVE, [Cut(side=side, share=0.5)]) as (_, url):
            assert scene.decides(ask, COATCHECK_DATABASE_URL=url) == before + 1
        assert ground.operation(operation_id).revision == before + 1


def test_two_operations_that_claim_one_job_at_once_share_it_never(scene: Scene) -> None:
    import asyncio  # noqa: PLC0415 - only this story has two people on one loop

    from coatcheck import Coatcheck, RemoteJobOwned  # noqa: PLC0415 - as above

    first, second = scene.in_doubt(), scene.in_doubt()
    job = scene.job_of(first)
    scene.rows(
        "update coatcheck.dispatches set begun_at = now() - interval '60 s', quiescent_at = now() + interval '60 s' returning number"
    )
    settings = scene.settings({"COATCHECK_DATABASE_URL": scene.url})

    async def claim(operation: str) -> str:
        async with Coatcheck(settings) as coatcheck:
            try:
                return (await coatcheck.for_operator("eve").adopt(operation, job, reason="ledger")).result
            except RemoteJobOwned as error:
                return error.code

    async def both() -> list[str]:
        return sorted(await asyncio.gather(claim(first), claim(second)))

    assert asyncio.run(both()) == ["done", "remote_job_owned"]
    assert scene.one("select count(*) from coatcheck.remote_jobs") == {"count": 1}
