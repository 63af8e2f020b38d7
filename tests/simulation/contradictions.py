"""Contradictions, each written once into true books, by the predicate that has to name it."""

from collections.abc import Callable
from dataclasses import replace

from simulation.book_of_one import STRANGER, BookOfOne, at
from simulation.checker import REFERENCE

Plant = Callable[[BookOfOne], None]


# -- what was sent ------------------------------------------------------------------------------------------------------


def posted_by_nobody(book: BookOfOne) -> None:
    book.posts.append(book.post(2, body_sha256="00", headers={}))


def posted_without_marks(book: BookOfOne) -> None:
    book.posts += [book.post(order, complete=False, body_text=None, headers={}) for order in (2, 3)]


def posted_again(book: BookOfOne) -> None:
    book.posts.append(book.post(2, headers={}))


def created_by_the_rejected(book: BookOfOne) -> None:
    book.dispatches[1].update(outcome="rejected", charged=0)
    book.tables["allowances"][0]["charged"] = 0


def created_twice(book: BookOfOne) -> None:
    book.dispatches[0].update(outcome="uncertain", displaced=True)
    book.posts.append(book.post(2, headers={}, created="job-2"))


def posted_before_any_mark(book: BookOfOne) -> None:
    book.posts[0] = book.post(1, headers={}, at=at(0.5).isoformat())


def posted_too_late(book: BookOfOne) -> None:
    book.posts[0] = book.post(1, headers={}, at=at(19).isoformat())


def posted_after_its_absence_was_proven(book: BookOfOne) -> None:
    book.history[4].update(event="proven_absent", at=at(10.5))


def names_no_dispatch(book: BookOfOne) -> None:
    book.posts[0] = book.post(1, headers={REFERENCE: str(STRANGER)})


def named_a_dispatch_of_another_hour(book: BookOfOne) -> None:
    book.dispatches[1]["begun_at"] = at(3_600)


def created_by_the_absent(book: BookOfOne) -> None:
    book.dispatches[0]["outcome"] = "open"
    book.dispatches[1]["outcome"] = "proven_absent"


def posted_twice_by_one_dispatch(book: BookOfOne) -> None:
    book.dispatches[0]["outcome"] = "throttled"
    book.posts.append(book.post(2))


def authorisation_spent_twice(book: BookOfOne) -> None:
    book.dispatches[0]["outcome"] = "accepted"


def authorised_by_nobody(book: BookOfOne) -> None:
    book.dispatches[0]["authorisation"] = 2


def still_dispatching(book: BookOfOne) -> None:
    book.stands_at("phase", "dispatching")
    book.tables["accounts"][0]["in_flight_count"] = 1


def prepared_by_the_end_of_a_lease(book: BookOfOne) -> None:
    book.history[2]["event"] = "lease_ended"


def uncertain_and_yet_accepted(book: BookOfOne) -> None:
    book.history[4]["event"] = "became_uncertain"


# -- whose it is --------------------------------------------------------------------------------------------------------


def owned_by_another(book: BookOfOne) -> None:
    book.tables["remote_jobs"][0]["operation_id"] = STRANGER


def owner_that_does_not_know(book: BookOfOne) -> None:
    book.tables["remote_jobs"].append({**book.tables["remote_jobs"][0], "remote_job_id": "job-2"})


def job_forgotten(book: BookOfOne) -> None:
    book.operation["authorisation"] = 2
    book.dispatches[0].update(outcome="submission_failed", displaced=True)
    book.posts.append(book.post(2, headers={}, created="job-2"))


def job_invented(book: BookOfOne) -> None:
    book.dispatches[0]["remote_job_id"] = "job-9"


def accepted_without_a_job(book: BookOfOne) -> None:
    book.without_outputs()
    book.operation["remote_job_id"] = None
    book.tables["remote_jobs"].clear()


# -- the record ---------------------------------------------------------------------------------------------------------


def revision_missing(book: BookOfOne) -> None:
    book.operation["revision"] = 7


def phase_jumped(book: BookOfOne) -> None:
    book.history[5]["from_phase"] = "uncertain"


def ends_elsewhere(book: BookOfOne) -> None:
    book.history[-1]["to_delivery_state"] = "pending"


def final_state_replaced(book: BookOfOne) -> None:
    book.history[-1]["to_render_state"] = book.operation["render_state"] = "failed"


def delivery_undone(book: BookOfOne) -> None:
    undone = {"revision": 7, "from_delivery_state": "delivered", "to_delivery_state": "pending"}
    book.history.append({**book.history[-1], **undone})
    book.operation.update(revision=7, delivery_state="pending")


def ended_otherwise(book: BookOfOne) -> None:
    book.job = replace(book.job, course=replace(book.job.course, outcome="moderated"))


