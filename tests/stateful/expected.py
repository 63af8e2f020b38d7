"""What each write should do to the books: the answer that is expected of the store, after which the books are changed likewise.

`None`: the decision is not even possible, by what was read.
"""

from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

from stateful.reference import FINAL, KNOWN, NOTHING_CREATED, WITH_ID, Books, Dispatch, Record, Seen

SEND_AND_LIMIT_S = 77
"""From the mark until nothing of its POST can arrive any more."""
SETTLE_S = 12
"""The same, from its recorded end."""
LEASE_S = 1000.0


def mark(books: Books, operation: UUID, seen: Seen, dispatch: UUID) -> str | None:
    """S1, S2: by who read the present revision, once, and within what may be spent."""
    record = books.records[operation]
    if seen.record.phase != "prepared" or seen.is_withdrawn:
        return None
    if record.revision != seen.record.revision or record.phase != "prepared" or record.is_withdrawn(books.now):
        return "stale"
    if books.is_paused:
        _put_off(books, record)
        return "paused"
    limit = books.limits.get(record.tenant)
    if limit is not None and record.estimate > limit - sum(books.money(record.tenant)):
        _put_off(books, record)
        return "allowance"
    record.dispatches[dispatch] = Dispatch(
        number=len(record.dispatches) + 1,
        authorisation=record.authorisation,
        held=record.estimate,
        quiet_at=books.now + SEND_AND_LIMIT_S,
    )
    record.phase, record.dispatch = "dispatching", dispatch
    record.revision += 1
    books.aim(record, 0, "reconcile", due_in=LEASE_S)
    record.lanes[0].holder = "the sender"
    return "applied"


def _put_off(books: Books, record: Record) -> None:
    """It waits for leave to be dispatched; what a person set aside stays there."""
    books.aim(record, 0, "dispatch", due_in=None, parked=record.lanes[0].parked)


# -- the end of a POST -------------------------------------------------------------------------------------------------


def conclude(books: Books, operation: UUID, seen: Seen, dispatch: UUID, outcome: str, job: str | None) -> str | None:
    """Evidence always; the conclusion while the dispatch is the present one and nothing that is proven speaks against it."""
    record = books.records[operation]
    mine = record.dispatches[dispatch]
    to = _meant(seen, outcome)
    ended = Dispatch(number=0, authorisation=0, held=Decimal(0), quiet_at=0, outcome=outcome)
    rises = ended.proof > mine.proof
    concludes = to is not None and ended.proof >= mine.proof and _waits(record, dispatch, job)
    if to in ("prepared", "cancelled"):
        concludes = concludes and seen.is_withdrawn == record.is_withdrawn(books.now)
    answer = "applied" if concludes else "evidence"
    if job is not None and job != record.job:
        whose = books.claims_job(job, operation, dispatch, concludes=concludes)
        if concludes and whose == "promoted":
            books.jobs[job] = (operation, dispatch, "owner")
        answer = "owned" if concludes and whose == "owned" else answer
    _settle(mine, ended, rises=rises, reopens=concludes and job is not None, is_paid=job is not None)
    # a proof of nothing created that is contradicted when another has its authorisation: the audit tells a person
    mine.is_displaced = mine.is_displaced or (rises and _has_a_successor(record, mine))
    mine.outcome = outcome if rises else mine.outcome
    mine.job = mine.job or job
    mine.quiet_at = min(mine.quiet_at, books.now + SETTLE_S)
    record.revision += 1
    if concludes:
        assert to is not None
        record.phase = "uncertain" if answer == "owned" else to
        record.job = job if answer == "applied" else record.job
        _go_on(books, record)
    return answer


def _has_a_successor(record: Record, mine: Dispatch) -> bool:
    """Whether another dispatch takes up the same authorisation."""
    return any(
        other is not mine and other.authorisation == mine.authorisation and other.spends
        for other in record.dispatches.values()
    )


