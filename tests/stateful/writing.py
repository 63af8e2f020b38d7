"""What workers and people save, on what they read earlier or just now: once, twice, late, or with the connection killed under it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypedDict
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, Operation, RemoteJobId, RenderState
from coatcheck.core.steps import DeliverStep, Delivery
from coatcheck.store.door import Save
from stateful import expected
from stateful.compared import AGAIN, PLACES, Compared, Held
from stateful.hands import WORKERS
from store.ground import ACCOUNT, look

OUTCOMES = st.sampled_from(["accepted", "submission_failed", "rejected", "throttled", "not_sent", "uncertain"])
FITTING = {
    "cancel": ("prepared", "dispatching", "accepted"),
    "lease_ended": ("dispatching",),
    "prove_absent": ("uncertain",),
    "redispatch": ("uncertain", "rejected"),
    **dict.fromkeys(("missing", "stalled", "reobserve", "write_off"), ("accepted", "submission_failed")),
}
"""In which phases a decision mostly means something; in the others it is tried where there is none such."""
DECISIONS = st.sampled_from(
    ["cancel", "lease_ended", "prove_absent", "redispatch", "write_off", "missing", "stalled", "reobserve", "note"]
)


class _By(TypedDict):
    actor: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A mark that somebody may save the end of, sooner or later."""

    dispatch: UUID
    marked: Operation
    held: Held


@dataclass(frozen=True, kw_only=True)
class Saving:
    """A save as it was made, to be made again: on the books it means the same again."""

    worker: str
    save: Save
    books: Callable[[], str | None]