# -- money and places ---------------------------------------------------------------------------------------------------


def charged_for_nothing(book: BookOfOne) -> None:
    book.dispatches[0]["charged"] = 5
    book.tables["allowances"][0]["charged"] = 8


def never_settled(book: BookOfOne) -> None:
    book.dispatches[1]["settled_at"] = None


def held_for_nobody(book: BookOfOne) -> None:
    book.tables["allowances"][0]["held"] = 1


def counted_in_flight(book: BookOfOne) -> None:
    book.tables["accounts"][0]["in_flight_count"] = 1


# -- what is left to do -------------------------------------------------------------------------------------------------


def lane_kept(book: BookOfOne) -> None:
    book.lane(0, leased_by="somebody")


def closed_with_a_lane(book: BookOfOne) -> None:
    book.stands_at("phase", "abandoned")
    book.lane(0)


def lane_gone(book: BookOfOne) -> None:
    book.stands_at("render_state", "rendering")
    book.tables["accounts"][0]["in_flight_count"] = 1


def output_stranded(book: BookOfOne) -> None:
    book.outputs[0]["state"] = "pending"
    book.operation["delivered_count"] = 0
    book.stands_at("delivery_state", "pending")


def ownerless(table: str) -> Plant:
    def plant(book: BookOfOne) -> None:
        row = {**book.dispatches[0], "charged": 0, "state": "pending", "event": "noted", "lane": 0}
        book.tables[table].append({**row, "operation_id": STRANGER})

    plant.__name__ = f"ownerless_row_of_{table}"
    return plant


# -- the sink -----------------------------------------------------------------------------------------------------------


def counted_as_failed(book: BookOfOne) -> None:
    book.operation["failed_count"] = 1


def object_changed(book: BookOfOne) -> None:
    book.object("0.png", b"another")


def object_gone(book: BookOfOne) -> None:
    for path in book.sink.rglob("*.png"):
        path.unlink()


def object_shared(book: BookOfOne) -> None:
    book.job = replace(book.job, media=(book.media, book.media))
    book.outputs.append({**book.outputs[0], "output_index": 1})
    book.operation.update(output_count=2, delivered_count=2)


def object_of_nobody(book: BookOfOne) -> None:
    book.object("1.png", b"left", owner=STRANGER)


def object_of_the_delivered(book: BookOfOne) -> None:
    book.object("1.png", b"left")


# -- what the books do not hold -----------------------------------------------------------------------------------------


def reply_left_on_the_disk(book: BookOfOne) -> None:
    (book.home / "spool").mkdir()
    (book.home / "spool" / "worker.jsonl").write_text("{}\n")


def doubt_undecided(book: BookOfOne) -> None:
    book.stands_at("phase", "uncertain")


def render_unseen(book: BookOfOne) -> None:
    book.stands_at("render_state", "rendering")


def output_owed(book: BookOfOne) -> None:
    book.outputs[0]["state"] = "failed"


def lease_open(book: BookOfOne) -> None:
    book.lane(0, leased_by="worker")


PLANTS: dict[str, tuple[Plant, ...]] = {
    "_strangers": (posted_by_nobody, posted_without_marks),
    "_posts": (posted_again, created_by_the_rejected, created_twice),
    "_arrivals": (posted_before_any_mark, posted_too_late, posted_after_its_absence_was_proven),
    "_references": (
        names_no_dispatch,
        named_a_dispatch_of_another_hour,
        created_by_the_absent,
        posted_twice_by_one_dispatch,
    ),
    "_authorisations": (authorisation_spent_twice, authorised_by_nobody, still_dispatching),
    "_doubts": (prepared_by_the_end_of_a_lease, uncertain_and_yet_accepted),
    "_owners": (owned_by_another, owner_that_does_not_know),
    "_jobs": (job_forgotten, job_invented, accepted_without_a_job),
    "_history": (revision_missing, phase_jumped, ends_elsewhere, final_state_replaced, delivery_undone),
    "_outcome": (ended_otherwise,),
    "_money": (charged_for_nothing, never_settled),
    "_allowances": (held_for_nobody,),
    "_flights": (counted_in_flight,),
    "_lanes": (lane_kept, closed_with_a_lane, lane_gone, output_stranded),
    "_ownerless": tuple(map(ownerless, ("outbox", "history", "dispatches", "deliveries", "snapshots"))),
    "_outputs": (counted_as_failed, object_changed, object_gone),
    "_sink": (object_shared, object_of_nobody, object_of_the_delivered),
}
AT_REST: dict[str, tuple[Plant, ...]] = {
    "spooled": (reply_left_on_the_disk,),
    "unsettled": (doubt_undecided, render_unseen, output_owed, lease_open),
}
