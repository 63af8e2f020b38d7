"""What every saving statement does to lanes and history, as `parts/lanes.sql` and `parts/chronicle.sql` say it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from memory.tables import Key, Row, Tables, after, listed

Written = Mapping[UUID, Row]
"""The operations that a statement wrote, as they are after it."""


def lane_changes(parameters: Mapping[str, Any]) -> list[Row]:
    """The lane instructions of a batch."""
    names = ("lane_operation_id", "lane", "lane_verb", "lane_action", "lane_delay_s", "lane_reason")
    return [
        {
            "operation_id": row["lane_operation_id"],
            "lane": row["lane"],
            "verb": row["lane_verb"],
            "action": row["lane_action"],
            "delay_s": row["lane_delay_s"],
            "reason": row["lane_reason"],
        }
        for row in listed(parameters, *names)
    ]


def lane_locks(tables: Tables, operation_ids: Iterable[UUID]) -> dict[Key, Row]:
    """The lanes of operations as they are before a statement changes them."""
    wanted = set(operation_ids)
    return {key: row for key, row in tables.outbox.rows.items() if key[0] in wanted}


def change_lanes(tables: Tables, written: Written, changes: Sequence[Row], locks: Mapping[Key, Row]) -> None:
    """Drop, aim or park the lanes of written operations, whoever leases them."""
    for change in changes:
        if change["operation_id"] not in written:
            continue
        match change["verb"]:
            case "drop" | "drop_all":
                _drop(tables, change, locks)
            case "aim" | "park":
                _aim(tables, written[change["operation_id"]], change)
            case _:
                pass


def _drop(tables: Tables, change: Row, locks: Mapping[Key, Row]) -> None:
    for key in locks:
        if key[0] == change["operation_id"] and (change["verb"] == "drop_all" or key[1] == change["lane"]):
            tables.outbox.drop(key)


def _aim(tables: Tables, operation: Row, change: Row) -> None:
    now = tables.now()
    parks = change["verb"] == "park"
    waits = None if parks else change["reason"]
    aimed = {
        "action": change["action"],
        "account": operation["account"],
        "expected_revision": operation["revision"],
        "expected_remote_job_id": operation["remote_job_id"],
        "visible_at": after(now, change["delay_s"] or 0),
        "wait_reason": waits,
        "wait_since_at": None if waits is None else now,
        "wait_count": 0 if waits is None else 1,
        "parked_at": now if parks else None,
        "park_reason": change["reason"] if parks else None,
        "dispatch_by_at": operation["dispatch_by_at"],
        "lease_token": tables.next_token(),
    }
    key = (operation["operation_id"], change["lane"])
    held = tables.outbox.get(key)
    if held is None:
        tables.outbox.insert(
            operation_id=key[0],
            lane=key[1],
            provider=operation["provider"],
            tenant_id=operation["tenant_id"],
            precedence=-operation["priority"],
            **aimed,
        )
        return
    if waits is not None and held["wait_reason"] == waits:
        aimed |= {"wait_since_at": held["wait_since_at"], "wait_count": held["wait_count"] + 1}
    tables.outbox.change(key, lease_count=0, leased_by=None, leased_at=None, last_error=None, **aimed)


def chronicle(tables: Tables, written: Written, judged: Iterable[Row], locks: Mapping[Key, Row]) -> None:
    """One history row for each written revision, with the metadata of the message that led to it."""
    for step in judged:
        operation = written.get(step["operation_id"])
        if operation is None:
            continue
        message = locks.get((step["operation_id"], step["message_lane"]), {})
        tables.history.insert(
            operation_id=operation["operation_id"],
            revision=operation["revision"],
            event=step["event"],
            actor=step["actor"],
            at=tables.now(),
            from_phase=step["from_phase"],
            to_phase=operation["phase"],
            from_render_state=step["from_render_state"],
            to_render_state=operation["render_state"],
            from_delivery_state=step["from_delivery_state"],
            to_delivery_state=operation["delivery_state"],
            reason=step["reason"],
            dispatch_id=step["dispatch_id"],
            action=message.get("action"),
            lease_count=message.get("lease_count"),
            leased_at=message.get("leased_at"),
        )


def count_incident(tables: Tables, operation_id: UUID, kind: str, boundary: str, detail: str) -> None:
    """Write a fault down; one that is there already is counted and keeps its words."""
    now = tables.now()
    held = tables.incidents.get((operation_id, kind))
    if held is None:
        tables.incidents.insert(
            operation_id=operation_id, kind=kind, boundary=boundary, detail=detail, first_at=now, last_at=now
        )
    else:
        tables.incidents.change((operation_id, kind), count=held["count"] + 1, last_at=now)
