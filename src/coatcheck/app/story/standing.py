"""Where an operation stands: what its phase means, what it waits for, and what would wake it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, assert_never

from coatcheck.app.story.causes import why, why_not_stored
from coatcheck.app.story.telling import Chapter, Row, Telling
from coatcheck.app.story.waiting import waiting
from coatcheck.app.story.wording import amount, count, quoted
from coatcheck.core.operation import DeliveryState, Operation, Phase, RenderState


def standing_chapter(telling: Telling) -> Chapter:
    """The first chapter: the answer before its grounds."""
    operation = telling.operation
    asked = (
        f"The tenant {quoted(operation.tenant_id)} asked for it at {telling.at(operation.created_at)} under the key"
        f" {quoted(operation.operation_key)}, to be made by the provider {quoted(operation.provider)}."
    )
    title = _TITLES[operation.phase].format(
        name=telling.name, job=quoted(operation.remote_job_id or ""), state=_state(telling)
    )
    return Chapter(title=title, lines=(asked, *_explained(telling), *_withdrawal(telling)))


_TITLES: Final[Mapping[Phase, str]] = MappingProxyType(
    {
        Phase.PREPARED: "{name} is prepared: no request for it is open",
        Phase.DISPATCHING: "{name} is being dispatched: its request may be on its way right now",
        Phase.UNCERTAIN: "{name} is uncertain: nobody knows whether the service made a job for it",
        Phase.ACCEPTED: "{name} has the remote job {job}: {state}",
        Phase.SUBMISSION_FAILED: "{name} has the remote job {job}: {state}",
        Phase.REJECTED: "{name} was rejected: the service refused it and made no job",
        Phase.CANCELLED: "{name} was cancelled before anything was made",
        Phase.ABANDONED: "{name} was written off: nobody looks after it any more",
    }
)


def _explained(telling: Telling) -> tuple[str, ...]:
    match telling.operation.phase:
        case Phase.ACCEPTED | Phase.SUBMISSION_FAILED:
            lines = _known(telling)
        case Phase.PREPARED:
            lines = _prepared(telling)
        case Phase.DISPATCHING:
            lines = _dispatching(telling)
        case Phase.UNCERTAIN:
            lines = _uncertain(telling)
        case Phase.REJECTED:
            lines = _rejected(telling)
        case Phase.CANCELLED:
            lines = _cancelled(telling)
        case Phase.ABANDONED:
            lines = _abandoned(telling)
        case unforeseen:
            assert_never(unforeseen)
    return lines


def _prepared(telling: Telling) -> tuple[str, ...]:
    operation = telling.operation
    lines = ["It is committed here, and under its present authorisation nothing was made at the service."]
    if operation.dispatch_count:
        lines.append(f"What became of {_earlier(operation.dispatch_count)} is told below.")
    lines += waiting(telling)
    if operation.dispatch_by_at is not None:
        lines.append(
            f"If no request has left by {telling.at(operation.dispatch_by_at)}, it is cancelled by itself and costs nothing."
        )
    return tuple(lines)


def _earlier(dispatches: int) -> str:
    return "the dispatch before" if dispatches == 1 else f"the {dispatches} dispatches before"


def _dispatching(telling: Telling) -> tuple[str, ...]:
    return (
        'The mark "may be sent from now on" is committed and no end of the request is saved. This lasts as long as the service takes to answer.',
        *waiting(telling),
        "Should the worker die, the operation becomes uncertain. It is never sent again by itself.",
    )


def _uncertain(telling: Telling) -> tuple[str, ...]:
    swept = telling.last("became_uncertain")
    since = "" if swept is None else f" since {telling.at(swept['at'])}"
    row = telling.present
    at_risk = "How much money is at risk is not known: no estimate was given."
    is_known = row is not None and (row["held"] or telling.operation.estimate is not None)
    if row is not None and row["settled_at"] is None and is_known:
        at_risk = f"{amount(row['held'], row['unit'])} are at risk and stay held as long as the doubt lasts."
    return (
        f"It is in doubt{since}: the request may have reached the service, and no usable reply is known.",
        "Nothing is sent again by itself, because a second request could be a second bill. Only a late reply or the decision of a person ends the doubt.",
        *waiting(telling),
        at_risk,
    )


def _state(telling: Telling) -> str:
    """What is known of the remote job, as half a sentence."""
    if telling.is_stalled:
        return "it was looked at for too long and set aside"
    operation = telling.operation
    if _is_unknown_word(operation):
        return f"the service calls it {quoted(operation.remote_status or '')}, which is no known word"
    delivered = _DELIVERIES[operation.delivery_state]
    return _STATES[operation.render_state].format(delivered=delivered)


def _is_unknown_word(operation: Operation) -> bool:
    """Whether it was seen, and never under a word that says how far it is."""
    return operation.render_state is RenderState.NONE and operation.remote_status is not None


_STATES: Final[Mapping[RenderState, str]] = MappingProxyType(
    {
        RenderState.NONE: "it was not seen yet",
        RenderState.QUEUED: "it waits in the service's queue",
        RenderState.RENDERING: "it is being rendered",
        RenderState.SUCCEEDED: "it succeeded, and its output is {delivered}",
        RenderState.FAILED: "it failed",
        RenderState.MODERATED: "the service withholds it for its content",
        RenderState.CANCELLED: "it was cancelled at the service",
        RenderState.EXPIRED: "it expired at the service",
        RenderState.MISSING: "the service says that it does not know it",
    }
)
_DELIVERIES: Final[Mapping[DeliveryState, str]] = MappingProxyType(
    {
        DeliveryState.NOT_STARTED: "not to be delivered",
        DeliveryState.PENDING: "on its way into the sink",
        DeliveryState.DELIVERED: "delivered",
        DeliveryState.FAILED: "not all delivered",
    }
)


def _known(telling: Telling) -> tuple[str, ...]:
    operation = telling.operation
    lines = []
    if operation.phase is Phase.SUBMISSION_FAILED:
        lines.append(
            "The service answered the request with an error and yet named this job, so it is looked after like any other."
        )
    if _is_unknown_word(operation):
        setting = "" if telling.for_tenant else " Give it a meaning with the provider's setting STATUS_WORDS."
        lines.append(f"Its own words are kept, and looks go on until one is known.{setting}")
    elif operation.remote_status is not None:
        lines.append(f"The service's own last word on it is {quoted(operation.remote_status)}.")
    lines += _render(telling)
    lines += waiting(telling)
    return tuple(lines)


def _render(telling: Telling) -> tuple[str, ...]:
    operation = telling.operation
    if operation.render_state is RenderState.MISSING:
        return (
            "It was set aside for a person: the job may have been deleted, or the account may be another. What is held stays held.",
        )
    if telling.is_stalled and operation.observe_by_at is not None:
        return (
            f"It was to be final by {telling.at(operation.observe_by_at)} and is not: set aside for a person. What is held stays held.",
        )
    if operation.render_state is RenderState.SUCCEEDED:
        return _delivery(telling)
    if operation.final_at is not None:
        ended = telling.last("render_finished", "no_output")
        grounds = "" if ended is None or not ended["reason"] else f" The error code it gave: {quoted(ended['reason'])}."
        if ended is not None and ended["event"] == "no_output":
            grounds = " The service called it a success and never gave an output that could be fetched, so it counts as failed."
        return (f"It became final at {telling.at(operation.final_at)}; nothing replaces a final state.{grounds}",)
    if operation.observe_by_at is not None:
        return (
            f"It is looked at until it is final, which costs nothing, at the longest until {telling.at(operation.observe_by_at)}.",
        )
    return ()


def _delivery(telling: Telling) -> tuple[str, ...]:
    operation = telling.operation
    done = (
        f"Of {count(operation.output_count, 'output')}, {operation.delivered_count} lie whole and checked in the sink"
    )
    if not operation.failed_count:
        return (f"{done}.",)
    failed = telling.last("delivery_failed")
    grounds = "" if failed is None or not failed["reason"] else f" The last cause: {why_not_stored(failed['reason'])}."
    return (
        f"{done}, and {operation.failed_count} could not be fetched or stored: set aside for a person.{grounds}",
        "The render itself is untouched by that: fetching once more is free and never renders again.",
    )


def _rejected(telling: Telling) -> tuple[str, ...]:
    row: Row | None = telling.present
    grounds = () if row is None else (f"The ground: {why(row['cause'])}.",)
    return (
        *grounds,
        "Nothing is sent again by itself: the same request would be refused again as long as its cause stands.",
    )


def _cancelled(telling: Telling) -> tuple[str, ...]:
    entry = telling.last("cancelled", "deadline_passed", "throttled_and_withdrawn", "not_sent_and_withdrawn")
    if entry is None:
        return ()
    if entry["event"] == "cancelled":
        return (f"{quoted(entry['actor'])} cancelled it at {telling.at(entry['at'])}. Nothing will be sent.",)
    how = (
        "the instant by which it had to be sent passed"
        if entry["event"] == "deadline_passed"
        else "it was withdrawn while a request that made nothing was under way"
    )
    return (f"At {telling.at(entry['at'])}, {how}. Nothing will be sent.",)


def _abandoned(telling: Telling) -> tuple[str, ...]:
    entry = telling.last("written_off")
    if entry is None:
        return ()
    reason = "" if telling.for_tenant or not entry["reason"] else f" The reason given: {quoted(entry['reason'])}."
    return (
        f"{quoted(entry['actor'])} wrote it off at {telling.at(entry['at'])}.{reason}",
        "Should a job of it come to light after all, that becomes an orphan: listed with its cost, and used by nobody.",
    )


def _withdrawal(telling: Telling) -> tuple[str, ...]:
    wished = telling.operation.cancel_requested_at
    if wished is None:
        return ()
    return (
        f"At {telling.at(wished)} somebody wished to cancel it, too late to stop the request: that promises neither a stop nor a refund.",
    )
