"""What a person can do now, what it costs, and the command for it with everything filled in that is known.

Nothing is offered that the table of phases would refuse for good; what is refused for now says until when.
"""

from collections.abc import Iterator

from coatcheck.app.story.telling import Chapter, Row, Telling
from coatcheck.app.story.waiting import is_unclaimed
from coatcheck.app.story.wording import amount, quoted, word
from coatcheck.core.operation import Phase, RenderState

_REASON = "--reason REASON"


def choices_chapter(telling: Telling) -> Chapter | None:
    """The last chapter, or None where nothing needs a person."""
    lines = tuple(_choices(telling))
    return Chapter(title="What you can do", lines=lines) if lines else None


def _choices(telling: Telling) -> Iterator[str]:
    operation = telling.operation
    if telling.for_tenant:
        if operation.phase is Phase.UNCERTAIN:
            yield "Nothing: whoever operates this installation decides, and until then nothing is sent again."
        return
    match operation.phase:
        case Phase.UNCERTAIN:
            yield from _uncertain(telling)
        case Phase.PREPARED:
            yield from _prepared(telling)
        case Phase.REJECTED:
            yield from _rejected(telling)
        case Phase.ACCEPTED | Phase.SUBMISSION_FAILED if (
            telling.is_stalled or operation.render_state is RenderState.MISSING
        ):
            yield from _given_up(telling)
        case _:
            pass
    yield from _set_aside(telling)


def _uncertain(telling: Telling) -> Iterator[str]:
    row = telling.present
    candidate = None if row is None else row["candidate_id"]
    yield "First look into the service's own records (its list of jobs, its bill, its support) for a job of this time. Then one of these; REASON is why, in quotation marks, and is kept."
    yield "Wait. Free and safe: a reply counts whenever it comes, also one that a worker kept on its own disk while the database was away."
    known = f"{quoted(candidate)} is the candidate" if candidate else "JOB is its id there"
    for orphan in _orphans(telling):
        job = quoted(orphan["remote_job_id"])
        if orphan["job_resolved_at"] is not None:
            yield f"The job {job} of an earlier dispatch was dealt with already, so it is not taken over."
        else:
            yield f"The job {job} of an earlier dispatch may be taken over like any other. It has its own money: what the present dispatch holds{_held(row)} then counts as spent."
    yield f"The service has the job ({known}): take it over. Free: the service is asked for it first, and an id is refused that is unknown or another's."
    yield f"coatcheck reconcile adopt {telling.name} {word(candidate, 'JOB') if candidate else 'JOB'} {_REASON}"
    yield f"The service certainly has no job: say so. The hold is released, and the request is sent once more, which costs what it costs.{_when(telling, row)}"
    yield f"coatcheck reconcile prove-absent {telling.name} {_REASON}"
    yield f"It cannot be found out, and the output is needed: send a second request knowingly. COSTS MONEY: {_twice(row)}{_when(telling, row)}"
    yield f"coatcheck reconcile redispatch {telling.name} --yes {_REASON}"
    yield "The output is not needed any more: write it off. Nothing is sent; what is held counts as spent, or with --released as not spent."
    yield f"coatcheck reconcile write-off {telling.name} {_REASON}"


def _orphans(telling: Telling) -> Iterator[Row]:
    """Earlier dispatches whose jobs are recorded for this operation, and which it did not take."""
    operation = telling.operation
    for row in telling.kept["dispatches"]:
        if row["dispatch_id"] != operation.dispatch_id and row["job_operation_id"] == operation.operation_id:
            yield row


def _held(row: Row | None) -> str:
    return f" ({amount(row['held'], row['unit'])})" if row is not None and row["held"] else ""


def _when(telling: Telling, row: Row | None) -> str:
    if row is None or row["quiescent_at"] <= telling.now:
        return ""
    return f" Refused until {telling.at(row['quiescent_at'])}, because the first request could still arrive."


def _twice(row: Row | None) -> str:
    if row is None or not row["held"]:
        return "it may be paid for twice."
    held = amount(row["held"], row["unit"])
    return f"the first {held} then count as spent, and about {held} come on top."


def _prepared(telling: Telling) -> Iterator[str]:
    operation, course = telling.operation, telling.course
    reason = None if course is None else course["wait_reason"]
    if reason == "pause":
        yield "See why the account is paused, and let it go on once the cause is gone. Free; the dispatches that follow cost what they cost."
        yield "coatcheck providers list"
        yield f"coatcheck providers resume {word(operation.provider, 'PROVIDER')} {_REASON}"
        yield from _cancel(telling)
    elif reason == "allowance":
        yield "See what the tenant may spend and what is held, and allow more if that is right. The dispatches that follow cost what they cost."
        yield f"coatcheck allowance show --tenant {word(operation.tenant_id, 'TENANT')}"
        yield f"coatcheck allowance set --tenant {word(operation.tenant_id, 'TENANT')} AMOUNT --unit {word(operation.unit, 'UNIT')}"
        yield from _cancel(telling)
    elif course is not None and course["parked_at"] is not None:
        yield from _cancel(telling)
    elif course is not None and is_unclaimed(telling, course):
        yield f"See which providers are known. If {quoted(operation.provider)} is right, run a worker that has it; the dispatch that follows costs what it costs."
        yield "coatcheck providers list"
        yield from _cancel(telling)


def _cancel(telling: Telling) -> Iterator[str]:
    yield "If it is not wanted any more, cancel it. Free: nothing of it is sent under its present authorisation."
    yield f"coatcheck operations cancel {telling.name} {_REASON}"


def _set_aside(telling: Telling) -> Iterator[str]:
    """Messages that a person may take up once the cause is gone; deliveries all at once."""
    messages = [each for each in telling.kept["messages"] if each["parked_at"] is not None]
    if any(each["park_reason"] == "delivery_failed" for each in messages):
        yield "Once the cause is gone, store the outputs again. Free: nothing is rendered again."
        yield f"coatcheck operations redeliver {telling.name} {_REASON}"
    for each in messages:
        if each["park_reason"] in ("lease_count", "specification") and telling.operation.phase is not Phase.UNCERTAIN:
            yield "Once the cause is gone, take its message up again. Free: it is under the rules that held before."
            yield f"coatcheck messages resume {telling.name}.{each['lane']} {_REASON}"


def _rejected(telling: Telling) -> Iterator[str]:
    yield "If what was asked is wrong, enqueue what is right under another key. Costs what it costs."
    yield "If the cause lay elsewhere (a key, a balance) and is gone, send the same request again. COSTS MONEY, as any accepted request."
    yield f"coatcheck reconcile redispatch {telling.name} --yes {_REASON}"


def _given_up(telling: Telling) -> Iterator[str]:
    yield "If the service may have it after all, look again, until a new deadline. Free."
    yield f"coatcheck operations reobserve {telling.name} {_REASON}"
    yield "If the job is lost or not needed any more, write it off. Nothing is sent; what is held counts as spent, or with --released as not spent."
    yield f"coatcheck reconcile write-off {telling.name} {_REASON}"
