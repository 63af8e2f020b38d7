"""`store/decide`: a batch of decisions. Guarded by the revision, and for an adopted id that no other operation has it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from memory.accounts import is_in_flight, move_accounts, move_allowances
from memory.columns import words
from memory.concluding import Job, is_own_orphan, promote
from memory.lanes import Written, change_lanes, chronicle, lane_changes, lane_locks
from memory.tables import Key, Row, Tables, after, listed
from memory.verdicts import settle

_NAMES = words(
    "operation_id revision event phase render_state actor reason outcome settles authorises requests_cancel cancel_answer"
    " clears_withdrawal remote_job_id observe_for_s"
)


def decide(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """Each decision comes back applied, stale or owned by another operation."""
    steps = [_guarded(tables, step) for step in listed(p, *_NAMES)]
    judged = _judged(tables, steps)
    applied = [step for step in judged if step["status"] == "applied"]
    money = settle(tables, applied)
    move_accounts(tables, [(step["account"], None, _flights(step)) for step in applied])
    move_allowances(tables, [each.amount for each in money])
    again = _redeliver(tables, applied, listed(p, "redeliver_operation_id", "redeliver_index"))
    written = {step["operation_id"]: _written(tables, step, again[step["operation_id"]]) for step in applied}
    changes = lane_changes(p)
    locks = lane_locks(tables, written)
    change_lanes(tables, written, changes, locks)
    chronicle(tables, written, applied, locks)
    _look(tables, written, changes, locks)
    moved = {
        step["operation_id"]: [each for each in money if each.operation_id == step["operation_id"]] for step in judged
    }
    return [
        {
            "operation_id": step["operation_id"],
            "status": step["status"],
            "revision": written[step["operation_id"]]["revision"] if step["operation_id"] in written else None,
            "spent": _sum([each.charged for each in moved[step["operation_id"]] if each.verdict == "spent"]),
            "released": _sum([each.released for each in moved[step["operation_id"]] if each.verdict == "free"]),
        }
        for step in judged
    ]


def _sum(values: Sequence[Any]) -> Any:
    return sum(values) if values else None


def _guarded(tables: Tables, step: Row) -> Row:
    operation = tables.operations.get(step["operation_id"]) or {}
    return {
        **step,
        "is_current": operation.get("revision") == step["revision"] is not None,
        "message_lane": 0,
        "from_phase": operation.get("phase"),
        "from_render_state": operation.get("render_state"),
        "from_delivery_state": operation.get("delivery_state"),
        **{name: operation.get(name) for name in ("dispatch_id", "tenant_id", "account")},
    }


def _judged(tables: Tables, steps: Sequence[Row]) -> list[Row]:
    """Claim the adopted ids; what is there already belongs to whoever has it, or was an orphan of this operation."""
    jobs = {_job(step): tables.remote_jobs.get(_job(step)) for step in steps}
    won: dict[tuple[Job, UUID], UUID | None] = {}
    named = [step for step in steps if step["is_current"] and step["remote_job_id"] is not None]
    for step in sorted(named, key=_job):
        if tables.remote_jobs.get(_job(step)) is None:
            tables.remote_jobs.insert(
                **{name: step[name] for name in ("account", "remote_job_id", "operation_id", "dispatch_id")},
                role="owner",
                seen_at=tables.now(),
            )
            won[_job(step), step["operation_id"]] = step["dispatch_id"]
    for step in named:
        held = jobs[_job(step)]
        if held is not None and is_own_orphan(held, step["operation_id"]):
            dispatch_id = held["dispatch_id"] or step["dispatch_id"]
            promote(tables, _job(step), dispatch_id)
            won[_job(step), step["operation_id"]] = dispatch_id
    return [_with_status(step, jobs, won) for step in steps]


def _with_status(step: Row, jobs: Mapping[Job, Row | None], won: Mapping[tuple[Job, UUID], UUID | None]) -> Row:
    mine = (_job(step), step["operation_id"])
    status = "stale"
    if step["is_current"]:
        holder = jobs[_job(step)]
        if step["remote_job_id"] is None or mine in won:
            status = "applied"
        elif holder is not None and holder["operation_id"] != step["operation_id"]:
            status = "owned"
    return {
        **step,
        "status": status,
        "present_dispatch_id": step["dispatch_id"],
        "dispatch_id": won.get(mine) or step["dispatch_id"],
    }


def _job(step: Row) -> Job:
    return step["account"], step["remote_job_id"]


def _flights(step: Row) -> int:
    return is_in_flight(step["phase"], step["render_state"]) - is_in_flight(
        step["from_phase"], step["from_render_state"]
    )


def _redeliver(tables: Tables, applied: Sequence[Row], wishes: Sequence[Row]) -> dict[UUID, int]:
    """Failed outputs are pending again; how many of each operation."""
    counts: dict[UUID, int] = dict.fromkeys((step["operation_id"] for step in applied), 0)
    for wish in wishes:
        key = (wish["redeliver_operation_id"], wish["redeliver_index"])
        held = tables.deliveries.get(key)
        if key[0] in counts and held is not None and held["state"] == "failed":
            tables.deliveries.change(key, state="pending", cause=None, updated_at=tables.now())
            counts[key[0]] += 1
    return counts


def _written(tables: Tables, step: Row, again: int) -> Row:
    stored = tables.operations.rows[step["operation_id"]]
    now = tables.now()
    values = {
        "phase": step["phase"],
        "render_state": step["render_state"],
        "authorisation": stored["authorisation"] + bool(step["authorises"]),
        "authorised_by": step["actor"] if step["authorises"] else stored["authorised_by"],
        "dispatch_id": step["dispatch_id"] or stored["dispatch_id"],
        "remote_job_id": stored["remote_job_id"] or step["remote_job_id"],
        "failed_count": stored["failed_count"] - again,
        "delivery_state": "pending" if again else stored["delivery_state"],
        "revision": stored["revision"] + 1,
        "updated_at": now,
        **_withdrawal(step, stored, tables),
    }
    if step["remote_job_id"] is not None:
        values["accepted_at"] = now
    if step["observe_for_s"] is not None:
        values["observe_by_at"] = after(now, step["observe_for_s"])
    return tables.operations.change(step["operation_id"], **values)


def _withdrawal(step: Row, stored: Row, tables: Tables) -> Row:
    if step["clears_withdrawal"]:
        return dict.fromkeys(("cancel_requested_at", "cancel_answer", "dispatch_by_at"))
    if step["requests_cancel"]:
        # whoever asks again is passed on again
        return {"cancel_requested_at": stored["cancel_requested_at"] or tables.now(), "cancel_answer": None}
    return {"cancel_answer": step["cancel_answer"] or stored["cancel_answer"]}


def _look(tables: Tables, written: Written, changes: Sequence[Row], locks: Mapping[Key, Row]) -> None:
    """A look that is being made is left alone: it finds the newer revision, and is made again."""
    for change in changes:
        key = (change["operation_id"], 0)
        if change["verb"] not in ("look", "look_again") or change["operation_id"] not in written or key not in locks:
            continue
        held = tables.outbox.rows[key]
        resumes = change["verb"] == "look_again"
        if (
            held["action"] != "observe"
            or held["leased_by"] is not None
            or (held["parked_at"] is not None and not resumes)
        ):
            continue
        tables.outbox.change(
            key,
            visible_at=tables.now(),
            lease_token=tables.next_token(),
            lease_count=0 if resumes else held["lease_count"],
            last_error=None if resumes else held["last_error"],
            expected_revision=written[change["operation_id"]]["revision"],
            parked_at=None,
            park_reason=None,
        )
