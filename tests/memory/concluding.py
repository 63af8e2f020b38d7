"""`store/conclude`: the end of a batch of POSTs. Evidence always, the conclusion and its lanes where dispatch and phase still allow it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from memory.accounts import is_in_flight, move_accounts, move_allowances, outcome_rank, pause_accounts
from memory.columns import words
from memory.disputes import note_disputes
from memory.evidence import write_evidence
from memory.lanes import change_lanes, chronicle, lane_changes, lane_locks
from memory.tables import Row, Tables, after, listed

_NAMES = words(
    "operation_id dispatch_id event outcome phase withdrawn cause remote_job_id observe_for_s account number authorisation"
    " authorised_by stage marks_ms bytes_sent bytes_received http_status request_ids candidate_id reply settle_s begun_ago_s"
    " held unit shut_s"
)
Job = tuple[str, str]


def conclude(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """Each end comes back applied, as mere evidence, owned by another operation, or stale."""
    steps = [_guarded(tables, _parsed(step)) for step in listed(p, *_NAMES)]
    before = {job: row for step in steps if (row := tables.remote_jobs.get(job := _job(step))) is not None}
    won = _claim_jobs(tables, steps, before)
    judged = [_judged(step, before, won, p["worker"]) for step in steps]
    alive = [step for step in judged if step["status"] != "stale"]
    past = {step["operation_id"]: tables.operations.get(step["operation_id"]) for step in alive}
    money = write_evidence(tables, alive)
    pause_accounts(tables, alive)
    move_accounts(tables, [each for step in alive for each in _news(step)])
    move_allowances(tables, money)
    written = {step["operation_id"]: _written(tables, step) for step in alive if past[step["operation_id"]] is not None}
    locks = lane_locks(tables, written)
    change_lanes(tables, written, _changes(p, judged), locks)
    chronicle(tables, written, alive, locks)
    note_disputes(tables, alive, before)
    return [
        {
            "operation_id": step["operation_id"],
            "status": step["status"],
            "revision": written[step["operation_id"]]["revision"] if step["operation_id"] in written else None,
        }
        for step in judged
    ]


def _parsed(step: Row) -> Row:
    texts = {name: None if step[name] is None else json.loads(step[name]) for name in ("marks_ms", "request_ids")}
    return {**step, **texts}


def _job(step: Row) -> Job:
    return step["account"], step["remote_job_id"]


def _guarded(tables: Tables, step: Row) -> Row:
    """The step with what it finds, and whether it concludes."""
    operation = tables.operations.get(step["operation_id"])
    dispatches = tables.dispatches.of(step["operation_id"])
    mine = next((row for row in dispatches if row["dispatch_id"] == step["dispatch_id"]), None)
    authorisation = step["authorisation"] if mine is None else mine["authorisation"]
    taken = any(
        row["authorisation"] == authorisation and row["dispatch_id"] != step["dispatch_id"] and _spends(row)
        for row in dispatches
    )
    found = operation or {}
    last_number = max((row["number"] for row in dispatches), default=0)
    return {
        **step,
        "from_phase": found.get("phase"),
        "from_render_state": found.get("render_state"),
        "from_delivery_state": found.get("delivery_state"),
        "saved_job_id": found.get("remote_job_id"),
        "saved_account": found.get("account"),
        "tenant_id": found.get("tenant_id"),
        "vanished": mine is None,
        "is_news": mine is None or mine["ended_at"] is None,
        "rises": outcome_rank(step["outcome"]) > (-1 if mine is None else outcome_rank(mine["outcome"])),
        "was_charged": mine and mine["charged"],
        "was_basis": mine and mine["basis"],
        "was_settled_at": mine and mine["settled_at"],
        "held": _first(mine and mine["held"], step["held"], found.get("estimate"), 0),
        "unit": _first(mine and mine["unit"], step["unit"], found.get("unit"), "credits"),
        "row_number": max(step["number"], last_number + 1) if mine is None else step["number"],
        "displaced": taken or operation is None,
        "concludes": operation is not None and _concludes(tables, step, operation, mine=mine, taken=taken),
    }


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _spends(dispatch: Row) -> bool:
    return dispatch["outcome"] not in ("not_sent", "throttled", "proven_absent") and not dispatch["displaced"]


def _concludes(tables: Tables, step: Row, operation: Row, *, mine: Row | None, taken: bool) -> bool:
    rank = 0 if mine is None else outcome_rank(mine["outcome"])
    if step["phase"] is None or outcome_rank(step["outcome"]) < rank:
        return False
    deadline = operation["dispatch_by_at"]
    withdrawn = operation["cancel_requested_at"] is not None or (deadline is not None and deadline <= tables.now())
    if step["phase"] in ("prepared", "cancelled") and step["withdrawn"] != withdrawn:
        return False
    if operation["dispatch_id"] == step["dispatch_id"]:
        return operation["phase"] in ("dispatching", "uncertain") or (
            operation["phase"] == "prepared" and step["remote_job_id"] is not None
        )
    # the mark was lost with a failover
    return mine is None and not taken and bool(operation["phase"] == "prepared")


def _claim_jobs(tables: Tables, steps: Sequence[Row], before: Mapping[Job, Row]) -> set[tuple[Job, UUID]]:
    """The remote jobs that the steps name, claimed or promoted; the answer says whose claim won."""
    named = [step for step in steps if step["remote_job_id"] not in (None, step["saved_job_id"])]
    won: set[tuple[Job, UUID]] = set()
    for step in sorted(named, key=lambda step: (*_job(step), not step["concludes"])):
        if tables.remote_jobs.get(_job(step)) is None:
            tables.remote_jobs.insert(
                account=step["account"],
                remote_job_id=step["remote_job_id"],
                operation_id=step["operation_id"],
                dispatch_id=step["dispatch_id"],
                role="owner" if step["concludes"] else "orphan",
                seen_at=tables.now(),
            )
            won.add((_job(step), step["operation_id"]))
    for step in steps:
        held = before.get(_job(step))
        if step["concludes"] and held is not None and is_own_orphan(held, step["operation_id"]):
            promote(tables, _job(step), step["dispatch_id"])
            won.add((_job(step), step["operation_id"]))
    return won


def is_own_orphan(job: Row, operation_id: UUID) -> bool:
    """Whether a job is kept as an orphan of this very operation."""
    return bool(job["operation_id"] == operation_id and job["role"] == "orphan")


def promote(tables: Tables, job: Job, dispatch_id: UUID | None) -> None:
    """An orphan becomes its operation's own."""
    told = dict.fromkeys(("resolved_at", "resolved_by", "resolution"))
    tables.remote_jobs.change(job, role="owner", dispatch_id=dispatch_id, **told)


