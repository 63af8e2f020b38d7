"""Reads: operations, what messages are about, outputs, and what a save whose commit nobody saw has left behind."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from memory.columns import COLUMNS, words
from memory.tables import Row, Tables, listed

_OPERATION = tuple(COLUMNS["operations"])
_OUTPUT = words(
    "operation_id output_index state source declared_type declared_bytes declared_sha256 uri sha256 bytes sniffed_type"
)

OUTPUT = _OUTPUT[1:]
"""What a subject has of an output."""
SUBJECT = (*words("specification_text quiescent_at read_at"), *OUTPUT, *_OPERATION)
"""The columns of what a message is about."""


def operation_columns(tables: Tables, operation: Row) -> Row:
    """`parts/operation_columns.sql`: the row, with the instant at which it was read."""
    return {**{name: operation[name] for name in _OPERATION}, "read_at": tables.now()}


def load(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/load`."""
    wanted = set(p["operation_id"])
    return [operation_columns(tables, row) for key, row in tables.operations.rows.items() if key in wanted]


def find(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/find`."""
    row = tables.operations.get(p["operation_id"])
    if row is None or p["tenant_id"] not in (None, row["tenant_id"]):
        return []
    return [operation_columns(tables, row)]


def load_subjects(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/load_subjects`."""
    found = []
    for message in listed(p, "operation_id", "lane", "action"):
        subject = subject_of(tables, message)
        if subject is not None:
            found.append({"lane": message["lane"], **subject})
    return found


def subject_of(tables: Tables, message: Row) -> Row | None:
    """`parts/subject.sql`; None where the operation is gone."""
    operation = tables.operations.get(message["operation_id"])
    if operation is None:
        return None
    specification = output = dispatch = None
    match message["action"]:
        case "dispatch":
            specification = tables.specifications.get(operation["operation_id"])
        case "deliver":
            output = tables.deliveries.get((operation["operation_id"], message["lane"] - 1))
        case "reconcile":
            dispatch = tables.dispatches.get(operation["dispatch_id"])
        case _:
            pass
    return {
        "specification_text": specification and specification["specification_text"],
        **{name: output and output[name] for name in OUTPUT},
        "quiescent_at": dispatch and dispatch["quiescent_at"],
        **operation_columns(tables, operation),
    }


def load_deliveries(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/load_deliveries`."""
    wanted = sorted(set(p["operation_id"]))
    return [{name: row[name] for name in _OUTPUT} for each in wanted for row in tables.deliveries.of(each)]


def trace_end(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/trace_end`."""
    operation = tables.operations.get(p["operation_id"])
    revision = None if operation is None else operation["revision"]
    expected = revision if operation is not None and revision == p["revision"] else None
    ended = tables.dispatches.get(p["dispatch_id"])
    is_told = ended is not None and ended["ended_at"] is not None
    job = tables.remote_jobs.get((p["account"], p["remote_job_id"]))
    return [
        {
            "is_outdated": revision != expected,
            "is_marked": ended is not None,
            "outcome": ended["outcome"] if ended is not None and is_told else None,
            "remote_job_id": ended["remote_job_id"] if ended is not None and is_told else None,
            "holder_id": job and job["operation_id"],
        }
    ]


def resolve(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/resolve`: nothing is outdated, for nothing else is under way."""
    names = words("operation_id dispatch_id expected_revision event actor reason output_index uri sha256")
    looks = {"mark": _marked, "follow": _followed, "conclude": _concluded, "deliver": _delivered}
    found = []
    for step in listed(p, *names):
        revision, event = looks[p["kind"]](tables, step)
        found.append({"operation_id": step["operation_id"], "is_outdated": False, "revision": revision, "event": event})
    return found


Trace = tuple[int | None, str | None]


def _marked(tables: Tables, step: Row) -> Trace:
    made = tables.dispatches.get(step["dispatch_id"])
    is_there = made is not None and made["operation_id"] == step["operation_id"]
    return (step["expected_revision"] + 1 if is_there else None), None


def _followed(tables: Tables, step: Row) -> Trace:
    told = tables.history.get((step["operation_id"], step["expected_revision"] + 1))
    if told is None or any(told[name] != step[name] for name in ("event", "actor", "reason")):
        return None, None
    return told["revision"], None


def _concluded(tables: Tables, step: Row) -> Trace:
    told = [
        row
        for row in tables.history.of(step["operation_id"])
        if row["dispatch_id"] == step["dispatch_id"]
        and row["actor"] == step["actor"]
        and row["event"] in (step["event"], "remote_id_owned")
    ]
    return (told[-1]["revision"], told[-1]["event"]) if told else (None, None)


def _delivered(tables: Tables, step: Row) -> Trace:
    kept = tables.deliveries.get((step["operation_id"], step["output_index"]))
    operation = tables.operations.get(step["operation_id"])
    if kept is None or operation is None or kept["state"] != "delivered":
        return None, None
    if step["uri"] is None or (kept["uri"], kept["sha256"]) != (step["uri"], step["sha256"]):
        return None, None
    return operation["revision"], None


def find_jobs(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/find_jobs`."""
    names = words("account remote_job_id operation_id dispatch_id role resolved_at resolved_by resolution")
    jobs = [tables.remote_jobs.get((asked["account"], asked["remote_job_id"])) for asked in listed(p, *names[:2])]
    return [{name: job[name] for name in names} for job in jobs if job is not None]


def find_overlaps(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/find_overlaps`."""
    found: list[tuple[UUID, int, Row]] = []
    for made in tables.dispatches:
        operation = tables.operations.get(made["operation_id"])
        if operation is None or operation["tenant_id"] == p["tenant_id"] or made["account"] != p["account"]:
            continue
        is_open = made["outcome"] in ("open", "uncertain") and made["remote_job_id"] is None
        if is_open and made["begun_at"] <= p["until"] and made["quiescent_at"] >= p["since"]:
            own = {name: operation[name] for name in ("operation_id", "tenant_id", "phase")}
            theirs = {name: made[name] for name in ("begun_at", "quiescent_at", "candidate_id")}
            found.append((made["operation_id"], made["number"], {**own, **theirs}))
    return [row for _, _, row in sorted(found, key=lambda each: each[:2])]


def find_resting_outputs(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/find_resting_outputs`."""
    found = []
    for output in tables.deliveries.of(p["operation_id"]):
        lane = tables.outbox.get((p["operation_id"], output["output_index"] + 1))
        is_live = lane is not None and lane["parked_at"] is None
        if output["state"] == "failed" or (output["state"] == "pending" and not is_live):
            found.append({"output_index": output["output_index"]})
    return found


def load_message(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/load_message`."""
    held = tables.outbox.get((p["operation_id"], p["lane"]))
    if held is None:
        return []
    operation = tables.operations.get(p["operation_id"])
    delivery = dispatch = None
    if held["park_reason"] == "delivery_failed":
        delivery = tables.deliveries.get((p["operation_id"], held["lane"] - 1))
    if held["park_reason"] == "uncertain" and operation is not None:
        dispatch = tables.dispatches.get(operation["dispatch_id"])
    names = (
        "operation_id provider account action lane visible_at lease_count leased_by leased_at wait_reason wait_since_at wait_count"
        " parked_at park_reason expected_revision first_leased_at last_leased_at"
    )
    causes = (held["last_error"], delivery and delivery["cause"], dispatch and dispatch["cause"])
    return [
        {
            **{name: held[name] for name in words(names)},
            "tenant_id": operation and operation["tenant_id"],
            "phase": operation and operation["phase"],
            "last_error": next((cause for cause in causes if cause is not None), None),
        }
    ]
