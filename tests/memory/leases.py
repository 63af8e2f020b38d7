"""What holds, ends or counts leases: every guard names the token and the holder, so a lease that was lost writes nothing."""

from collections.abc import Mapping
from typing import Any

from memory.tables import Key, Row, Tables, after, listed, seconds


def _mine(tables: Tables, p: Mapping[str, Any], *names: str) -> list[tuple[Key, Row, Row]]:
    """The rows of the batch that the worker still holds, in the order of their keys."""
    found = []
    for item in listed(p, "operation_id", "lane", "lease_token", *names):
        key = (item["operation_id"], item["lane"])
        held = tables.outbox.get(key)
        if held is not None and held["lease_token"] == item["lease_token"] and held["leased_by"] == p["worker"]:
            found.append((key, held, item))
    return sorted(found, key=lambda each: each[0])


def _slots(found: list[tuple[Key, Row, Row]]) -> list[Row]:
    return [{"operation_id": key[0], "lane": key[1]} for key, _, _ in found]


def renew(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/renew`."""
    found = _mine(tables, p, "lease_s")
    for key, _, item in found:
        tables.outbox.change(key, visible_at=after(tables.now(), item["lease_s"]))
    return _slots(found)


def acknowledge(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/acknowledge`."""
    found = _mine(tables, p)
    for key, _, _ in found:
        tables.outbox.drop(key)
    return _slots(found)


def park(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/park`."""
    found = _mine(tables, p, "reason")
    for key, held, item in found:
        # the lease that only sets it aside is none of those that ended badly
        count = held["lease_count"] - (item["reason"] == "lease_count")
        tables.outbox.change(
            key,
            parked_at=tables.now(),
            park_reason=item["reason"],
            lease_count=count,
            leased_by=None,
            leased_at=None,
        )
    return _slots(found)


def release(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/release`."""
    found = _mine(tables, p, "delay_s", "reason", "forgives", "error")
    for key, held, item in found:
        error = held["last_error"] if item["error"] is None else item["error"]
        tables.outbox.change(
            key,
            visible_at=after(tables.now(), item["delay_s"]),
            lease_count=0 if item["forgives"] else held["lease_count"],
            last_error=None if item["forgives"] else error,
            leased_by=None,
            leased_at=None,
            **_waits(tables, held, item["reason"]),
        )
    return _slots(found)


def _waits(tables: Tables, held: Row, reason: str | None) -> Row:
    """A run of one wait reason counts up from its beginning; without a reason it stays as it was."""
    if reason is None:
        return {}
    if held["wait_reason"] == reason:
        return {"wait_count": held["wait_count"] + 1}
    return {"wait_reason": reason, "wait_since_at": tables.now(), "wait_count": 1}


def retry_waiting(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/retry_waiting`."""
    for row in tables.outbox:
        is_idle = row["parked_at"] is None and row["leased_by"] is None
        if is_idle and row["wait_reason"] in ("allowance", "pause") and row["provider"] in p["provider"]:
            tables.outbox.change(tables.outbox.key(row), visible_at=tables.now())
    return []


def sleep(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/sleep`."""
    until = after(tables.now(), p["sleep_s"])
    (held,) = tables.wake_ups.rows.values()
    if held["sleeping_until"] < until:
        tables.wake_ups.change(True, sleeping_until=until)
    return []


def suspects(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/suspects`."""
    wanted = listed(p, "action", "provider", "account")
    found = any(is_suspect(tables, row, want, p["schema_version"]) for want in wanted for row in tables.outbox)
    return [{"has_suspects": found}]


def is_suspect(tables: Tables, row: Row, want: Row, schema_versions: list[int]) -> bool:
    """Whether a message of a wanted kind is due whose leases kept ending without a word."""
    return (
        row["leased_by"] is not None
        and row["lease_count"] >= 2
        and row["provider"] == want["provider"]
        and row["action"] == want["action"]
        and row["parked_at"] is None
        and row["visible_at"] <= tables.now()
        and row["account"] in (None, want["account"])
        and row["schema_version"] in schema_versions
    )


def left(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`queue/left`."""
    now = tables.now()
    busy, waiting = [], 0
    for pair in listed(p, "provider", "account"):
        for row in tables.outbox:
            if not _counts(row, pair, p):
                continue
            is_leased = row["leased_by"] is not None and row["visible_at"] > now
            if _waits_for_leave(tables, row, pair["account"]) and not is_leased:
                waiting += 1
            else:
                busy.append(row["visible_at"])
    next_s = seconds(min(busy) - now) if busy else None
    return [{"left_count": len(busy), "waiting_count": waiting, "next_s": next_s}]


def _counts(row: Row, pair: Row, p: Mapping[str, Any]) -> bool:
    if row["provider"] != pair["provider"] or row["account"] not in (None, pair["account"]):
        return False
    if (
        row["parked_at"] is not None
        or row["wait_reason"] == "accounting"
        or row["schema_version"] not in p["schema_version"]
    ):
        return False
    return row["action"] in p["action"] or (row["action"] == "reconcile" and row["wait_reason"] != "lookup")


def _waits_for_leave(tables: Tables, row: Row, account: str) -> bool:
    budget = tables.accounts.get(account)
    is_unwatched = budget is not None and budget["observation_paused_at"] is not None
    match row["action"]:
        case "dispatch":
            is_later = row["wait_reason"] in ("allowance", "pause") and row["visible_at"] > tables.now()
            return is_later or _is_full_and_paused(tables, budget)
        case "observe":
            return is_unwatched
        case "reconcile":
            return is_unwatched and row["wait_reason"] == "lookup"
        case _:
            return False


def _is_full_and_paused(tables: Tables, budget: Row | None) -> bool:
    if budget is None or budget["max_in_flight"] is None or budget["in_flight_count"] < budget["max_in_flight"]:
        return False
    return any(
        row["account"] == budget["account"] and row["dispatch_paused_at"] is not None for row in tables.providers
    )
