"""What was decided about an operation, and the faults in its protocol, each with what it means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from coatcheck.app.story.telling import Chapter, Row, Telling
from coatcheck.app.story.wording import count, quoted

_DECISIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "adopted": "took over a remote job for it",
        "proven_absent": "declared that the service made no job, and allowed one more request",
        "redispatch_requested": "asked for a second request, which somebody else has to allow",
        "redispatch_authorised": "ordered one more request, at the price of a second one",
        "written_off": "wrote it off",
        "noted": "noted what they found out",
        "cancelled": "cancelled it",
        "cancel_requested": "wished to cancel it, too late to stop the request",
        "reobserve_requested": "ordered it to be looked at again",
        "redeliver_requested": "ordered its outputs to be fetched again",
        "message_resumed": "took up a message of it that had been set aside",
        "cancel_taken": "passed the wish to cancel it on, and the service took it",
        "cancel_refused": "passed the wish to cancel it on, and the service refused it",
        "orphan_resolved": "dealt with a job of it that had come to light too late",
    }
)
_INCIDENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "remote_id_owned": "A reply, or a search for the job, named a remote job that another operation has. One of the two is wrong: ask the service which request made it before anything is delivered.",
        "remote_id_disputed": "A reply to another operation named the remote job that this one has. One of the two is wrong: ask the service which request made it before anything is delivered.",
        "dispatch_vanished": "The record of a request was gone when its reply came, as after a failover that lost commits; it was written anew.",
        "late_remote_job": "A job came to light that this operation can no longer take: an orphan, paid for and unused.",
        "contradicting_reply": "A reply without a job came in although the operation has one. The job stays.",
        "unknown_status": "The service used a word for the job's state that is not known here. It is not taken for an end.",
        "no_output": "The service called the job a success and gave no output that could be fetched.",
        "malformed": "A look, or a search for the job, brought an answer that makes no sense.",
        "wrong_id": "A look brought another job than it asked for. Nothing of it was saved.",
        "regressed": "A look contradicts the final state that is saved. Nothing of it was saved.",
        "look_denied": "The service refused a look, or a search for the job, as it does with a wrong key.",
        "reference_repeated": "The service lists several jobs as made for the one request. A person has to tell which is which.",
        "unit_differs": "The service charged in another unit than was held, so its figure cannot be used.",
        "message_job_differs": "An instruction named another remote job than the operation has. It was not followed.",
        "output_unusable": "The service listed outputs that cannot be fetched as described.",
    }
)
_SIDES: Final[Mapping[str, str]] = MappingProxyType(
    {"ours": "on this side", "network": "on the way between", "theirs": "on the service's side"}
)


def meaning(kind: str) -> str:
    """What an incident of this kind means, in one sentence."""
    return _INCIDENTS.get(kind, f"The incident {quoted(kind)}.")


def decisions_chapter(telling: Telling) -> Chapter | None:
    """What was decided, oldest first, or None."""
    lines = tuple(_decision(telling, entry) for entry in telling.kept["history"] if entry["event"] in _DECISIONS)
    return Chapter(title="What was decided", lines=lines) if lines else None


def _decision(telling: Telling, entry: Row) -> str:
    reason = "" if telling.for_tenant or not entry["reason"] else f"; the reason given: {quoted(entry['reason'])}"
    return f"At {telling.at(entry['at'])}, {quoted(entry['actor'])} {_DECISIONS[entry['event']]}{reason}."


def incidents_chapter(telling: Telling) -> Chapter | None:
    """What went against the protocol, or None."""
    lines = tuple(line for incident in telling.kept["incidents"] for line in _incident(telling, incident))
    kinds = set() if telling.for_tenant else {each["kind"] for each in telling.kept["incidents"]}
    if "late_remote_job" in kinds:
        lines += ("Orphans are listed with their cost, and resolved, apart:", "coatcheck orphans list")
    if kinds & {"remote_id_owned", "remote_id_disputed"}:
        lines += (
            "Once the service said whose job it is, note that; until then the audit reports it:",
            f"coatcheck reconcile note {telling.name} --reason REASON",
        )
    return Chapter(title="What went against the rules", lines=lines) if lines else None


def _incident(telling: Telling, incident: Row) -> tuple[str, ...]:
    side = _SIDES.get(incident["boundary"], "on a side that is not recorded")
    seen = f"Seen {count(incident['count'], 'time')}, last at {telling.at(incident['last_at'])}; the fault lies {side}."
    detail = "" if telling.for_tenant else f" Recorded as: {quoted(incident['detail'])}."
    return (f"{meaning(incident['kind'])} {seen}{detail}",)
