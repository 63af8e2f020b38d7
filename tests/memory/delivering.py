"""`store/deliver`: the end of a batch of deliveries. A delivered output stays, and counters decide the delivery state."""

from collections.abc import Mapping, Sequence
from typing import Any

from memory.columns import words
from memory.lanes import Written, change_lanes, chronicle, lane_changes, lane_locks
from memory.tables import Row, Tables, listed

_NAMES = words("operation_id event output_index result uri sha256 bytes sniffed_type cause")
_RESULTS = {"stored": "delivered", "failed": "failed"}


def deliver(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """Each end comes back applied or stale."""
    steps = [_judged(tables, step, p["worker"]) for step in listed(p, *_NAMES)]
    applied = [step for step in steps if step["applies"]]
    for step in applied:
        told = {name: step[name] for name in ("uri", "sha256", "bytes", "sniffed_type", "cause")}
        key = (step["operation_id"], step["output_index"])
        tables.deliveries.change(key, state=step["to_state"], updated_at=tables.now(), **told)
    written = {step["operation_id"]: _written(tables, step) for step in applied}
    changes = lane_changes(p)
    locks = lane_locks(tables, written)
    change_lanes(tables, written, changes, locks)
    chronicle(tables, written, applied, locks)
    _look(tables, written, changes)
    return [
        {
            "operation_id": step["operation_id"],
            "status": "applied" if step["applies"] else "stale",
            "revision": written[step["operation_id"]]["revision"] if step["applies"] else None,
        }
        for step in steps
    ]


def _judged(tables: Tables, step: Row, worker: str) -> Row:
    operation = tables.operations.get(step["operation_id"])
    output = tables.deliveries.get((step["operation_id"], step["output_index"]))
    if operation is None or output is None:
        return {**step, "applies": False}
    return {
        **step,
        "applies": output["state"] != "delivered"
        and operation["phase"] in ("accepted", "submission_failed")
        and operation["render_state"] == "succeeded",
        "actor": worker,
        "reason": step["cause"],
        "message_lane": step["output_index"] + 1,
        "dispatch_id": operation["dispatch_id"],
        "from_phase": operation["phase"],
        "from_render_state": operation["render_state"],
        "from_delivery_state": operation["delivery_state"],
        "from_state": output["state"],
        "to_state": _RESULTS.get(step["result"], output["state"]),
    }


def _written(tables: Tables, step: Row) -> Row:
    stored = tables.operations.rows[step["operation_id"]]
    delivered = stored["delivered_count"] + (step["to_state"] == "delivered")
    failed = stored["failed_count"] - (step["from_state"] == "failed") + (step["to_state"] == "failed")
    state = "pending"
    if delivered == stored["output_count"]:
        state = "delivered"
    elif delivered + failed == stored["output_count"]:
        state = "failed"
    return tables.operations.change(
        step["operation_id"],
        delivered_count=delivered,
        failed_count=failed,
        delivery_state=state,
        revision=stored["revision"] + 1,
        updated_at=tables.now(),
    )


def _look(tables: Tables, written: Written, changes: Sequence[Row]) -> None:
    """An expired source needs a look; one that is being made right now is left alone."""
    now = tables.now()
    for change in changes:
        operation = written.get(change["operation_id"])
        if change["verb"] != "look" or operation is None:
            continue
        key = (operation["operation_id"], 0)
        held = tables.outbox.get(key)
        if held is None:
            tables.outbox.insert(
                **{name: operation[name] for name in ("operation_id", "provider", "account", "tenant_id")},
                lane=0,
                action="observe",
                expected_revision=operation["revision"],
                expected_remote_job_id=operation["remote_job_id"],
                visible_at=now,
                wait_reason="source_expired",
                wait_since_at=now,
                wait_count=1,
                precedence=-operation["priority"],
                lease_token=tables.next_token(),
            )
        elif held["action"] == "observe" and held["leased_by"] is None and held["parked_at"] is None:
            token, revision = tables.next_token(), operation["revision"]
            tables.outbox.change(key, visible_at=now, lease_token=token, expected_revision=revision)