def _judged(step: Row, before: Mapping[Job, Row], won: set[tuple[Job, UUID]], worker: str) -> Row:
    status = _status(step, before, won)
    event = step["event"]
    if status == "owned":
        event = "remote_id_owned"
    elif status == "evidence" and step["phase"] is not None:
        event = "reply_kept"
    return {**step, "status": status, "event": event, "actor": worker, "reason": step["cause"], "message_lane": 0}


def _status(step: Row, before: Mapping[Job, Row], won: set[tuple[Job, UUID]]) -> str:
    if not step["concludes"]:
        return "evidence"
    if step["remote_job_id"] is None or (_job(step), step["operation_id"]) in won:
        return "applied"
    holder = before.get(_job(step))
    # another step of this very batch was first: once more
    return "owned" if holder is not None and holder["operation_id"] != step["operation_id"] else "stale"


def _news(step: Row) -> list[tuple[str | None, float | None, int]]:
    """What the step moves in and out of flight, and the patience that its reply asked for."""
    to_phase = {"applied": step["phase"], "owned": "uncertain"}.get(step["status"], step["from_phase"])
    is_accepted = step["status"] == "applied" and step["remote_job_id"] is not None
    to_account = step["account"] if is_accepted else step["saved_account"] or step["account"]
    news: list[tuple[str | None, float | None, int]] = [
        (to_account, None, int(is_in_flight(to_phase, step["from_render_state"]))),
        (step["saved_account"], None, -int(is_in_flight(step["from_phase"], step["from_render_state"]))),
    ]
    if step["is_news"]:
        news.append((step["account"], step["shut_s"], 0))
    return news


def _written(tables: Tables, step: Row) -> Row:
    stored = tables.operations.rows[step["operation_id"]]
    now = tables.now()
    values = {
        "dispatch_count": max(stored["dispatch_count"], step["row_number"]),
        "account": stored["account"] or step["account"],
        "revision": stored["revision"] + 1,
        "updated_at": now,
    }
    if step["status"] in ("applied", "owned"):
        values |= {"dispatch_id": step["dispatch_id"], "phase": "uncertain"}
    if step["status"] == "applied":
        values |= {"phase": step["phase"], "remote_job_id": step["remote_job_id"]}
    if step["status"] == "applied" and step["remote_job_id"] is not None:
        # a remote job is looked up with the credential that made it
        values |= {"account": step["account"], "accepted_at": now}
        observe_for_s = step["observe_for_s"]
        values["observe_by_at"] = None if observe_for_s is None else after(now, observe_for_s)
    return tables.operations.change(step["operation_id"], **values)


def _changes(p: Mapping[str, Any], judged: Sequence[Row]) -> list[Row]:
    """The lanes of what concluded; where another operation has the id, the course waits for a person."""
    statuses = {step["operation_id"]: step["status"] for step in judged}
    parked = {"verb": "park", "action": "reconcile", "reason": "uncertain"}
    return [
        {**change, **(parked if statuses[change["operation_id"]] == "owned" else {})}
        for change in lane_changes(p)
        if statuses.get(change["operation_id"]) in ("applied", "owned")
    ]