def _meant(seen: Seen, outcome: str) -> str | None:
    """The phase that a reply leads to, by what was read."""
    phase = seen.record.phase
    if outcome in WITH_ID:
        return outcome if phase in ("prepared", "dispatching", "uncertain") else None
    if phase not in ("dispatching", "uncertain"):
        return None
    if outcome == "uncertain":
        return "uncertain" if phase == "dispatching" else None
    if outcome == "rejected":
        return "rejected"
    return "cancelled" if seen.is_withdrawn else "prepared"


def _waits(record: Record, dispatch: UUID, job: str | None) -> bool:
    if record.dispatch != dispatch:
        return False
    return record.phase in ("dispatching", "uncertain") or (record.phase == "prepared" and job is not None)


def _settle(mine: Dispatch, ended: Dispatch, *, rises: bool, reopens: bool, is_paid: bool) -> None:
    """A hold lives as long as the doubt; a proof of nothing costs nothing; an orphan is paid for."""
    if reopens:
        mine.charged = None
    elif rises and ended.outcome in NOTHING_CREATED:
        mine.charged = Decimal(0)
    elif rises and is_paid:
        mine.charged = mine.charged or mine.held


def _go_on(books: Books, record: Record) -> None:
    """What is due after a conclusion."""
    match record.phase:
        case "accepted" | "submission_failed":
            books.aim(record, 0, "observe")
        case "prepared":
            books.aim(record, 0, "dispatch")
        case "uncertain":
            books.aim(record, 0, "reconcile", parked="uncertain")
        case _:
            record.lanes.clear()


# -- decisions ---------------------------------------------------------------------------------------------------------


def _is_open(seen: Seen) -> bool:
    return seen.record.phase in KNOWN and seen.record.render not in FINAL


def _possible(kind: str, seen: Seen, now: Record) -> bool:
    """Whether the decision means anything, by what was read."""
    phase, lane = seen.record.phase, seen.record.lanes.get(0)
    in_doubt, is_stalled = phase == "uncertain", lane is not None and lane.parked == "stalled" and _is_open(seen)
    possible = {
        "cancel": phase in ("prepared", "dispatching", "uncertain") or _is_open(seen),
        "lease_ended": phase == "dispatching",
        "adopt": in_doubt,
        "prove_absent": in_doubt and seen.is_quiet(now),
        "redispatch": phase == "rejected" or (in_doubt and seen.is_quiet(now)),
        "write_off": in_doubt or (phase in KNOWN and seen.record.render == "missing") or is_stalled,
        "missing": _is_open(seen) and seen.record.word is None,
        "stalled": _is_open(seen),
        "reobserve": _is_open(seen),
        "note": True,
    }
    return possible[kind]


def decide(books: Books, operation: UUID, seen: Seen, kind: str, job: str | None = None) -> str | None:
    """A sweep's or a person's decision, by who read the present revision; an id is adopted that no other operation has."""
    record = books.records[operation]
    if not _possible(kind, seen, record):
        return None
    if record.revision != seen.record.revision:
        return "stale"
    if kind == "adopt":
        assert job is not None
        answer = _adopt(books, operation, record, job)
        if answer != "applied":
            return answer
    else:
        _DECIDED[kind](books, record)
    record.revision += 1
    return "applied"


def _adopt(books: Books, operation: UUID, record: Record, job: str) -> str:
    whose = books.claims_job(job, operation, record.dispatch, concludes=True)
    if whose in ("owned", "known"):
        return "owned" if whose == "owned" else "stale"
    present = record.dispatch
    assert present is not None
    owner = books.jobs[job][1] or present
    books.jobs[job] = (operation, owner, "owner")
    mine = record.dispatches[owner]
    if owner != present and record.dispatches[present].charged is None:
        record.dispatches[present].charged = record.dispatches[present].held
    mine.charged = None
    mine.outcome = "accepted" if mine.proof < 3 else mine.outcome
    mine.job = mine.job or job
    record.phase, record.job, record.dispatch = "accepted", job, owner
    _authorised(record)
    books.aim(record, 0, "observe")
    return "applied"


