"""One dispatch told: who let it happen, how far the request got and when, what came back, what that proves, and what it costs.

Counts and stages are told only where the end of the POST was recorded: a worker that vanished proves nothing by its silence.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from coatcheck.app.story.causes import status_words, why
from coatcheck.app.story.telling import Chapter, Row, Telling
from coatcheck.app.story.wording import amount, count, quoted, span, text_of
from coatcheck.app.visible import visible
from coatcheck.core.evidence import Stage
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import ECHOED, Outcome

_STAGES: Final[Mapping[Stage, str]] = MappingProxyType(
    {
        Stage.RESOLVING: "it began to look up the service's address",
        Stage.CONNECTING: "it began to connect",
        Stage.TLS: "it was connected and began to set up encryption (TLS)",
        Stage.CONNECTED: "the connection was ready",
        Stage.HEADERS_BEGUN: "the first bytes of the request left",
        Stage.BODY_SENT: "the whole request had left",
        Stage.STATUS_RECEIVED: "the reply's status and headers were here",
        Stage.BODY_RECEIVED: "the reply's body was here to its end",
    }
)
_RELEASES: Final = ("proven_absent", "redispatch_authorised")
_TITLES: Final[Mapping[Outcome, str]] = MappingProxyType(
    {
        Outcome.OPEN: "a request that is under way",
        Outcome.UNCERTAIN: "a request that may have reached the service",
        Outcome.REJECTED: "a request that the service refused",
        Outcome.THROTTLED: "a request that the service put off",
        Outcome.NOT_SENT: "a request that was never sent",
        Outcome.PROVEN_ABSENT: "a request that made no job, as a person found out",
        Outcome.SUBMISSION_FAILED: "a request that failed and yet made a job",
        Outcome.ACCEPTED: "a request that made a job",
    }
)
_DISPUTED_TITLE: Final = "a request whose reply names a job of another operation"
_QUOTED: Final = 400


def dispatch_chapter(telling: Telling, row: Row) -> Chapter:
    """Everything about one dispatch."""
    outcome = Outcome(row["outcome"])
    lines = (
        *_permission(telling, row),
        *_course(row),
        *(() if telling.for_tenant else _reply(row)),
        *_verdict(telling, row, outcome),
        *(() if telling.for_tenant else _candidate(row)),
        *_money(row),
        *_quiet(telling, row, outcome),
    )
    title = _DISPUTED_TITLE if _is_disputed(telling, row) else _TITLES[outcome]
    return Chapter(title=f"Dispatch {row['number']}: {title}", lines=lines)


def _is_disputed(telling: Telling, row: Row) -> bool:
    """Whether its reply named a job that is recorded for another operation."""
    return row["job_operation_id"] not in (None, telling.operation.operation_id)


def _permission(telling: Telling, row: Row) -> tuple[str, ...]:
    worker = "a worker" if telling.for_tenant else f"the process (worker) {quoted(row['worker'])}"
    begun, send_by = row["begun_at"], row["send_by_at"]
    marked = f'At {telling.at(begun)}, {worker} committed the mark "may be sent from now on", for the account {quoted(row["account"])}.'
    allowed = f"The mark used authorisation {row['authorisation']}, {_given_by(telling, row)}."
    lines = [
        f"{marked} No byte of a request leaves before its mark is committed.",
        f"{allowed} One authorisation is good for one request.",
    ]
    if send_by > begun:
        within = span((send_by - begun).total_seconds())
        lines.append(
            f"The first byte had {within} to leave, until {telling.at(send_by)}; after that none would have left."
        )
    return tuple(lines)


def _given_by(telling: Telling, row: Row) -> str:
    """Who allowed it: the application by enqueueing, or a person by the decision that led to the number."""
    if row["authorisation"] == 1:
        return f"which the application gave by enqueueing the operation, as the database role {quoted(row['authorised_by'])}"
    given = [entry for entry in telling.kept["history"] if entry["event"] in _RELEASES]
    position = row["authorisation"] - 2
    if position >= len(given):
        return f"given by {quoted(row['authorised_by'])}"
    decided = given[position]
    how = (
        "after proving that the request before it made no job"
        if decided["event"] == _RELEASES[0]
        else "by ordering it anew"
    )
    reason = "" if telling.for_tenant or not decided["reason"] else f"; the reason given: {quoted(decided['reason'])}"
    return f"which {quoted(decided['actor'])} gave at {telling.at(decided['at'])} {how}{reason}"


def _course(row: Row) -> tuple[str, ...]:
    if row["ended_at"] is None:
        return (
            "How far the request got was never recorded, so nothing is known about it: it may have left whole or not at all.",
        )
    marks = row["marks_ms"] or {}
    reached = [stage for stage in _STAGES if stage in marks]
    entries = [f"  after {marks[stage] / 1000:7.3f} s  {_STAGES[stage]}{_bytes(row, stage)}" for stage in reached]
    rank = Stage(row["stage"]).rank
    missed = [
        stage
        for stage in (Stage.HEADERS_BEGUN, Stage.BODY_SENT, Stage.STATUS_RECEIVED, Stage.BODY_RECEIVED)
        if stage.rank > rank
    ]
    entries += [f"  never            {_STAGES[stage]}" for stage in missed[:1]]
    return ("What the worker saw, counted from when it knew that the mark was committed:", *entries, _totals(row))


def _bytes(row: Row, stage: Stage) -> str:
    match stage:
        case Stage.BODY_SENT:
            return f" ({count(row['bytes_sent'], 'byte')})"
        case Stage.STATUS_RECEIVED if row["http_status"] is not None:
            return f": {status_words(row['http_status'])}"
        case _:
            return ""


def _totals(row: Row) -> str:
    if not row["bytes_sent"]:
        return "In all, not one byte of the request was handed to the network."
    back = (
        f"{count(row['bytes_received'], 'byte')} of a reply, its head included," if row["bytes_received"] else "nothing"
    )
    verb = "were" if row["bytes_sent"] != 1 else "was"
    return (
        f"In all, {count(row['bytes_sent'], 'byte')} of the request {verb} handed to the network, and {back} came back."
    )


def _reply(row: Row) -> tuple[str, ...]:
    lines: list[str] = []
    if row["reply"]:
        body, size = visible(text_of(row["reply"])[:_QUOTED]), count(len(row["reply"]), "byte")
        lines += (f"The reply's body, as far as it is kept ({size}) and can be shown:", f"  | {body}")
    if row["request_ids"]:
        named = ", ".join(f"{quoted(name)}: {quoted(value)}" for name, value in row["request_ids"].items())
        lines.append(f"The service's support finds this request by what the reply's headers call it: {named}.")
    return tuple(lines)


def _verdict(telling: Telling, row: Row, outcome: Outcome) -> tuple[str, ...]:
    lines = list(_disputed(telling, row) if _is_disputed(telling, row) else _proof(telling, row, outcome))
    if row["displaced"]:
        lines.append(
            "This dispatch is displaced: when its end came to be known, another one had already used the same authorisation."
        )
    return tuple(lines)


def _disputed(telling: Telling, row: Row) -> tuple[str, ...]:
    owner = "another operation" if telling.for_tenant else f"the operation {operation_text(row['job_operation_id'])}"
    return (
        f"Outcome: disputed. A reply names the job {quoted(row['remote_job_id'])}, which {owner} has: one of the two is wrong.",
        "Ask the service which of the two requests made it, before anything of it is delivered.",
    )


def _proof(telling: Telling, row: Row, outcome: Outcome) -> tuple[str, ...]:
    lines = [_VERDICTS[outcome].format(why=_why(row), status=_answer(row), job=quoted(row["remote_job_id"] or ""))]
    adopted = next(
        (
            each
            for each in telling.kept["history"]
            if (each["event"], each["dispatch_id"]) == ("adopted", row["dispatch_id"])
        ),
        None,
    )
    if outcome is Outcome.ACCEPTED and adopted is not None:
        by = "the service was asked and lists its job as made for this very request"
        how = by if adopted["reason"] == ECHOED else f"{quoted(adopted['actor'])} named its job"
        lines = [f"Outcome: accepted, by adoption. No reply proved it: {how}, at {telling.at(adopted['at'])}."]
    elif outcome is Outcome.UNCERTAIN and row["ended_at"] is not None and row["stage"] == Stage.HEADERS_BEGUN:
        lines.append(
            "Only a part of the request had left, and a service needs the whole: a job is unlikely, but not impossible."
        )
    if row["remote_job_id"] and row["remote_job_id"] != telling.operation.remote_job_id:
        lines.append(
            f"Its job {quoted(row['remote_job_id'])} came to light too late for the operation to take it: it is an orphan, paid for and unused.{_dealt_with(telling, row)}"
        )
    return tuple(lines)


def _dealt_with(telling: Telling, row: Row) -> str:
    if row["job_resolved_at"] is None:
        return ""
    at = telling.at(row["job_resolved_at"])
    if telling.for_tenant:
        return f" It was dealt with already, at {at}."
    reason = quoted(row["job_resolution"])
    return f" It was dealt with already: by {quoted(row['job_resolved_by'])} at {at}; the reason given: {reason}."


def _why(row: Row) -> str:
    """The cause, and where a reply had begun, how much of it there was."""
    cut = row["ended_at"] is not None and row["bytes_received"] and row["stage"] != Stage.BODY_RECEIVED
    grounds = why(row["cause"])
    return f"its reply was cut after {count(row['bytes_received'], 'byte')} ({grounds})" if cut else grounds


def _answer(row: Row) -> str:
    return status_words(row["http_status"]) if row["http_status"] is not None else "a refusal"


_VERDICTS: Final[Mapping[Outcome, str]] = MappingProxyType(
    {
        Outcome.OPEN: "Outcome: open. No end is recorded yet. If its worker stops reporting, the outcome becomes uncertain by itself, and nothing is sent again.",
        Outcome.UNCERTAIN: "Outcome: uncertain, because {why}. The service may have made a job and may charge for it; from here nobody can tell.",
        Outcome.REJECTED: "Outcome: rejected. The service answered {status} and named no job; by what this status means, it made none.",
        Outcome.THROTTLED: "Outcome: throttled. The service answered {status}: too much at once, nothing was made. The same authorisation is used again later.",
        Outcome.NOT_SENT: "Outcome: not sent, and that is proven: {why}, and not one byte of the request left this machine. The service cannot have made a job of it.",
        Outcome.PROVEN_ABSENT: "Outcome: proven absent. Its own end proved nothing ({why}); a person established that the service made no job of it.",
        Outcome.SUBMISSION_FAILED: "Outcome: failed at the service, which answered {status} and yet named the job {job}. That job may be charged, so it is looked after.",
        Outcome.ACCEPTED: "Outcome: accepted. A whole reply named the job {job}.",
    }
)


def _candidate(row: Row) -> tuple[str, ...]:
    if not row["candidate_id"] or row["remote_job_id"]:
        return ()
    shown = f"A candidate: the part that arrived shows the job id {quoted(row['candidate_id'])}."
    meaning = "That is a hint and no acceptance, because the reply as a whole proves nothing."
    return (f"{shown} {meaning} Whether such a job exists and is this one, the service's own records say.",)


def _money(row: Row) -> tuple[str, ...]:
    held, unit = row["held"], row["unit"]
    orphaned = amount(row["orphaned"], unit)
    if row["settled_at"] is None:
        if held:
            other = (
                f" Besides, {orphaned} are charged then for another job of the same request." if row["orphaned"] else ""
            )
            return (f"Money: {amount(held, unit)} are held for this dispatch until it is known what it cost.{other}",)
        return (
            "Money: nothing is held, because no estimate was given. What it may have cost, only the service knows.",
        )
    if not row["charged"]:
        return ("Money: this dispatch is settled and costs nothing.",)
    other = f" Of these, {orphaned} are for another job of the same request." if row["orphaned"] else ""
    basis = (
        "that is the service's own figure"
        if row["basis"] == "service"
        else "the service gave no figure, so what was held counts as spent"
    )
    return (f"Money: {amount(row['charged'], unit)} are charged; {basis}.{other}",)


def _quiet(telling: Telling, row: Row, outcome: Outcome) -> tuple[str, ...]:
    if outcome is Outcome.NOT_SENT or (outcome is not Outcome.OPEN and outcome is not Outcome.UNCERTAIN):
        return ()
    when = telling.at(row["quiescent_at"])
    if row["quiescent_at"] > telling.now:
        return (
            f"Until {when}, something of this request may still arrive at the service. Until then it cannot be told that there is no job.",
        )
    return (
        f"Since {when}, nothing of this request can arrive at the service any more: what it has made by now is all it will make.",
    )
