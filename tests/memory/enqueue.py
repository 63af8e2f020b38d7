"""The one way in, as `coatcheck.enqueue_v1` has it: refusals are answers, and the same key is the same operation."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from memory.columns import words
from memory.tables import Row, Tables

Answer = dict[str, Any]

_FIELDS = frozenset(
    words("v tenant_id operation_key provider specification_text estimate unit priority not_before_at dispatch_by_at")
)
_PROVIDER = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_AMOUNT = re.compile(r"[0-9]{1,18}(\.[0-9]{1,12})?")
_WHOLE = re.compile(r"-?[0-9]{1,4}")
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
)


def enqueue(tables: Tables, request: Mapping[str, Any]) -> Answer:
    """An intent with its first message, or the answer that says why not."""
    refusal = _refusal(request)
    if refusal is not None:
        return {"result": "refused", "reason": refusal}
    place = (request["tenant_id"], request["operation_key"])
    stored = _stored(tables, place)
    amount, unit = _money(tables, request)
    purse = tables.allowances.get((place[0], unit))
    if amount is None and stored is None and purse is not None and purse["ceiling"] is not None:
        reason = (
            f"estimate must be given: the tenant has an allowance in {unit}, and the provider has no default estimate"
        )
        return {"result": "refused", "reason": reason}
    specification_hash = hashlib.sha256(request["specification_text"].encode()).digest()
    # an id is drawn whether it is needed or not
    operation_id = tables.new_id()
    if stored is None:
        _insert(tables, request, operation_id=operation_id, specification_hash=specification_hash, money=(amount, unit))
    now_stored = stored or tables.operations.rows[operation_id]
    is_same = now_stored["specification_hash"] == specification_hash and now_stored["provider"] == request["provider"]
    return {
        "result": "created" if stored is None else "existing" if is_same else "key_reused",
        "operation_id": operation_text(OperationId(now_stored["operation_id"])),
        "revision": now_stored["revision"],
        "phase": now_stored["phase"],
        "specification_hash": now_stored["specification_hash"].hex(),
    }


def _stored(tables: Tables, place: tuple[str, str]) -> Row | None:
    for row in tables.operations.rows.values():
        if (row["tenant_id"], row["operation_key"]) == place:
            return row
    return None


def _money(tables: Tables, request: Mapping[str, Any]) -> tuple[Decimal | None, str]:
    """The amount and its unit; a default in one unit says nothing of an amount in another."""
    configured = tables.providers.get(request["provider"]) or {}
    given, unit = request.get("estimate"), request.get("unit")
    estimate = None if given is None else Decimal(str(given))
    if estimate is None and configured and configured["unit"] == (unit or configured["unit"]):
        estimate = configured["default_estimate"]
    return estimate, unit or configured.get("unit") or "credits"


def _insert(
    tables: Tables,
    request: Mapping[str, Any],
    *,
    operation_id: Any,
    specification_hash: bytes,
    money: tuple[Decimal | None, str],
) -> None:
    now = tables.now()
    operation = tables.operations.insert(
        operation_id=operation_id,
        tenant_id=request["tenant_id"],
        operation_key=request["operation_key"],
        provider=request["provider"],
        specification_hash=specification_hash,
        authorised_by=tables.session_user,
        estimate=money[0],
        unit=money[1],
        priority=int(request.get("priority") or 0),
        not_before_at=_instant(request.get("not_before_at")),
        dispatch_by_at=_instant(request.get("dispatch_by_at")),
        created_at=now,
        updated_at=now,
    )
    tables.specifications.insert(operation_id=operation_id, specification_text=request["specification_text"])
    tables.history.insert(
        operation_id=operation_id,
        revision=0,
        event="generation_requested",
        actor=tables.session_user,
        at=now,
        to_phase="prepared",
        to_render_state="none",
        to_delivery_state="not_started",
    )
    _first_message(tables, operation)


def _first_message(tables: Tables, operation: Row) -> None:
    """The message that is due at once, or not before the instant that was asked for."""
    now = tables.now()
    tables.outbox.insert(
        operation_id=operation["operation_id"],
        lane=0,
        action="dispatch",
        provider=operation["provider"],
        expected_revision=0,
        visible_at=now if operation["not_before_at"] is None else max(now, operation["not_before_at"]),
        tenant_id=operation["tenant_id"],
        precedence=-operation["priority"],
        dispatch_by_at=operation["dispatch_by_at"],
        lease_token=tables.next_token(),
    )
    (wake_up,) = tables.wake_ups.rows.values()
    if wake_up["sleeping_until"] > now:
        tables.notify()


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _is_instant(text: str) -> bool:
    try:
        return _INSTANT.fullmatch(text) is not None and _instant(text) is not None
    except ValueError:
        return False


def _is_text(value: object, least: int, most: int) -> bool:
    return isinstance(value, str) and least <= len(value.encode()) <= most


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_amount(value: object) -> bool:
    return (
        not isinstance(value, bool)
        and isinstance(value, int | float | str | Decimal)
        and bool(_AMOUNT.fullmatch(str(value)))
    )


def _refusal(request: Mapping[str, Any]) -> str | None:
    """Why a request cannot be enqueued, in the order in which `coatcheck.enqueue_refusal` looks."""
    unknown = sorted(request.keys() - _FIELDS)
    given = {name: value for name, value in request.items() if value is not None}
    checks = (
        (not unknown, f"unknown field {', '.join(unknown)[:200]}: this is version 1 of the request"),
        (request.get("v") == 1 and not isinstance(request["v"], bool), "v must be the number 1"),
        (_is_text(request.get("tenant_id"), 1, 255), "tenant_id must be a string of 1 to 255 bytes"),
        (_is_text(request.get("operation_key"), 1, 255), "operation_key must be a string of 1 to 255 bytes"),
        (
            _is_text(request.get("provider"), 1, 63) and _PROVIDER.fullmatch(request["provider"]),
            "provider must be a configured name: a lower-case letter, then up to 62 letters, digits or single underscores",
        ),
        (
            _is_text(request.get("specification_text"), 1, 1048576),
            "specification_text must be a JSON string that holds the RFC 8785 text, 1 to 1048576 bytes",
        ),
        (_is_json(str(request.get("specification_text"))), "specification_text must hold a JSON text"),
        (
            "estimate" not in given or _is_amount(given["estimate"]),
            "estimate must be a decimal amount from 0 to below 10^18 with at most 12 decimals",
        ),
        ("unit" not in given or _is_text(given["unit"], 1, 32), "unit must be a string of 1 to 32 bytes"),
        (
            "priority" not in given or (type(given["priority"]) is int and _WHOLE.fullmatch(str(given["priority"]))),
            "priority must be a whole number from -9999 to 9999",
        ),
        *(
            (
                name not in given or (isinstance(given[name], str) and _is_instant(given[name])),
                f"{name} must be an ISO 8601 instant with an offset",
            )
            for name in ("not_before_at", "dispatch_by_at")
        ),
    )
    return next((reason for holds, reason in checks if not holds), None)