def _authorised(record: Record) -> None:
    """A person's decision clears the wish to cancel and the deadline."""
    record.is_cancel_requested, record.dispatch_by = False, None


def _cancel(books: Books, record: Record) -> None:
    if record.phase == "prepared":
        record.phase = "cancelled"
        record.lanes.clear()
        return
    if record.phase in KNOWN and not record.is_cancel_requested:
        books.look(record, resumes=False)
    record.is_cancel_requested = True


def _doubt(books: Books, record: Record) -> None:
    mine = _present(record)
    mine.outcome = "uncertain" if mine.proof < 1 else mine.outcome
    record.phase = "uncertain"
    books.aim(record, 0, "reconcile", parked="uncertain")


def _present(record: Record) -> Dispatch:
    assert record.dispatch is not None
    return record.dispatches[record.dispatch]


def _prove_absent(books: Books, record: Record) -> None:
    mine = _present(record)
    mine.outcome = "proven_absent" if mine.proof < 2 else mine.outcome
    mine.charged = Decimal(0) if mine.charged is None else mine.charged
    _again(books, record)


def _redispatch(books: Books, record: Record) -> None:
    mine = _present(record)
    mine.charged = mine.held if mine.charged is None else mine.charged
    _again(books, record)


def _again(books: Books, record: Record) -> None:
    record.phase = "prepared"
    record.authorisation += 1
    _authorised(record)
    books.aim(record, 0, "dispatch")


def _write_off(_books: Books, record: Record) -> None:
    mine = _present(record)
    mine.charged = mine.held if mine.charged is None else mine.charged
    record.phase = "abandoned"
    record.lanes.clear()


def _miss(books: Books, record: Record) -> None:
    record.render = "missing"
    books.aim(record, 0, "observe", parked="missing")


_DECIDED: dict[str, Callable[[Books, Record], None]] = {
    "cancel": _cancel,
    "lease_ended": _doubt,
    "prove_absent": _prove_absent,
    "redispatch": _redispatch,
    "write_off": _write_off,
    "missing": _miss,
    "stalled": lambda books, record: books.aim(record, 0, "observe", parked="stalled"),
    "reobserve": lambda books, record: books.look(record, resumes=True),
    "note": lambda _books, _record: None,
}


# -- looks and deliveries ----------------------------------------------------------------------------------------------


def look(books: Books, operation: UUID, seen: Seen, job: str, state: str, outputs: int) -> str | None:
    """S6: by who read the present revision, of the operation's own job, and never against a final state."""
    record, was = books.records[operation], seen.record
    if was.phase not in KNOWN or was.job != job or was.render in FINAL or was.word == state == was.render:
        return None
    if record.revision != was.revision:
        return "stale"
    record.render = record.word = state
    record.revision += 1
    if state not in FINAL:
        books.aim(record, 0, "observe")
        return "applied"
    mine = _present(record)
    mine.charged = mine.held if mine.charged is None else mine.charged
    if state == "succeeded":
        record.lanes.pop(0, None)
        record.outputs = ["pending"] * outputs
        for index in range(outputs):
            books.aim(record, index + 1, "deliver")
    else:
        books.aim(record, 0, "observe")
    return "applied"


def deliver(books: Books, operation: UUID, seen: Seen, index: int, result: str) -> str | None:
    """Guarded by the output alone: what is delivered stays so, whoever comes later."""
    record = books.records[operation]
    if seen.record.phase not in KNOWN or seen.record.render != "succeeded":
        return None
    if index >= len(record.outputs) or record.outputs[index] == "delivered":
        return "stale"
    record.outputs[index] = result
    record.revision += 1
    if result == "delivered":
        record.lanes.pop(index + 1, None)
    else:
        books.aim(record, index + 1, "deliver", parked="delivery_failed")
    return "applied"