class Writing(Compared):
    """See the module. The last save is kept, so that it comes again."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sent] = []
        self.last: Saving | None = None

    @initialize(reaches=st.sampled_from(["prepared", "dispatching", "in doubt", "accepted", "succeeded"]))
    def begin_with(self, reaches: str) -> None:
        """Some stories begin later in a life, so that its end is told as often as its beginning."""
        if not self.books.records:
            self.begin()
        if reaches != "prepared":
            self.mark(place=0, worker="ann", again=True)
        if reaches == "in doubt":
            self.conclude(place=0, outcome="uncertain", worker="ann", stray=1, again=False)
            self.time_passes()
        if reaches in ("accepted", "succeeded"):
            self.conclude(place=0, outcome="accepted", worker="ann", stray=1, again=False)
        if reaches == "succeeded":
            self.look(place=0, state="succeeded", outputs=2, stray=1, again=True)

    def _saves(self, worker: str, kind: str, save: Save | None, books: Callable[[], str | None]) -> str | None:
        """Do it to both. Whether it was possible at all, by what was read, both must agree on, too."""
        if save is None:
            assert books() is None
            self.counts[f"{kind} refused"] += 1
            return None
        self.last = Saving(worker=worker, save=save, books=books)
        return self._writes(self.last, kind)

    def _writes(self, saving: Saving, kind: str) -> str:
        saved = self.hands.write(saving.worker, saving.save)
        assert saved.status == saving.books(), (saved, kind)
        self.counts[f"{kind} {saved.status}"] += 1
        return saved.status

    @precondition(lambda self: self.is_any("prepared"))
    @rule(place=PLACES, worker=st.sampled_from(WORKERS), again=AGAIN)
    def mark(self, place: int, worker: str, *, again: bool) -> None:
        """Commit that it may be sent from now on."""
        held, dispatch = self.current(place, "prepared", again=again), self.hands.ann.seams.ids.uuid7()
        event = ev.Mark(dispatch_id=DispatchId(dispatch), account=ACCOUNT)
        save = self.hands.prepared(held.operation, event)
        answer = self._saves(worker, "mark", save, lambda: expected.mark(self.books, held.id, held.seen, dispatch))
        if answer == "applied":
            now = self.read_now(held.id)
            self.sent.append(Sent(dispatch=dispatch, marked=now.operation, held=now))

    @precondition(lambda self: self.sent)
    @rule(place=PLACES, outcome=OUTCOMES, worker=st.sampled_from(WORKERS), again=AGAIN, stray=st.integers(0, 3))
    def conclude(self, place: int, outcome: str, worker: str, stray: int, *, again: bool) -> None:
        """The end of a POST, at once or late, once or again, decided on the row as it was at the mark or is now."""
        sent = self.sent[-1 - place % len(self.sent)]
        held = self.read_now(sent.held.id) if again else sent.held
        job = f"job-{sent.dispatch}" if outcome in ("accepted", "submission_failed") else None
        others = [each for each, (owner, _, _) in self.books.jobs.items() if owner != held.id]
        if job is not None and not stray and others:
            job = others[0]
        save = self.hands.prepared(held.operation, _ended(sent.dispatch, outcome, job), sent.marked)
        books = partial(expected.conclude, self.books, held.id, held.seen, sent.dispatch, outcome, job)
        self._saves(worker, f"conclude {outcome}", save, books)

    @precondition(lambda self: self.sent)
    @rule(place=PLACES, kind=DECISIONS, worker=st.sampled_from(WORKERS), again=AGAIN)
    def decide(self, place: int, kind: str, worker: str, *, again: bool) -> None:
        """A sweep's or a person's decision, before or after all is quiet."""
        held = self.current(place, *FITTING.get(kind, ()), again=again)
        save = self.hands.prepared(held.operation, self._decision(kind, held))
        books = partial(expected.decide, self.books, held.id, held.seen, kind)
        self._saves(worker, kind, save, books)

    def _decision(self, kind: str, held: Held) -> ev.Event:
        """The decision, told until when a worker could still send."""
        by: _By = {"actor": "eve", "reason": kind}
        quiescent_at = self.hands.quiescent_at(held.operation.dispatch_id) or held.operation.read_at
        in_doubt, lane = held.operation.phase == "uncertain", held.seen.record.lanes.get(0)
        events: dict[str, ev.Event] = {
            "cancel": ev.Cancel(**by),
            "lease_ended": ev.LeaseEnded(),
            "prove_absent": ev.ProveAbsent(quiescent_at=quiescent_at, **by),
            "redispatch": ev.Redispatch(quiescent_at=quiescent_at if in_doubt else None, **by),
            "write_off": ev.WriteOff(stalled=lane is not None and lane.parked == "stalled", **by),
            "missing": ev.NotFound(grace_s=0),
            "stalled": ev.Stalled(),
            "reobserve": ev.Reobserve(**by),
            "note": ev.Note(**by),
        }
        return events[kind]

    @precondition(lambda self: self.sent and self.is_any("uncertain"))
    @rule(place=PLACES, which=PLACES, again=AGAIN)
    def adopt(self, place: int, which: int, *, again: bool) -> None:
        """A person names a job: that of this operation, an orphan, or one that another operation has."""
        held = self.current(place, "uncertain", again=again)
        job = f"job-{self.sent[-1 - which % len(self.sent)].dispatch}"
        save = self.hands.prepared(
            held.operation, ev.Adopt(remote_job_id=RemoteJobId(job), actor="eve", reason="adopt")
        )
        books = partial(expected.decide, self.books, held.id, held.seen, "adopt", job)
        self._saves("ann", "adopt", save, books)

    @precondition(lambda self: self.is_any("accepted", "submission_failed"))
    @rule(
        place=PLACES,
        state=st.sampled_from(["rendering", "succeeded", "failed"]),
        outputs=st.integers(1, 2),
        again=AGAIN,
        stray=st.integers(0, 5),
    )
    def look(self, place: int, state: str, outputs: int, stray: int, *, again: bool) -> None:
        """The same, something new, something final, or another job."""
        held = self.current(place, "accepted", "submission_failed", again=again)
        job = held.operation.remote_job_id if stray and held.operation.remote_job_id else RemoteJobId("job-elsewhere")
        count = outputs if state == "succeeded" else 0
        save = self.hands.prepared(held.operation, look(job, RenderState(state), outputs=count))
        books = partial(expected.look, self.books, held.id, held.seen, job, state, count)
        self._saves("bob", f"look {state}", save, books)

    @precondition(lambda self: any(record.outputs for record in self.books.records.values()))
    @rule(place=PLACES, index=st.integers(0, 1), stored=st.booleans(), again=AGAIN)
    def deliver(self, place: int, index: int, *, stored: bool, again: bool) -> None:
        """An output that lies in the sink, or whose tries are spent; or one that there is none of."""
        ids = [operation for operation, record in self.books.records.items() if record.outputs]
        held = (
            self.read_now(ids[place % len(ids)])
            if again
            else self.current(place, "accepted", "submission_failed", again=False)
        )
        folder = hashlib.sha256(held.operation.tenant_id.encode()).hexdigest()[:32]
        sha256 = "ab" * 32
        uri = f"file:///sink/{folder}/{held.id}/{index}-{sha256}.png"
        event: ev.Event = ev.OutputFailed(index=index, cause="gone")
        if stored:
            event = ev.OutputStored(index=index, uri=uri, sha256=sha256, bytes=7, sniffed_type="image/png")
        result = "delivered" if stored else "failed"
        save = self.hands.prepared(held.operation, event)
        books = partial(expected.deliver, self.books, held.id, held.seen, index, result)
        self._saves("bob", f"deliver {result}", save, books)

    @precondition(lambda self: self.last)
    @rule(how=st.sampled_from(["twice", "twice", "twice", "twice", "killed", "unseen"]))
    def save_again(self, how: str) -> None:
        """A duplicate of the last save, whatever happened since; sometimes the connection is killed under it, or before its answer comes."""
        assert self.last is not None
        if how == "killed":
            self.hands.write_and_be_killed(self.last.worker, self.last.save)
            self.the_store_is_as_the_books_say()
        status = self._writes(self.last, how)
        if how == "unseen":
            self._finds_what_it_did_not_see(self.last, status)

    def _finds_what_it_did_not_see(self, saving: Saving, status: str) -> None:
        """What applied is found by its content, so that it need not be sent again; a failed try of a delivery may be written twice."""
        self.hands.lose_the_line(saving.worker)
        found = self.hands.resolve(saving.worker, saving.save)
        step = saving.save.step
        leaves_traces = not isinstance(step, DeliverStep) or step.result is Delivery.STORED
        if status in ("applied", "owned") and leaves_traces:
            assert found is not None
            assert found.revision == self.books.records[step.operation_id].revision


def _ended(dispatch: UUID, outcome: str, job: str | None) -> ev.Reply:
    mine = DispatchId(dispatch)
    match outcome:
        case "accepted":
            return ev.Accepted(dispatch_id=mine, remote_job_id=RemoteJobId(job or ""))
        case "submission_failed":
            return ev.FailedWithId(dispatch_id=mine, remote_job_id=RemoteJobId(job or ""))
        case "rejected":
            return ev.Rejected(dispatch_id=mine, status=422)
        case "throttled":
            return ev.Throttled(dispatch_id=mine, retry_after_s=0)
        case "not_sent":
            return ev.NotSent(dispatch_id=mine, cause="refused")
        case _:
            return ev.Doubted(dispatch_id=mine, cause="no_reply")
