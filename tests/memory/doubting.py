"""What waits for a person's decision, what a decision rests on, and orphans that somebody deals with."""

from collections.abc import Mapping
from typing import Any

from memory.accounts import move_allowances
from memory.columns import words
from memory.lanes import chronicle
from memory.reading import operation_columns
from memory.tables import Row, Tables

_DISPATCH = words("number worker begun_at quiescent_at stage cause http_status candidate_id")


def list_doubts(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/list_doubts`."""
    found = []
    for course in sorted(tables.outbox, key=lambda row: row["operation_id"]):
        operation = tables.operations.get(course["operation_id"])
        if (
            operation is None
            or course["operation_id"] <= p["after"]
            or p["tenant_id"] not in (None, operation["tenant_id"])
        ):
            continue
        if _is_doubt(course, operation, p["park_reason"]):
            found.append(_standing(tables, operation, course))
    return found[: p["size"]]


def _is_doubt(course: Row, operation: Row, park_reasons: list[str]) -> bool:
    if course["parked_at"] is None:
        return bool(course["action"] == "reconcile" and operation["phase"] == "uncertain")
    if course["lane"] != 0 or course["park_reason"] not in park_reasons:
        return False
    is_stuck = course["park_reason"] in ("missing", "stalled") and operation["final_at"] is None
    return operation["phase"] == "uncertain" or (is_stuck and operation["phase"] in ("accepted", "submission_failed"))


def _standing(tables: Tables, operation: Row, course: Row | None) -> Row:
    dispatch = tables.dispatches.get(operation["dispatch_id"])
    is_open = dispatch is not None and dispatch["settled_at"] is None
    return {
        **operation_columns(tables, operation),
        **{name: dispatch and dispatch[name] for name in _DISPATCH},
        "used_authorisation": dispatch and dispatch["authorisation"],
        "held": dispatch["held"] if dispatch is not None and is_open else None,
        "held_unit": dispatch and dispatch["unit"],
        "park_reason": course and course["park_reason"],
    }


def load_doubt(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/load_doubt`."""
    operation = tables.operations.get(p["operation_id"])
    if operation is None or p["tenant_id"] not in (None, operation["tenant_id"]):
        return []
    course = tables.outbox.get((p["operation_id"], 0))
    provider = tables.providers.get(operation["provider"])
    default = provider["default_estimate"] if provider is not None and provider["unit"] == operation["unit"] else None
    history = tables.history.of(p["operation_id"])
    newest = tables.history.get((p["operation_id"], operation["revision"]))
    moves = [row for row in history if row["from_phase"] is not None and row["from_phase"] != row["to_phase"]]
    departure = moves[-1] if moves else None
    if departure is not None and departure["to_phase"] != "abandoned":
        departure = departure if departure["from_phase"] in ("uncertain", "rejected") else None
    entries = {"newest": newest, "departure": departure}
    return [
        {
            **_standing(tables, operation, course),
            "next_estimate": default if operation["estimate"] is None else operation["estimate"],
            **{
                f"{which}_{name}": entry and entry[name]
                for which, entry in entries.items()
                for name in ("event", "actor", "at")
            },
            "is_retired": False,
        }
    ]


def orphans_of(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/orphans_of`."""
    jobs = [row for row in tables.remote_jobs if row["role"] == "orphan" and row["operation_id"] == p["operation_id"]]
    return [_orphan(tables, job) for job in sorted(jobs, key=tables.remote_jobs.key)]


def _orphan(tables: Tables, job: Row) -> Row:
    operation = tables.operations.get(job["operation_id"])
    dispatch = tables.dispatches.get(job["dispatch_id"])
    cost = basis = None
    if dispatch is not None:
        is_own = dispatch["remote_job_id"] == job["remote_job_id"]
        is_settled = is_own and dispatch["charged"] is not None
        cost = dispatch["charged"] - dispatch["orphaned"] if is_settled else dispatch["held"]
        basis = (dispatch["basis"] if is_own else None) or "assumed"
    names = "account remote_job_id operation_id seen_at resolved_at resolved_by resolution"
    return {
        **{name: job[name] for name in words(names)},
        "tenant_id": operation and operation["tenant_id"],
        "phase": operation and operation["phase"],
        "number": dispatch and dispatch["number"],
        "unit": dispatch and dispatch["unit"],
        "cost": cost,
        "basis": basis,
    }


def resolve_orphan(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/resolve_orphan`: what the service says that an orphan cost corrects the charge of its dispatch, in any phase."""
    job = tables.remote_jobs.get((p["account"], p["remote_job_id"]))
    if job is None:
        return []
    operation = tables.operations.get(job["operation_id"])
    dispatch = tables.dispatches.get(job["dispatch_id"])
    status = _orphan_status(p, job, operation, dispatch)
    revision, resolved_at = operation and operation["revision"], job["resolved_at"]
    if status == "applied":
        resolved_at = tables.now()
        if p["charged"] is not None and dispatch is not None:
            _correct(tables, p, operation, dispatch)
        if operation is not None:
            revision = _note_resolution(tables, p, job, operation)
        tables.remote_jobs.change(
            (p["account"], p["remote_job_id"]),
            resolved_at=resolved_at,
            resolved_by=p["actor"],
            resolution=p["reason"],
        )
    return [
        {
            "status": status,
            "operation_id": job["operation_id"],
            "revision": revision,
            "phase": operation and operation["phase"],
            "resolved_at": resolved_at,
            "resolved_by": job["resolved_by"],
            "resolution": job["resolution"],
        }
    ]


def _orphan_status(p: Mapping[str, Any], job: Row, operation: Row | None, dispatch: Row | None) -> str:
    if job["role"] != "orphan":
        return "owned"
    if job["resolved_at"] is not None:
        return "resolved"
    if p["revision"] is not None and (operation is None or operation["revision"] != p["revision"]):
        return "stale"
    return "other_charge" if p["charged"] is not None and dispatch is None else "applied"


def _correct(tables: Tables, p: Mapping[str, Any], operation: Row | None, dispatch: Row) -> None:
    """The dispatch's own job settles it; another job of the same POST is added, now or once the dispatch is settled."""
    is_own = dispatch["remote_job_id"] == p["remote_job_id"]
    is_open = dispatch["settled_at"] is None
    orphaned, charged, basis = dispatch["orphaned"], dispatch["charged"], dispatch["basis"]
    if is_own:
        charged, basis = p["charged"] + orphaned, "service"
    else:
        orphaned = orphaned + p["charged"]
        charged = None if charged is None else charged + p["charged"]
    settled_at = (dispatch["settled_at"] or tables.now()) if is_own else dispatch["settled_at"]
    tables.dispatches.change(
        dispatch["dispatch_id"], orphaned=orphaned, charged=charged, basis=basis, settled_at=settled_at
    )
    held = -dispatch["held"] if is_own and is_open else 0
    tenant_id = None if operation is None else operation["tenant_id"]
    move_allowances(tables, [(tenant_id, dispatch["unit"], held, (charged or 0) - (dispatch["charged"] or 0))])


def _note_resolution(tables: Tables, p: Mapping[str, Any], job: Row, operation: Row) -> int:
    written = tables.operations.change(
        operation["operation_id"], revision=operation["revision"] + 1, updated_at=tables.now()
    )
    step = {
        "operation_id": operation["operation_id"],
        "dispatch_id": job["dispatch_id"],
        "event": "orphan_resolved",
        "actor": p["actor"],
        "reason": p["reason"],
        "message_lane": 0,
        **{f"from_{name}": operation[name] for name in ("phase", "render_state", "delivery_state")},
    }
    chronicle(tables, {operation["operation_id"]: written}, [step], {})
    revision: int = written["revision"]
    return revision
