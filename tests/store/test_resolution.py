"""What an unseen commit left behind is found, whenever it lands: under way, not begun with, or older than the snapshot that looks for it."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import postgres
from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, OperationId, RemoteJobId, RenderState
from coatcheck.core.steps import Step
from coatcheck.store.door import Save, Saved, Status
from faults.proxy import Cut, Side, cutting
from store.ground import ACCOUNT, Ground, look, stored
from store.test_committer_on_a_server import lanes, office
from waiting import until, until_async

KINDS = ("mark", "conclude", "snapshot", "deliver", "decide")


def step_of(ground: Ground, operation_id: OperationId, kind: str) -> Step:
    """One step of a kind, for an operation that is brought to where such a step comes."""
    event: ev.Event
    match kind:
        case "mark":
            event = ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT)
        case "conclude":
            job = RemoteJobId(f"job-{operation_id}")
            event = ev.Accepted(dispatch_id=ground.mark(operation_id), remote_job_id=job)
        case "snapshot":
            event = look(ground.accept(operation_id), RenderState.SUCCEEDED, outputs=2)
        case "deliver":
            ground.succeed(operation_id)
            event = stored(0)
        case _:
            ground.mark(operation_id)
            event = ev.LeaseEnded()
    return ground.step(operation_id, event)


def found(ground: Ground, save: Save) -> Saved | None:
    """What is there of one step."""

    async def asked() -> Saved | None:
        resolve = lanes(ground.line)[type(save)].resolve
        assert resolve is not None
        answer: Saved | None
        (answer,) = await resolve([save])
        return answer

    return ground.run(asked())


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_found_once_it_is_there_and_not_before(ground: Ground, kind: str) -> None:
    save = ground.as_save(step_of(ground, ground.enqueue("k"), kind))
    is_mark = kind == "mark"
    assert found(ground, save) == (Saved(status=Status.UNKNOWN) if is_mark else None)
    (written,) = ground.write([save])
    assert found(ground, save) == replace(
        written, status=Status.UNKNOWN if is_mark else Status.APPLIED, lease_token=None, held=None, unit=None
    )


def test_another_step_at_the_same_place_is_not_taken_for_ones_own(database: postgres.Database, ground: Ground) -> None:
    """A mark of another worker, a look that saw something else, an output with other bytes, a decision for another reason."""
    first, second, third, fourth = ground.enqueue_many(4)
    with Ground(database, "worker-2") as other:
        mine = ground.as_save(step_of(ground, first, "mark"))
        other.mark(first)
        assert found(ground, mine) == Saved(status=Status.UNKNOWN)
        job = ground.accept(second)
        seen = ground.as_save(ground.step(second, look(job, RenderState.QUEUED)))
        assert other.happen(second, look(job, RenderState.QUEUED)).applied
        assert found(ground, seen) is None
        ground.succeed(third)
        delivered = ground.as_save(ground.step(third, stored(0)))
        assert other.happen(third, replace(stored(0), sha256="cd" * 32)).applied
        assert found(ground, delivered) is None
        decided = ground.as_save(ground.step(fourth, ev.Cancel(actor="ada", reason="a slip")))
        assert other.happen(fourth, ev.Cancel(actor="ada", reason="too dear")).applied
        assert found(ground, decided) is None


def test_an_id_that_another_owns_and_evidence_are_found_as_what_they_are(ground: Ground) -> None:
    owner, loser, late = ground.enqueue_many(3)
    job = ground.accept(owner)
    taken = ground.as_save(ground.step(loser, ev.Accepted(dispatch_id=ground.mark(loser), remote_job_id=job)))
    assert [saved.status for saved in ground.write([taken])] == [Status.OWNED]
    assert found(ground, taken) == Saved(status=Status.OWNED, revision=2)
    dispatch_id = ground.mark(late)
    assert ground.happen(late, ev.Rejected(dispatch_id=dispatch_id, status=400)).applied
    evidence = ground.as_save(ground.step(late, ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId("j"))))
    assert found(ground, evidence) is None
    assert [saved.status for saved in ground.write([evidence])] == [Status.EVIDENCE]
    assert found(ground, evidence) == Saved(status=Status.EVIDENCE, revision=3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_that_is_still_under_way_is_waited_for(database: postgres.Database, ground: Ground, kind: str) -> None:
    """The look begins before that commit: what its own snapshot shows is too old to be believed."""
    operation_id = ground.enqueue("k")
    save = ground.as_save(step_of(ground, operation_id, kind))
    with Ground(database) as same_worker, database.connect() as holder, ThreadPoolExecutor(2) as pool:
        holder.execute("begin")
        holder.execute("select from coatcheck.operations for no key update")
        writing = pool.submit(ground.write, [save])
        until(lambda: same_worker.lock_waiters() == 1)
        looking = pool.submit(found, same_worker, save)
        until(lambda: ground.lock_waiters() == 2)
        holder.execute("commit")
        (written,) = writing.result(timeout=20)
        answer = looking.result(timeout=20)
    assert written.applied
    assert answer is not None
    assert answer.revision == written.revision == ground.operation(operation_id).revision


@pytest.mark.parametrize("kind", ["mark", "conclude"])
def test_a_session_that_has_not_begun_with_what_it_was_sent_is_outlasted(ground: Ground, kind: str) -> None:
    """It holds no lock yet, so no lock would wait for it: the mark would land after all and end in doubt."""
    before, operation_id = ground.enqueue_many(2)
    first, save = (ground.as_save(step_of(ground, each, kind)) for each in (before, operation_id))
    announced: deque[Cut] = deque()

    def cuts() -> Iterator[Cut | None]:
        while True:
            yield announced.popleft() if announced else None

    async def story(url: str) -> Saved:
        async with office(url, "victim") as here:
            # the statement is known to the session, so that the request is one that can be sent whole
            await here.made.save(first)
            (session,) = sessions(ground, "idle")
            os.kill(session, signal.SIGSTOP)
            try:
                announced.append(Cut(side=Side.REQUEST, share=1.0))
                saving = asyncio.create_task(here.made.save(save))
                await until_async(lambda: [pid for pid in sessions(ground, "idle") if pid != session])
            finally:
                os.kill(session, signal.SIGCONT)
            saved: Saved = await saving
            return saved

    marker = b"may be sent from now on" if kind == "mark" else b"the end of a batch of POSTs"
    with cutting(ground.database.url, marker, cuts()) as (proxy, url):
        saved = asyncio.run(story(url))
        assert proxy.cut_count == 1
    revision = {"mark": 1, "conclude": 2}[kind]
    assert saved == Saved(status=Status.UNKNOWN if kind == "mark" else Status.APPLIED, revision=revision)
    assert ground.operation(operation_id).revision == revision


def sessions(ground: Ground, state: str) -> list[int]:
    rows = ground.sql(
        "select pid from pg_stat_activity where application_name = 'coatcheck victim' and state = %s"
        " and datname = current_database()",
        state,
    )
    return [row["pid"] for row in rows]
