"""Each guard of the real code is needed: with it taken away, a story that passes otherwise fails by its own assertion."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

import postgres
from coatcheck.app.workplace import worker_of
from coatcheck.core import machine
from coatcheck.core.actions import Action
from coatcheck.core.events import EventKind as Kind
from coatcheck.core.operation import Operation, Phase
from coatcheck.queue import leases
from coatcheck.queue.leases import Release
from coatcheck.seams import Faults, Point, Seams
from coatcheck.sim import simulated_service
from coatcheck.store import door
from coatcheck.store.door import Saved, Status
from coatcheck.workers.dispatch import Dispatcher
from faults.stage import Stage
from store import test_conclude, test_decide, test_deliver, test_mark, test_snapshot
from store.ground import Ground
from waiting import until_async


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A predicate that is taken out of a statement, and the story that must notice."""

    module: ModuleType
    statement: str
    predicate: str
    instead: str
    story: Callable[[Ground], None]


def a_lost_lease_gives_nothing_back(ground: Ground) -> None:
    """Told by the token: the same worker holds the message again, so that its name alone would pass."""
    ground.enqueue("k")
    (lost,) = ground.claim(Action.DISPATCH)
    ground.sql("update coatcheck.outbox set visible_at = now() - interval '1 s'")
    (held,) = ground.claim(Action.DISPATCH)
    assert ground.run(ground.leases.release([Release(message=lost, delay_s=60)])) == [False]
    assert ground.run(ground.leases.renew([held])) == {held.slot}


def an_older_look_is_stale(ground: Ground) -> None:
    test_snapshot.test_a_batch_saves_the_fresh_looks_and_reports_the_stale(
        ground, lambda step: replace(step, revision=step.revision - 1)
    )


CUTS = {
    "the revision of a mark": Cut(
        module=door,
        statement="mark",
        predicate=" or locked.revision <> input.revision",
        instead="",
        story=test_mark.test_a_batch_marks_what_it_may_and_reports_the_rest,
    ),
    "the revision of a decision": Cut(
        module=door,
        statement="decide",
        predicate="coalesce(locked.revision = input.revision, false)",
        instead="locked.operation_id is not null",
        story=test_decide.test_a_batch_decides_what_it_read_and_reports_the_rest,
    ),
    "the revision of a look": Cut(
        module=door,
        statement="snapshot",
        predicate="locked.revision = input.revision and ",
        instead="",
        story=an_older_look_is_stale,
    ),
    "the dispatch of a conclusion": Cut(
        module=door,
        statement="conclude",
        predicate="when locked.dispatch_id = input.dispatch_id then",
        instead="when true then",
        story=test_conclude.test_an_id_of_a_former_dispatch_is_an_orphan_once_another_is_current,
    ),
    "the state of an output": Cut(
        module=door,
        statement="deliver",
        predicate="outputs.state <> 'delivered' and ",
        instead="outputs.state is not null and ",
        story=test_deliver.test_a_stored_output_is_delivered_once_and_its_lane_is_gone,
    ),
    "the token of a lease": Cut(
        module=leases,
        statement="release",
        predicate="held.lease_token = input.lease_token and ",
        instead="",
        story=a_lost_lease_gives_nothing_back,
    ),
}


@pytest.fixture
def ground(database: postgres.Database) -> Iterator[Ground]:
    with Ground(database) as made:
        yield made


def cut_out(monkeypatch: pytest.MonkeyPatch, cut: Cut) -> None:
    """Let the module find its statement without the predicate."""
    whole = cut.module.statement

    def mutated(room: str, name: str) -> str:
        text: str = whole(room, name)
        if name != cut.statement:
            return text
        assert text.count(cut.predicate) == 1, f"{cut.predicate!r} is not what {name}.sql says any more"
        return text.replace(cut.predicate, cut.instead)

    monkeypatch.setattr(cut.module, "statement", mutated)


