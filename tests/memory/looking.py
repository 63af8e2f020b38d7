"""`store/snapshot`: what a batch of looks changed, guarded by the revision and the remote job id; a final state is never replaced."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from memory.accounts import Amount, is_in_flight, move_accounts, move_allowances
from memory.columns import words
from memory.lanes import change_lanes, chronicle, count_incident, lane_changes, lane_locks
from memory.tables import Row, Tables, listed

_NAMES = words(
    "operation_id revision remote_job_id event remote_status render_state settles error_code charged refunded unit"
)
_OUTPUT = words("output_operation_id output_index output_source output_type output_bytes output_sha256")


def snapshot(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """Each look comes back applied or stale."""
    steps = [_judged(tables, step, p["worker"]) for step in listed(p, *_NAMES)]
    applied = [step for step in steps if step["applies"]]
    outputs = listed(p, *_OUTPUT)
    amounts = [amount for step in applied if step["settles"] for amount in _settle(tables, step)]
    move_accounts(tables, [(step["account"], None, _flights(step)) for step in applied])
    move_allowances(tables, amounts)
    for step in applied:
        own = [output for output in outputs if output["output_operation_id"] == step["operation_id"]]
        step["output_count"] = len(own)
        _note_sources(tables, own)
        _keep_look(tables, step)
    written = {step["operation_id"]: _written(tables, step) for step in applied}
    locks = lane_locks(tables, written)
    change_lanes(tables, written, lane_changes(p), locks)
    chronicle(tables, written, applied, locks)
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
    if operation is None:
        return {**step, "applies": False}
    return {
        **step,
        "applies": operation["revision"] == step["revision"]
        and operation["remote_job_id"] == step["remote_job_id"] is not None
        and operation["phase"] in ("accepted", "submission_failed")
        and (operation["final_at"] is None or operation["render_state"] == step["render_state"]),
        "actor": worker,
        "reason": step["error_code"],
        "message_lane": 0,
        "was_final": operation["final_at"] is not None,
        "from_phase": operation["phase"],
        "from_render_state": operation["render_state"],
        "from_delivery_state": operation["delivery_state"],
        **{name: operation[name] for name in ("dispatch_id", "tenant_id", "account")},
    }


def _flights(step: Row) -> int:
    return is_in_flight(step["from_phase"], step["render_state"]) - is_in_flight(
        step["from_phase"], step["from_render_state"]
    )


def _settle(tables: Tables, step: Row) -> list[Amount]:
    """The service's figure, else what was held, as assumed; a later figure replaces either."""
    kept = tables.dispatches.get(step["dispatch_id"])
    if kept is None:
        return []
    figure = None if step["charged"] is None else max(Decimal(0), step["charged"] - (step["refunded"] or 0))
    in_our_unit = step["unit"] in (None, kept["unit"])
    if figure is not None and in_our_unit:
        charged, basis = figure + kept["orphaned"], "service"
    else:
        charged = kept["held"] + kept["orphaned"] if kept["charged"] is None else kept["charged"]
        basis = kept["basis"] or "assumed"
    if figure is not None and not in_our_unit:
        detail = "the service charged in another unit than was held"
        count_incident(tables, step["operation_id"], "unit_differs", "theirs", detail)
    tables.dispatches.change(
        step["dispatch_id"], charged=charged, basis=basis, settled_at=kept["settled_at"] or tables.now()
    )
    held = -kept["held"] if kept["settled_at"] is None else 0
    return [(step["tenant_id"], kept["unit"], held, charged - (kept["charged"] or 0))]


def _note_sources(tables: Tables, outputs: Sequence[Row]) -> None:
    for output in outputs:
        key = (output["output_operation_id"], output["output_index"])
        held = tables.deliveries.get(key)
        if held is None:
            tables.deliveries.insert(
                operation_id=key[0],
                output_index=key[1],
                source=output["output_source"],
                declared_type=output["output_type"],
                declared_bytes=output["output_bytes"],
                declared_sha256=output["output_sha256"],
                updated_at=tables.now(),
            )
        elif held["state"] != "delivered":
            tables.deliveries.change(key, source=output["output_source"], updated_at=tables.now())


def _keep_look(tables: Tables, step: Row) -> None:
    names = ("error_code", "charged", "refunded", "unit")
    told = {name: step[name] for name in names}
    held = tables.snapshots.get(step["operation_id"])
    if held is None:
        tables.snapshots.insert(
            operation_id=step["operation_id"],
            remote_job_id=step["remote_job_id"],
            remote_status=step["remote_status"],
            seen_at=tables.now(),
            **told,
        )
        return
    tables.snapshots.change(
        step["operation_id"],
        remote_status=step["remote_status"],
        seen_at=tables.now(),
        **{name: held[name] if told[name] is None else told[name] for name in names},
    )


def _written(tables: Tables, step: Row) -> Row:
    stored = tables.operations.rows[step["operation_id"]]
    count = step["output_count"]
    return tables.operations.change(
        step["operation_id"],
        render_state=step["render_state"],
        remote_status=step["remote_status"],
        output_count=stored["output_count"] if step["was_final"] else count,
        delivery_state=stored["delivery_state"] if step["was_final"] or not count else "pending",
        final_at=(stored["final_at"] or tables.now()) if step["settles"] else None,
        revision=stored["revision"] + 1,
        updated_at=tables.now(),
    )
