"""The CHECK constraints of the migrations, by table: the walls behind the guards of the statements stand here, too."""

from collections.abc import Callable, Mapping
from typing import Any, Final

Row = Mapping[str, Any]

FINAL: Final = ("succeeded", "failed", "moderated", "cancelled", "expired")
_PHASES = (
    "prepared",
    "dispatching",
    "accepted",
    "submission_failed",
    "rejected",
    "uncertain",
    "cancelled",
    "abandoned",
)
_OUTCOMES = ("open", "uncertain", "rejected", "throttled", "not_sent", "proven_absent", "submission_failed", "accepted")


def _length(text: str, least: int, most: int) -> bool:
    return least <= len(text.encode()) <= most


def _remote_job(row: Row) -> bool:
    if row["phase"] in ("accepted", "submission_failed"):
        return row["remote_job_id"] is not None
    return row["phase"] == "abandoned" or row["remote_job_id"] is None


def _delivery(row: Row) -> bool:
    outputs, delivered, failed = row["output_count"], row["delivered_count"], row["failed_count"]
    if outputs == 0:
        due = "not_started"
    elif delivered == outputs:
        due = "delivered"
    else:
        due = "failed" if delivered + failed == outputs else "pending"
    return bool(row["delivery_state"] == due)


def _counters(row: Row) -> bool:
    delivered, failed = row["delivered_count"], row["failed_count"]
    return bool(delivered >= 0 and failed >= 0 and delivered + failed <= row["output_count"])


def _together(*names: str) -> Callable[[Row], bool]:
    return lambda row: len({row[name] is None for name in names}) == 1


def _not_negative(*names: str) -> Callable[[Row], bool]:
    return lambda row: all(row[name] is None or row[name] >= 0 for name in names)


CHECKS: Final[Mapping[str, Mapping[str, Callable[[Row], bool]]]] = {
    "operations": {
        "operations_tenant": lambda row: _length(row["tenant_id"], 1, 255),
        "operations_key_length": lambda row: _length(row["operation_key"], 1, 255),
        "operations_hash": lambda row: len(row["specification_hash"]) == 32,
        "operations_phase": lambda row: row["phase"] in _PHASES,
        "operations_render_state": lambda row: (
            row["render_state"] in ("none", "queued", "rendering", "missing", *FINAL)
        ),
        "operations_remote_job": _remote_job,
        "operations_mark": lambda row: (
            row["phase"] in ("prepared", "cancelled") or (row["dispatch_id"] is not None and row["account"] is not None)
        ),
        "operations_render": lambda row: (
            row["render_state"] == "none" or row["phase"] in ("accepted", "submission_failed", "abandoned")
        ),
        "operations_final": lambda row: (row["final_at"] is not None) == (row["render_state"] in FINAL),
        "operations_delivery": _delivery,
        "operations_counters": _counters,
        "operations_estimate": lambda row: row["estimate"] is None or 0 <= row["estimate"] < 10**18,
        "operations_cancel_answer": lambda row: (
            row["cancel_answer"] is None
            or (row["cancel_answer"] in ("taken", "refused") and row["cancel_requested_at"] is not None)
        ),
    },
    "outbox": {
        "outbox_action": lambda row: row["action"] in ("dispatch", "observe", "reconcile", "deliver"),
        "outbox_lane": lambda row: row["lane"] >= 0 and (row["action"] == "deliver") == (row["lane"] > 0),
        "outbox_parked": _together("parked_at", "park_reason"),
        "outbox_lease": lambda row: (
            (row["leased_by"] is None) == (row["leased_at"] is None)
            and (row["parked_at"] is None or row["leased_by"] is None)
        ),
    },
    "dispatches": {
        "dispatches_outcome": lambda row: row["outcome"] in _OUTCOMES,
        "dispatches_basis": lambda row: row["basis"] in (None, "service", "assumed"),
        "dispatches_settled": _together("settled_at", "charged", "basis"),
        "dispatches_reply": lambda row: row["reply"] is None or len(row["reply"]) <= 4096,
        "dispatches_amounts": _not_negative("held", "charged", "orphaned"),
    },
    "remote_jobs": {
        "remote_jobs_role": lambda row: row["role"] in ("owner", "orphan"),
        "remote_jobs_resolved": _together("resolved_at", "resolved_by", "resolution"),
    },
    "deliveries": {
        "deliveries_state": lambda row: row["state"] in ("pending", "delivered", "failed"),
        "deliveries_delivered": lambda row: (
            (row["state"] == "delivered") == all(row[name] is not None for name in ("uri", "sha256", "bytes"))
        ),
    },
    "incidents": {"incidents_boundary": lambda row: row["boundary"] in ("ours", "network", "theirs")},
    "providers": {
        "providers_estimate": _not_negative("default_estimate"),
        "providers_pause": _together("dispatch_paused_at", "dispatch_pause_reason", "dispatch_paused_by"),
        "providers_doubts": lambda row: (
            row["doubt_count"] >= 0 and (row["doubt_limit"] is None or row["doubt_limit"] > 0)
        ),
    },
    "accounts": {
        "accounts_budgets": lambda row: (
            _not_negative("max_in_flight", "look_floor_s")(row)
            and all(row[name] is None or row[name] > 0 for name in ("dispatches_per_s", "looks_per_s"))
        ),
        "accounts_counts": _not_negative("in_flight_count", "failed_look_count", "failed_probe_count"),
        "accounts_pause": lambda row: (
            _together("observation_paused_at", "observation_pause_reason", "observation_paused_by")(row)
            and (row["observation_probe_at"] is None or row["observation_paused_at"] is not None)
        ),
    },
    "allowances": {
        "allowances_tenant": lambda row: _length(row["tenant_id"], 1, 255),
        "allowances_unit": lambda row: _length(row["unit"], 1, 32),
        "allowances_ceiling": lambda row: row["ceiling"] is None or 0 <= row["ceiling"] < 10**18,
        "allowances_amounts": _not_negative("held", "charged"),
    },
}
