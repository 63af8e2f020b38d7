"""The checker proves itself: into the true books of a story each contradiction is written once, and the checker names it by its kind."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import postgres
import promises
from coatcheck.seams import Point
from coatcheck.sim import simulated_service
from faults import checker, verdict
from faults.checker import Record
from faults.nursery import Nursery
from faults.stage import Stage
from faults.strike import Strike
from faults.verdict import Asked, judged, logged
from sentences import Sentence, said, sentences

Row = dict[str, Any]
FUTURE = datetime(2200, 1, 1, tzinfo=UTC)


class Books:
    """A copy of the books in which a test may write. Of the three operations the first two are delivered, the third is in doubt."""

    def __init__(self, record: Record) -> None:
        self.record = copy.deepcopy(record)
        self.asked = [Asked(key=each["operation_key"], answer="ok") for each in record.operations.values()]
        self.ids = sorted(record.operations)

    @property
    def one(self) -> Row:
        return self.record.operations[self.ids[0]]

    def dispatch(self, at: int = 0) -> Row:
        return self.record.dispatches[self.ids[at]][0]

    def history(self, at: int = 0) -> list[Row]:
        return self.record.history[self.ids[at]]

    def delivery(self) -> Row:
        return self.record.deliveries[self.ids[0]][0]

    def posted(self, at: int = 0) -> int:
        """Which of the POSTs was this operation's."""
        (post,) = self.record.posts_of(self.ids[at])
        return self.record.posts.index(post)

    def with_posts(self, *posts: Any) -> None:
        self.record = replace(self.record, posts=posts)

    def heard(self, answer: Any, at: int = 0) -> None:
        key = self.record.operations[self.ids[at]]["operation_key"]
        self.asked = [Asked(key=each.key, answer=answer if each.key == key else each.answer) for each in self.asked]


@pytest.fixture(scope="module")
def story(
    template: postgres.Template, nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Record, UUID]]:
    """Three operations, the third struck; the books when all is at rest, and the struck one."""
    folder = tmp_path_factory.mktemp("story")
    with template.copy() as database, simulated_service(seed=7) as sim, Stage(database, sim, folder) as stage:
        stage.nursery = nursery
        stage.enqueue(count=2)
        stage.work()
        (struck,) = stage.enqueue()
        stage.worker(Strike(point=Point.D9_RESPONSE_BYTES)).ended()
        stage.finish()
        yield stage.record(), struck


def posted_again(books: Books) -> None:
    posts = books.record.posts
    books.with_posts(*posts, replace(posts[books.posted()], order=99, created=None))


def posted_by_nobody(books: Books) -> None:
    posts = books.record.posts
    books.with_posts(*posts, replace(posts[0], order=99, body_sha256="00", created=None))


def posted_before_its_mark(books: Books) -> None:
    for row in books.history():
        row["committed_at"] = FUTURE


def job_forgotten(books: Books) -> None:
    books.dispatch(2)["remote_job_id"] = None
    books.record.operations[books.ids[2]]["phase"] = "prepared"


def job_invented(books: Books) -> None:
    books.dispatch()["remote_job_id"] = "job-invented"


def object_changed(books: Books) -> None:
    books.delivery()["sha256"] = "00"


def object_shared(books: Books) -> None:
    books.record.deliveries[books.ids[1]][0]["uri"] = books.delivery()["uri"]


def lane_gone(books: Books) -> None:
    books.record.lanes[books.ids[2]].clear()


def lane_kept(books: Books) -> None:
    books.record.lanes[books.ids[2]][0]["leased_by"] = "somebody"


def authorisation_spent_twice(books: Books) -> None:
    books.record.dispatches[books.ids[0]].append({**books.dispatch(), "number": 2})


def revision_missing(books: Books) -> None:
    del books.history()[1]


def phase_jumped(books: Books) -> None:
    books.history()[-1]["from_phase"] = "prepared"


def final_state_replaced(books: Books) -> None:
    last = books.history()[-1]
    books.history().append(
        {**last, "revision": last["revision"] + 1, "from_render_state": "succeeded", "to_render_state": "failed"}
    )
    books.one["revision"] += 1


def history_ends_elsewhere(books: Books) -> None:
    books.history()[-1]["to_delivery_state"] = "pending"


def delivery_undone(books: Books) -> None:
    last = books.history()[-1]
    undone = {"from_delivery_state": "delivered", "to_delivery_state": "pending"}
    books.history().append({**last, "revision": last["revision"] + 1, **undone})
    books.one["revision"] += 1


def accepted_without_a_job(books: Books) -> None:
    books.one["remote_job_id"] = None


def dispatch_unended(books: Books) -> None:
    books.one["phase"] = "dispatching"


def output_stranded(books: Books) -> None:
    books.delivery()["state"] = "pending"


def object_of_nobody(books: Books) -> None:
    del books.record.deliveries[books.ids[0]]


def object_gone(books: Books) -> None:
    books.delivery()["uri"] = (books.record.sink / "gone").as_uri()


def authorised_by_nobody(books: Books) -> None:
    books.dispatch()["authorisation"] = 2