def forget(monkeypatch: pytest.MonkeyPatch, phase: Phase, kind: Kind) -> None:
    """Delete a rule of the table."""
    assert (phase, kind) in machine._BY_PAIR
    monkeypatch.setattr(
        machine, "_BY_PAIR", {pair: rows for pair, rows in machine._BY_PAIR.items() if pair != (phase, kind)}
    )


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_the_story_holds_with_every_predicate_in_place(ground: Ground, cut: Cut) -> None:
    cut.story(ground)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_the_story_fails_without(ground: Ground, cut: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_out(monkeypatch, cut)
    with pytest.raises(AssertionError):
        cut.story(ground)


def test_behind_the_phase_of_a_mark_stands_the_index(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2. No statement of ours is the only wall in front of a second POST."""
    cut = Cut(
        module=door,
        statement="mark",
        predicate="locked.phase <> 'prepared' or ",
        instead="",
        story=test_mark.test_a_message_of_a_marked_operation_never_leads_to_a_second_mark,
    )
    cut_out(monkeypatch, cut)
    with pytest.raises(psycopg.errors.UniqueViolation, match="dispatches_authorisation_idx"):
        cut.story(ground)


# -- the mark and the rule that makes doubt of a lost reply --------------------------------------------------------------


class FirstByte(Faults):
    """Looks into the database from outside in the instant when the first byte of a POST is about to leave."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.seen: list[tuple[object, ...]] = []

    def reached(self, point: Point, count: int = 0) -> None:
        if point is not Point.D6_CONNECTING:
            return
        with psycopg.connect(self._url, autocommit=True) as connection:
            marks = "select phase, (select count(*) from coatcheck.dispatches where outcome = 'open') from coatcheck.operations"
            self.seen += connection.execute(marks).fetchall()


def the_mark_is_committed_before_the_first_byte(stage: Stage) -> None:
    """S1."""
    stage.enqueue()
    first_byte = FirstByte(stage.url)
    asyncio.run(stage._work(stage.settings(), Seams(faults=first_byte)))
    assert first_byte.seen == [("dispatching", 1)]


def a_lost_reply_is_doubt_at_once(stage: Stage) -> None:
    """The remote job exists, nobody knows its id, and the same worker says so."""
    (one,) = stage.enqueue({"create": "accept_then_drop"})

    async def work() -> None:
        async with worker_of(stage.settings(), stage.url, seams=Seams.real()) as (worker, _):
            working = asyncio.create_task(worker.run())
            try:
                await until_async(lambda: stage.posts(one) == 1)
                await until_async(lambda: stage.operation(one)["phase"] != "dispatching", deadline_s=3)
            finally:
                worker.drain()
                await working

    asyncio.run(work())
    assert stage.events(one) == ["generation_requested", "dispatch_marked", "became_uncertain"]


def the_end_of_a_lease_is_doubt(stage: Stage) -> None:
    """S3, as the store has it."""
    with Ground(stage.database) as ground:
        test_decide.test_the_end_of_a_lease_is_doubt_in_phase_outcome_and_lane(ground)


@pytest.fixture
def stage(database: postgres.Database, tmp_path: Path) -> Iterator[Stage]:
    with simulated_service(seed=7) as sim, Stage(database, sim, tmp_path) as made:
        yield made


STORIES = [the_mark_is_committed_before_the_first_byte, a_lost_reply_is_doubt_at_once, the_end_of_a_lease_is_doubt]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_story_holds_as_the_code_is(stage: Stage, story: Callable[[Stage], None]) -> None:
    story(stage)


def test_without_the_mark_a_post_leaves_before_anything_is_known_of_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_mark(_self: Dispatcher, operation: Operation, *_rest: object) -> Saved:
        return Saved(status=Status.APPLIED, revision=operation.revision)

    monkeypatch.setattr(Dispatcher, "_mark", no_mark)
    with pytest.raises(AssertionError, match="dispatching"):
        the_mark_is_committed_before_the_first_byte(stage)


def test_without_the_rule_for_doubt_a_lost_reply_says_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, Phase.DISPATCHING, Kind.DOUBTED)
    with pytest.raises(AssertionError, match="did not hold"):
        a_lost_reply_is_doubt_at_once(stage)


def test_without_the_rule_for_ended_leases_a_dead_dispatch_stays_open(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch, Phase.DISPATCHING, Kind.LEASE_ENDED)
    with pytest.raises(AssertionError, match="not_in_table"):
        the_end_of_a_lease_is_doubt(stage)
