"""The checker proves itself: into true books each contradiction is written once, and exactly the predicate that watches for it says so."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

import promises
from coatcheck.seams import Point
from sentences import Sentence, names, said, sentences
from simulation import checker
from simulation.book_of_one import BEGINNING, BookOfOne
from simulation.checker import EACH, WHOLE, findings, read_by_others, sent_by_others, spooled, unsettled
from simulation.contradictions import AT_REST, PLANTS, Plant, job_forgotten, output_owed, output_stranded
from simulation.process import Process
from simulation.strikes import PointFaults
from simulation.troubles import Mix
from simulation.world import World

EVERY = [(name, plant) for name, plants in (PLANTS | AT_REST).items() for plant in plants]
ASKED = {"read_by_others", "sent_by_others"}
"""These read no books, and have tests of their own."""


@pytest.fixture
def book(tmp_path: Path) -> BookOfOne:
    return BookOfOne(tmp_path)


def told(book: BookOfOne) -> Iterator[tuple[str, Sentence, str]]:
    """Every predicate's name with what it says, but those of a story that goes on."""
    for look in WHOLE:
        yield from ((look.__name__, *each) for each in said(look(book.books)))
    for check in EACH:
        yield from ((check.__name__, *each) for each in said(check(book.books, book.operation)))


def told_at_rest(book: BookOfOne) -> Iterator[tuple[str, Sentence, str]]:
    yield from (("spooled", *each) for each in said(spooled(book.home)))
    owed = unsettled(book.tables["operations"], book.tables["outbox"], book.outputs)
    yield from (("unsettled", *each) for each in said(owed))


def test_every_predicate_has_its_plants() -> None:
    assert PLANTS.keys() == {*names(WHOLE), *names(EACH)}


def test_true_books_are_clean(book: BookOfOne) -> None:
    assert [*told(book), *told_at_rest(book)] == []
    assert findings(book.tables, book.posts, [book.job], book.sink) == []


@pytest.mark.parametrize(("name", "plant"), EVERY, ids=lambda each: getattr(each, "__name__", each))
def test_exactly_the_predicate_that_watches_for_a_contradiction_names_it(
    book: BookOfOne, name: str, plant: Plant
) -> None:
    plant(book)
    found = [*told(book)] if name in PLANTS else [*told_at_rest(book)]
    assert {predicate for predicate, _, _ in found} == {name}, found
    if name in PLANTS:
        whole = findings(book.tables, book.posts, [book.job], book.sink)
        assert all(words.endswith(part) for words, (_, _, part) in zip(whole, found, strict=True))


def test_every_sentence_of_the_checker_is_said_by_a_plant(tmp_path: Path) -> None:
    heard = set()
    for number, (name, plant) in enumerate(EVERY):
        book = BookOfOne(tmp_path / str(number))
        plant(book)
        heard |= {sentence for _, sentence, _ in (told if name in PLANTS else told_at_rest)(book)}
    written = sentences(checker) | sentences(promises)
    assert {each for each in written - heard if each.predicate not in ASKED} == set()


# -- what is no contradiction -------------------------------------------------------------------------------------------


def test_whoever_is_not_delivered_yet_may_have_left_an_object(book: BookOfOne) -> None:
    output_stranded(book)
    book.lane(1)
    assert [*told(book)] == []


@pytest.mark.parametrize("lane", [0, 1])
def test_what_a_person_is_told_of_is_not_owed(book: BookOfOne, lane: int) -> None:
    if lane:
        output_owed(book)
    else:
        book.outputs.clear()
        book.stands_at("render_state", "missing")
    book.lane(lane, parked_at=BEGINNING)
    assert [*told_at_rest(book)] == []


def test_what_its_service_does_not_know_is_not_in_flight(book: BookOfOne) -> None:
    book.stands_at("render_state", "missing")
    book.lane(0, parked_at=BEGINNING)
    assert [*told(book)] == []


def test_a_job_that_was_created_in_doubt_is_not_lost(book: BookOfOne) -> None:
    job_forgotten(book)
    book.dispatches[0]["outcome"] = "uncertain"
    assert [*told(book)] == []


# -- S9, S10 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "is_named"), [("dispatch op_1", False), ("observe op_1", True), ("", True)])
def test_a_post_of_anyone_but_a_dispatch_is_named(task: str, is_named: bool) -> None:
    world = World(1, mix=Mix.only())
    faults = PointFaults(
        Process("host"),
        loop=world.loop,
        mix=world.mix,
        chance=random.Random(1),
        journal=world.journal,
        passed=world.passed,
        drain=lambda: None,
        halt=lambda: None,
    )

    async def sends() -> None:
        faults.reached(Point.D6_CONNECTING)
        faults.reached(Point.D7_REQUEST_BYTES, 1)

    async def story() -> None:
        await asyncio.create_task(sends(), name=task or None)

    world.loop.run_until_complete(story())
    named = list(sent_by_others(world.passed.strangers))
    world.end()
    assert named == ([f"S9: a POST was sent by {task or 'a task without a name'}"] if is_named else [])


@pytest.mark.parametrize("readers", [{"ada"}, {"ada", "bob"}, set()], ids=["own", "everybody", "nobody"])
def test_only_its_own_tenant_reads_an_operation(book: BookOfOne, readers: set[str]) -> None:
    async def find(operation_id: UUID, tenant_id: str) -> object:
        return operation_id if tenant_id in readers else None

    async def asked() -> list[str]:
        return [each async for each in read_by_others(book.tables["operations"], ["ada", "bob"], find)]

    found = asyncio.run(asked())
    wrong = {"ada", "bob"} & (readers ^ {"ada"})
    assert found == [f"S10: {tenant_id} asked for bird of ada" for tenant_id in sorted(wrong)]
