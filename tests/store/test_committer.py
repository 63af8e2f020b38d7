"""The committer: large batches under load, bad rows alone, and nothing lost in an outage."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import psycopg
import pytest

from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.committer import BATCH, Committer, Lane
from coatcheck.store.db import Trouble, trouble
from store.writers import Item, Writer, away, committer, enqueued, trial


def test_what_waits_while_a_batch_commits_is_the_next_batch() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        first = await enqueued(made, [Item(0)])
        await asyncio.sleep(0)
        rest = await enqueued(made, [Item(key) for key in range(1, 1 + BATCH + 10)])
        writer.held.set()
        assert await asyncio.gather(*first, *rest) == [str(key) for key in range(BATCH + 11)]
        assert (made.commit_count, made.item_count) == (3, BATCH + 11)

    assert [len(batch) for batch in trial(story).written] == [1, BATCH, 10]


@pytest.mark.parametrize(("count", "rest_count"), [(3 * BATCH, 1), (BATCH + 10, 2)])
def test_company_that_is_there_already_is_not_waited_for(count: int, rest_count: int) -> None:
    rests: list[float] = []

    async def noted(seconds: float) -> None:
        rests.append(seconds)

    async def story() -> None:
        writer = Writer()
        seams = replace(Seams.real(), sleep=noted)
        made = Committer({Item: Lane(write=writer.write, key=lambda item: item.key)}, seams=seams, rest_s=0.05)
        tasks = await enqueued(made, [Item(key) for key in range(count)])
        writer.held.set()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)
        assert rests == [0.05] * rest_count, "after the last one, and where few are left"
        await made.close()

    asyncio.run(story())


def test_a_key_is_once_in_a_batch_and_its_items_keep_their_order() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        tasks = await enqueued(made, [Item(1, "a"), Item(2, "a"), Item(1, "b"), Item(1, "c"), Item(2, "b")])
        writer.held.set()
        assert await asyncio.gather(*tasks) == ["1a", "2a", "1b", "1c", "2b"]

    writer = trial(story)
    assert all(len({item.key for item in batch}) == len(batch) for batch in writer.written)
    assert [item.text for batch in writer.written for item in batch if item.key == 1] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "surprise",
    [
        psycopg.errors.CheckViolation("23514"),
        psycopg.errors.InvalidTextRepresentation("22P02"),
        psycopg.DataError("of the driver's own, without a state"),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        KeyError("a defect of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_bad_row_fails_alone_and_the_committer_lives_on(surprise: Exception) -> None:
    def fails(batch: Sequence[Item]) -> None:
        if any(item.text == "bad" for item in batch):
            raise surprise

    async def story(writer: Writer, made: Committer) -> None:
        writer.fails = fails
        tasks = await enqueued(made, [Item(key, "bad" if key in (7, 30) else "") for key in range(40)])
        writer.held.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [key for key, answer in enumerate(answers) if answer is surprise] == [7, 30]
        assert [answer for answer in answers if answer is not surprise] == [
            str(key) for key in range(40) if key not in (7, 30)
        ]
        assert await made.save(Item(99)) == "99"

    trial(story)


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.SerializationFailure("40001"),
        psycopg.errors.DeadlockDetected("40P01"),
        psycopg.errors.LockNotAvailable("55P03"),
        psycopg.errors.AdminShutdown("57P01"),
        psycopg.errors.DiskFull("53100"),
        psycopg.OperationalError("the connection is lost"),
        Unavailable("away", next="wait"),
        CommitUnknown("broke", next="look"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_may_pass_is_tried_again_with_the_same_batch(error: Exception) -> None:
    async def story(writer: Writer, made: Committer) -> None:
        failures = iter(range(3))

        def fails(_batch: Sequence[Item]) -> None:
            if next(failures, None) is not None:
                raise error

        writer.fails = fails
        tasks = await enqueued(made, [Item(key) for key in range(5)])
        writer.held.set()
        assert await asyncio.gather(*tasks) == [str(key) for key in range(5)]

    assert [len(batch) for batch in trial(story).written] == [5]


def broken(_batch: Sequence[Item]) -> None:
    raise CommitUnknown("broke", next="look")


def test_what_is_found_of_a_batch_in_doubt_is_answered_and_only_the_rest_is_written_again() -> None:
    asked: list[list[int]] = []

    async def look(batch: Sequence[Item]) -> list[str | None]:
        asked.append([item.key for item in batch])
        if len(asked) == 1:
            raise CommitUnknown("broke again", next="look")
        return ["found" if item.key == 1 else None for item in batch]

    async def story(writer: Writer, made: Committer) -> None:
        writer.fails = lambda batch: None if asked else broken(batch)
        writer.held.set()
        tasks = await enqueued(made, [Item(key) for key in range(3)])
        assert await asyncio.gather(*tasks) == ["0", "found", "2"]

    writer = trial(story, resolve=look)
    assert asked == [[0, 1, 2]] * 2
    assert [[item.key for item in batch] for batch in writer.written] == [[0, 2]]


def test_a_doubt_that_cannot_be_looked_up_for_one_item_leaves_the_doubts_of_the_others() -> None:
    async def look(batch: Sequence[Item]) -> list[str]:
        if any(item.key == 2 for item in batch):
            raise KeyError("a defect of ours")
        return ["found"] * len(batch)

    async def story(writer: Writer, made: Committer) -> None:
        writer.fails = broken
        writer.held.set()
        answers = await asyncio.gather(*await enqueued(made, [Item(key) for key in range(4)]), return_exceptions=True)
        assert [answer if isinstance(answer, str) else type(answer) for answer in answers] == [
            *("found", "found"),
            KeyError,
            "found",
        ]

    assert trial(story, resolve=look).written == []


def test_it_says_while_the_database_is_away() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        writer.fails = broken
        writer.held.set()
        saving = asyncio.create_task(made.save(Item(1)))
        await made.away.wait()
        assert not saving.done()
        writer.fails = lambda _batch: None
        await saving
        assert not made.away.is_set()

    trial(story)


def test_what_one_learns_of_the_database_another_knows_that_shares_its_event() -> None:
    async def play() -> None:
        marks, money, shared = Writer(), Writer(), asyncio.Event()
        marks.fails = away
        money.held.set()
        async with committer(marks, away=shared) as one, committer(money, away=shared) as other:
            marks.held.set()
            waiting = asyncio.create_task(one.save(Item(1)))
            await other.away.wait()
            assert await other.save(Item(2)) == "2"
            marks.fails = lambda _batch: None
            assert await waiting == "1"
            assert not other.away.is_set()

    asyncio.run(play())


def test_a_statement_without_an_answer_counts_as_away_until_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck.store.committer.AWAY_AFTER_S", 0.01)

    async def story(writer: Writer, made: Committer) -> None:
        saving = asyncio.create_task(made.save(Item(1)))
        await made.away.wait()
        writer.held.set()
        await saving
        assert not made.away.is_set()

    trial(story)


def test_once_the_worker_drains_an_unanswered_statement_holds_up_only_what_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coatcheck.store.committer.AWAY_AFTER_S", 0.01)

    async def story(writer: Writer, made: Committer) -> None:
        lasting, other = [asyncio.create_task(made.save(Item(key), lasting=key == 1)) for key in (1, 2)]
        await made.away.wait()
        assert not other.done()
        made.drain()
        later = asyncio.create_task(made.save(Item(3)))
        for given_up in (other, later):
            with pytest.raises(Unavailable):
                await given_up
        assert not lasting.done()
        writer.held.set()
        assert await lasting == "1"

    trial(story)


def test_closing_does_not_wait_for_a_statement_of_which_nobody_is_to_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck.store.committer.AWAY_AFTER_S", 0.01)

    async def story(_writer: Writer, made: Committer) -> None:
        saving = asyncio.create_task(made.save(Item(1)))
        await made.away.wait()
        await made.close()
        with pytest.raises(Unavailable):
            await saving

    assert trial(story).written == []


def test_the_item_of_a_cancelled_caller_is_written_all_the_same() -> None:
    async def story(writer: Writer, made: Committer) -> None:
        # the first is under way, the second waits for its batch
        tasks = [*await enqueued(made, [Item(1)]), *await enqueued(made, [Item(2)])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.held.set()
        assert await made.save(Item(3)) == "3"

    assert [item.key for batch in trial(story).written for item in batch] == [1, 2, 3]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        *(("22001", Trouble.BAD_ROW), ("23505", Trouble.BAD_ROW), ("40001", Trouble.AGAIN), ("40P01", Trouble.AGAIN)),
        *(
            ("55P03", Trouble.LOCKED),
            ("08006", Trouble.UNKNOWN),
            ("57P01", Trouble.UNKNOWN),
            ("57014", Trouble.UNKNOWN),
        ),
        *(("53300", Trouble.UNKNOWN), ("25006", Trouble.UNKNOWN), ("42601", Trouble.DEFECT), ("0A000", Trouble.DEFECT)),
    ],
)
def test_trouble_is_read_from_the_state_of_the_error(state: str, expected: Trouble) -> None:
    assert trouble(psycopg.errors.lookup(state)("text is not read")) is expected
