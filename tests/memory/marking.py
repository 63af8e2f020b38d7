"""`store/mark`: commit "may be sent from now on" for a batch, or say of each what it has no leave for yet."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from memory.accounts import move_allowances, token_in_s, tokens
from memory.lanes import chronicle, lane_locks
from memory.tables import Row, Tables, after, later, listed

_WAITS = {"paused": "pause", "allowance": "allowance", "cap": "cap", "rate": "rate"}


def mark(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """Each step of the batch comes back applied, stale or waiting."""
    names = ("operation_id", "revision", "dispatch_id", "account", "send_s", "quiescent_s", "lease_s", "pause_s")
    steps = [_standing(tables, step, p["worker"]) for step in listed(p, *names)]
    _afford(tables, steps)
    _budget(tables, steps)
    applied = [step for step in steps if step["status"] == "applied"]
    _spend(tables, applied)
    move_allowances(tables, [(step["tenant_id"], step["unit"], step["amount"] or 0, 0) for step in applied])
    locks = lane_locks(tables, [step["operation_id"] for step in steps])
    written = {step["operation_id"]: _written(tables, step) for step in applied}
    for step in applied:
        _dispatch(tables, step, written[step["operation_id"]])
    chronicle(tables, written, applied, {key: row for key, row in locks.items() if key[1] == 0})
    lease_tokens = {step["operation_id"]: _take(tables, step, written[step["operation_id"]]) for step in applied}
    for step in steps:
        if step["status"] in _WAITS:
            _wait(tables, step)
    return [
        {
            "operation_id": step["operation_id"],
            "status": step["status"],
            "revision": written[step["operation_id"]]["revision"] if step["operation_id"] in written else None,
            "lease_token": lease_tokens.get(step["operation_id"]),
            "held": step["amount"] or Decimal(0),
            "unit": step["unit"],
        }
        for step in steps
    ]


def _standing(tables: Tables, step: Row, worker: str) -> Row:
    """The step with what it finds: whether it may be applied as far as the operation and the pauses go."""
    operation = tables.operations.get(step["operation_id"])
    if operation is None:
        return {**step, "status": "stale", "amount": None, "tenant_id": None, "unit": None, "actor": worker}
    return {
        **step,
        "status": _status(tables, step, operation),
        "amount": _amount(tables, operation),
        "tenant_id": operation["tenant_id"],
        "unit": operation["unit"],
        "event": "dispatch_marked",
        "actor": worker,
        "reason": None,
        "message_lane": 0,
        "from_phase": operation["phase"],
        "from_render_state": operation["render_state"],
        "from_delivery_state": operation["delivery_state"],
    }


def _status(tables: Tables, step: Row, operation: Row) -> str:
    now = tables.now()
    if operation["phase"] != "prepared" or operation["revision"] != step["revision"]:
        return "stale"
    if operation["cancel_requested_at"] is not None or _is_past(operation["dispatch_by_at"], now):
        return "stale"
    if operation["not_before_at"] is not None and operation["not_before_at"] > now:
        return "stale"
    names = [
        row for row in tables.providers if row["name"] == operation["provider"] or row["account"] == step["account"]
    ]
    is_paused = any(row["dispatch_paused_at"] is not None for row in names)
    return "paused" if is_paused or is_astray(tables) else "applied"


def is_astray(tables: Tables) -> bool:
    """Whether the database is not where the last marks were made, and nobody noticed yet."""
    (held,) = tables.installation.rows.values()
    return (held["system_identifier"], held["timeline"], held["made_as"]) != tables.place


def _is_past(instant: datetime | None, now: datetime) -> bool:
    return instant is not None and instant <= now


def _amount(tables: Tables, operation: Row) -> Decimal | None:
    estimate: Decimal | None = operation["estimate"]
    if estimate is not None:
        return estimate
    configured = tables.providers.get(operation["provider"])
    if configured is None or configured["unit"] != operation["unit"]:
        return None
    default: Decimal | None = configured["default_estimate"]
    return default


def _afford(tables: Tables, steps: Sequence[Row]) -> None:
    """In their order, until the first that does not fit: what is small does not for ever pass what is large."""
    wanted: dict[tuple[str, str], Decimal] = {}
    for step in steps:
        if step["status"] != "applied":
            continue
        place = (step["tenant_id"], step["unit"])
        wanted[place] = wanted.get(place, Decimal(0)) + (step["amount"] or 0)
        purse = tables.allowances.get(place)
        if purse is None or purse["ceiling"] is None:
            continue
        if step["amount"] is None or wanted[place] > purse["ceiling"] - purse["held"] - purse["charged"]:
            step["status"] = "allowance"


def _budget(tables: Tables, steps: Sequence[Row]) -> None:
    """The first ones, as many as may be in flight and as the rate allows at this instant."""
    now = tables.now()
    numbers: Counter[tuple[str, str]] = Counter()
    for step in steps:
        # counted among those that stood alike before: who is refused a place does not give it on
        numbers[step["account"], step["status"]] += 1
        number = numbers[step["account"], step["status"]]
        budget = tables.accounts.get(step["account"])
        if budget is None:
            continue
        rate = (budget["dispatches_per_s"], budget["dispatch_turn_at"], budget["dispatch_shut_until"], now)
        step["token_in_s"] = token_in_s(*rate, number)
        if step["status"] != "applied":
            continue
        free = budget["max_in_flight"]
        leave = tokens(*rate)
        if free is not None and number > free - budget["in_flight_count"]:
            step["status"] = "cap"
        elif leave is not None and number > leave:
            step["status"] = "rate"


def _spend(tables: Tables, applied: Sequence[Row]) -> None:
    for account, count in Counter(step["account"] for step in applied).items():
        kept = tables.accounts.get(account)
        if kept is None:
            continue
        turn_at = kept["dispatch_turn_at"]
        if kept["dispatches_per_s"] is not None:
            turn_at = after(later(turn_at, tables.now()) or tables.now(), count / kept["dispatches_per_s"])
        counted = 0 if kept["max_in_flight"] is None else count
        tables.accounts.change(account, in_flight_count=kept["in_flight_count"] + counted, dispatch_turn_at=turn_at)


def _written(tables: Tables, step: Row) -> Row:
    stored = tables.operations.rows[step["operation_id"]]
    return tables.operations.change(
        step["operation_id"],
        phase="dispatching",
        dispatch_id=step["dispatch_id"],
        dispatch_count=stored["dispatch_count"] + 1,
        account=step["account"],
        revision=stored["revision"] + 1,
        updated_at=tables.now(),
    )


def _dispatch(tables: Tables, step: Row, operation: Row) -> None:
    now = tables.now()
    tables.dispatches.insert(
        dispatch_id=step["dispatch_id"],
        operation_id=operation["operation_id"],
        number=operation["dispatch_count"],
        authorisation=operation["authorisation"],
        authorised_by=operation["authorised_by"],
        account=operation["account"],
        worker=step["actor"],
        begun_at=now,
        send_by_at=after(now, step["send_s"]),
        quiescent_at=after(now, step["quiescent_s"]),
        held=step["amount"] or Decimal(0),
        unit=operation["unit"],
    )


def _take(tables: Tables, step: Row, operation: Row) -> int:
    """Where this lease ends, doubt begins: the lane is aimed at reconciliation."""
    now, lease_token = tables.now(), tables.next_token()
    taken = {
        "action": "reconcile",
        "account": operation["account"],
        "expected_revision": operation["revision"],
        "visible_at": after(now, step["lease_s"]),
        "leased_by": step["actor"],
        "leased_at": now,
        "lease_token": lease_token,
    }
    key = (operation["operation_id"], 0)
    if tables.outbox.get(key) is None:
        named = {name: operation[name] for name in ("operation_id", "provider", "tenant_id")}
        tables.outbox.insert(lane=0, precedence=-operation["priority"], **named, **taken)
    else:
        tables.outbox.change(key, lease_count=0, parked_at=None, park_reason=None, **taken)
    return lease_token


def _wait(tables: Tables, step: Row) -> None:
    """A mark without leave: its lane waits, unleased, if it still is a dispatch."""
    key = (step["operation_id"], 0)
    held = tables.outbox.get(key)
    if held is None or held["action"] != "dispatch":
        return
    reason = _WAITS[step["status"]]
    goes_on = held["wait_reason"] == reason
    delay_s = step["pause_s"]
    if reason == "rate":
        delay_s = step["token_in_s"]
    elif reason == "cap":
        delay_s = step["pause_s"] / 5
    elif goes_on:
        delay_s = step["pause_s"] * min(1 + held["wait_count"], 4)
    tables.outbox.change(
        key,
        visible_at=after(tables.now(), delay_s),
        lease_token=tables.next_token(),
        lease_count=0,
        leased_by=None,
        leased_at=None,
        wait_reason=reason,
        wait_since_at=held["wait_since_at"] if goes_on else tables.now(),
        wait_count=held["wait_count"] + 1 if goes_on else 1,
    )
