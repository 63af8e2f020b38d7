"""What columns there are, with their defaults: `REQUIRED` has none, None is null, and all else is what a new row begins with.

The contract suite compares whole rows with the migrated tables, so a column that is missing here, or gone there, is found.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

REQUIRED: Final = object()
"""Stands for the default of a column that must be given."""

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "operations": ("operation_id",),
    "specifications": ("operation_id",),
    "outbox": ("operation_id", "lane"),
    "dispatches": ("dispatch_id",),
    "remote_jobs": ("account", "remote_job_id"),
    "snapshots": ("operation_id",),
    "deliveries": ("operation_id", "output_index"),
    "history": ("operation_id", "revision"),
    "incidents": ("operation_id", "kind"),
    "providers": ("name",),
    "accounts": ("account",),
    "allowances": ("tenant_id", "unit"),
    "workers": ("incarnation",),
    "wake_ups": ("only_row",),
    "installation": ("only_row",),
}


def words(text: str) -> tuple[str, ...]:
    """The names in a text, as `words("operation_id lane")`."""
    return tuple(text.split())


def _required(names: str) -> dict[str, Any]:
    return dict.fromkeys(words(names), REQUIRED)


def _null(names: str) -> dict[str, Any]:
    return dict.fromkeys(words(names))


COLUMNS: Final[Mapping[str, Mapping[str, Any]]] = {
    "operations": {
        **_required(
            "operation_id tenant_id operation_key provider specification_hash authorised_by created_at updated_at"
        ),
        **_null("account dispatch_id remote_status remote_job_id estimate not_before_at dispatch_by_at observe_by_at"),
        **_null("cancel_requested_at cancel_answer accepted_at final_at"),
        "phase": "prepared",
        "render_state": "none",
        "delivery_state": "not_started",
        "unit": "credits",
        "authorisation": 1,
        "revision": 0,
        "priority": 0,
        **dict.fromkeys(("dispatch_count", "output_count", "delivered_count", "failed_count"), 0),
    },
    "specifications": _required("operation_id specification_text"),
    "outbox": {
        **_required("operation_id lane action provider expected_revision visible_at lease_token"),
        **_null("account expected_remote_job_id leased_by leased_at wait_reason wait_since_at parked_at park_reason"),
        **_null("last_error first_leased_at last_leased_at dispatch_by_at"),
        "schema_version": 1,
        "lease_count": 0,
        "wait_count": 0,
        "tenant_id": "",
        "precedence": 0,
    },
    "dispatches": {
        **_required(
            "dispatch_id operation_id number authorisation authorised_by account worker begun_at send_by_at quiescent_at"
        ),
        **_null(
            "ended_at marks_ms cause http_status remote_job_id reply charged basis settled_at request_ids candidate_id"
        ),
        "stage": "marked",
        "bytes_sent": 0,
        "bytes_received": 0,
        "outcome": "open",
        "displaced": False,
        "held": 0,
        "unit": "credits",
        "orphaned": 0,
    },
    "remote_jobs": {
        **_required("account remote_job_id operation_id role seen_at"),
        **_null("dispatch_id resolved_at resolved_by resolution"),
    },
    "snapshots": {
        **_required("operation_id remote_job_id remote_status seen_at"),
        **_null("error_code charged refunded unit"),
        "outputs": (),
    },
    "deliveries": {
        **_required("operation_id output_index source updated_at"),
        **_null("declared_type declared_bytes declared_sha256 uri sha256 bytes sniffed_type cause"),
        "state": "pending",
    },
    "history": {
        **_required("operation_id revision event actor at to_phase to_render_state to_delivery_state"),
        **_null("from_phase from_render_state from_delivery_state reason dispatch_id action lease_count leased_at"),
    },
    "incidents": {**_required("operation_id kind boundary detail first_at last_at"), "count": 1},
    "providers": {
        **_required("name account kind"),
        **_null("default_estimate dispatch_paused_at dispatch_pause_reason dispatch_paused_by"),
        **_null("dispatch_resumed_at dispatch_resume_reason dispatch_resumed_by"),
        "unit": "credits",
        "forbidden_count": 0,
        "doubt_count": 0,
        "doubt_limit": 20,
    },
    "accounts": {
        **_required("account"),
        **_null(
            "max_in_flight dispatches_per_s dispatch_turn_at dispatch_shut_until looks_per_s look_turn_at look_shut_until"
        ),
        **_null(
            "look_floor_s observation_paused_at observation_pause_reason observation_paused_by observation_probe_at"
        ),
        **_null("observation_resumed_at observation_resume_reason observation_resumed_by"),
        **dict.fromkeys(("in_flight_count", "failed_look_count", "failed_probe_count"), 0),
    },
    "allowances": {**_required("tenant_id unit set_by updated_at"), "ceiling": None, "held": 0, "charged": 0},
    "workers": {
        **_required("incarnation version roles started_at seen_at"),
        "stopped_at": None,
        "stale": (),
        "lease_renewal_failures_count": 0,
        "action_ms": (),
    },
    "wake_ups": {"only_row": True, "sleeping_until": REQUIRED},
    "installation": {
        "only_row": True,
        "installation_id": REQUIRED,
        **_null("system_identifier timeline made_as changed_at restored_at restored_reason"),
    },
}
NULLABLE: Final = frozenset({"doubt_limit"})
"""Columns that have a default and may be null all the same."""

Among = Callable[[Mapping[str, Any]], bool]
UNIQUE: Final[Mapping[str, Mapping[str, tuple[tuple[str, ...], Among]]]] = {
    "operations": {"operations_key": (("tenant_id", "operation_key"), lambda row: True)},
    "dispatches": {
        "dispatches_number": (("operation_id", "number"), lambda row: True),
        # money is spent at most once per authorisation
        "dispatches_authorisation_idx": (
            ("operation_id", "authorisation"),
            lambda row: row["outcome"] not in ("not_sent", "throttled", "proven_absent") and not row["displaced"],
        ),
    },
}
"""Unique constraints besides the primary keys, each with the rows among which it holds."""