def closed_with_a_lane(books: Books) -> None:
    books.record.operations[books.ids[2]]["phase"] = "abandoned"


def posted_in_part(books: Books) -> None:
    """Beginning as no operation's text does."""
    posts = books.record.posts
    books.with_posts(*posts[:-1], replace(posts[-1], complete=False, body_text="?", created=None))


def operation_doubled(books: Books) -> None:
    twin = UUID(int=7)
    books.record.operations[twin] = {**books.one, "operation_id": twin, "phase": "cancelled", "revision": -1}


def operation_gone(books: Books) -> None:
    del books.record.operations[books.ids[2]]


def operation_unfinished(books: Books) -> None:
    books.one["delivery_state"] = "pending"


def failure_heard(books: Books) -> None:
    books.heard("failed")


def never_asked(books: Books) -> None:
    del books.asked[0]


PLANTED: list[tuple[Callable[[Books], None], str, str]] = [
    (posted_again, "duplicated", "2 POSTs by 1 dispatches"),
    (posted_by_nobody, "unexpected", "belongs to no operation"),
    (posted_by_nobody, "unexpected", "4 POSTs after 3 marks"),
    (posted_in_part, "unexpected", "belongs to no operation"),
    (posted_before_its_mark, "unexpected", "before its mark was committed"),
    (job_forgotten, "lost", "was created and is neither known nor in doubt"),
    (job_invented, "wrong", "was never created for this operation"),
    (object_changed, "wrong", "recorded as 00"),
    (object_gone, "wrong", "is missing, recorded as"),
    (object_shared, "wrong", "two outputs share an object"),
    (lane_gone, "lost", "and no lane"),
    (lane_kept, "wrong", "is leased by somebody"),
    (authorisation_spent_twice, "duplicated", "was spent 2 times"),
    (authorised_by_nobody, "duplicated", "which nobody gave"),
    (revision_missing, "wrong", "revisions"),
    (phase_jumped, "wrong", "phase jumps"),
    (final_state_replaced, "wrong", "the final succeeded became failed"),
    (history_ends_elsewhere, "wrong", "ends with delivery_state pending"),
    (delivery_undone, "wrong", "delivered was undone"),
    (accepted_without_a_job, "wrong", "accepted with job None"),
    (closed_with_a_lane, "wrong", "abandoned and lane 0 is there"),
    (dispatch_unended, "wrong", "still dispatching when all is at rest"),
    (output_stranded, "lost", "is pending and has no lane"),
    (output_stranded, "wrong", "its outputs are {'pending': 1}"),
    (object_of_nobody, "wrong", "is nobody's"),
    (operation_doubled, "duplicated", "2 operations of the key"),
    (operation_gone, "lost", "was acknowledged, and no operation is there"),
    (operation_unfinished, "lost", "when all is at rest"),
    (failure_heard, "unexpected", "failed, and its operation is there"),
    (never_asked, "unexpected", "nobody asked for"),
]


def test_true_books_are_clean_and_the_struck_operation_counts_as_recovered(story: tuple[Record, UUID]) -> None:
    record, struck = story
    books = Books(record)
    found = judged(books.record, books.asked, {struck})
    assert found.is_clean, found
    assert found.recovered == 1
    assert str(found).startswith("0 lost, 0 duplicated, 0 unexpected, 0 wrong, 1 recovered, 3 asked ok")


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each[2])
def test_a_planted_contradiction_is_named_by_its_kind(
    story: tuple[Record, UUID], planted: tuple[Callable[[Books], None], str, str]
) -> None:
    plant, kind, words = planted
    books = Books(story[0])
    plant(books)
    found = judged(books.record, books.asked)
    assert any(words in finding for finding in getattr(found, kind)), found


def test_every_sentence_of_the_checker_is_said_by_a_plant(story: tuple[Record, UUID]) -> None:
    heard = set()
    for plant in dict.fromkeys(plant for plant, _, _ in PLANTED):
        books = Books(story[0])
        plant(books)
        heard |= {sentence for sentence, _ in told(books)}
    assert (sentences(checker) | sentences(promises) | sentences(verdict)) - heard == set()


def told(books: Books) -> Iterator[tuple[Sentence, str]]:
    """What each predicate says, with its place."""
    for ask in verdict.OF_ENQUEUES:
        yield from said(ask(books.record, books.asked))
    for look in checker.WHOLE:
        yield from said(look(books.record))
    for operation in books.record.operations.values():
        for check in checker.EACH:
            yield from said(check(books.record, operation))


def test_an_enqueue_of_which_nobody_heard_may_be_there_or_not(story: tuple[Record, UUID]) -> None:
    books = Books(story[0])
    books.heard("unknown")
    books.asked.append(Asked(key="never stored", answer="unknown"))
    found = judged(books.record, books.asked)
    assert found.is_clean, found
    assert found.recovered == 1


def test_the_log_of_applications_tells_what_they_heard(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert logged(log) == []
    log.write_text("asks a\nok a\nasks b\nasks c\nfailed c\nasks b\nok b\nasks d\n")
    assert {each.key: each.answer for each in logged(log)} == {"a": "ok", "b": "ok", "c": "failed", "d": "unknown"}
