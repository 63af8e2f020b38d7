"""The end of a POST whose commit nobody saw, or whose handler was cut off, is saved once all the same; a mark is then never sent under."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.rows import TupleRow

from coatcheck.app.workplace import worker_of
from coatcheck.seams import Seams
from faults.proxy import Cut, End, Side, cutting
from faults.stage import LEASES_OVER_S, Stage
from figures import Report
from waiting import until_async

CONCLUDE = b"the end of a batch of POSTs"
"""The words by which the statement of a conclusion is known."""
GATED = "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
LIFE = ["generation_requested", "dispatch_marked", "generation_accepted", "render_finished", "output_delivered"]


@contextmanager
def gate(stage: Stage, when: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Every statement that leaves a dispatch as `when` says waits, done but not committed, until the block ends."""
    with stage.database.connect() as connection:
        connection.execute("select pg_advisory_lock(7)")
        connection.execute(
            "create function wait() returns trigger language plpgsql as"
            " $$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$"
        )
        connection.execute(
            "create trigger gate after insert or update on coatcheck.dispatches for each row"
            f" when ({when}) execute function wait()".encode()
        )
        yield connection


@pytest.mark.parametrize("end", End)
def test_a_conclusion_cut_at_any_share_of_request_or_reply_is_saved_once(
    stage: Stage, end: End, figures: Report
) -> None:
    """At every byte, and without a worker around it: tests/store/test_cut_commits.py."""
    cuts = [Cut(side=side, share=at / 8, end=end) for side in Side for at in range(8)]
    operations = stage.enqueue(count=len(cuts))
    with cutting(stage.database.url, CONCLUDE, _each_once(cuts), by_tcp=end is End.RST) as (proxy, url):
        stage.url = url
        stage.work(COATCHECK_CONCURRENCY__DISPATCH="1")
        assert proxy.cut_count == len(cuts)
    figures("commit cuts", len(cuts))
    stage.check()
    assert len(stage.sim.posts) == len(operations)
    assert {stage.operation(one)["delivery_state"] for one in operations} == {"delivered"}
    # the look that finds a conclusion tells it from one that came twice, and its reply goes on to what follows
    for one in operations:
        assert stage.events(one)[:3] == LIFE[:3]
        assert stage.events(one).count("generation_accepted") == 1
        assert "reply_kept" not in stage.events(one)


def _each_once(cuts: list[Cut]) -> Iterator[Cut | None]:
    """What is written again after a cut passes."""
    for cut in cuts:
        yield cut
        if cut.side is Side.REQUEST:
            yield None


@pytest.mark.parametrize(
    ("when", "phases", "posts"),
    [
        ("new.outcome = 'open'", ["dispatching", "uncertain"], 0),
        ("new.ended_at is not null", ["accepted", "accepted"], 1),
    ],
    ids=["mark", "conclusion"],
)
def test_a_handler_that_is_cut_off_while_its_commit_is_under_way(
    stage: Stage, when: str, phases: list[str], posts: int
) -> None:
    """The mark that was committed is never sent under: it ends in doubt. The conclusion is written, though nobody waits for it."""
    (one,) = stage.enqueue()

    async def story() -> None:
        async with asyncio.timeout(60), worker_of(stage.settings(), stage.url, seams=Seams()) as (worker, _):
            with gate(stage, when) as gating:
                working = asyncio.create_task(worker.run())
                await until_async(lambda: stage.rows(GATED))
                (handling,) = [task for task in asyncio.all_tasks() if task.get_name().startswith("dispatch ")]
                handling.cancel()
                await until_async(handling.cancelling)
                gating.execute("select pg_advisory_unlock(7)")
                await until_async(lambda: stage.operation(one)["phase"] == phases[0])
                await until_async(handling.done)
                worker.drain()
                await working

    asyncio.run(story())
    assert len(stage.sim.posts) == posts
    stage.database.move_time(LEASES_OVER_S)
    stage.work()
    stage.check()
    assert stage.operation(one)["phase"] == phases[1]
    assert len(stage.sim.posts) == posts
