"""What is asked of `coatcheck.enqueue_v1`, checked before the database sees it and never shown: it carries the specification."""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypedDict

from coatcheck.config.names import PROVIDER_NAME
from coatcheck.core.amounts import amount_of
from coatcheck.core.fingerprint import Fingerprint, fingerprint
from coatcheck.core.operation import TenantId
from coatcheck.errors import Refused

NAME_LIMIT_BYTES = 255
UNIT_LIMIT_BYTES = 32
PRIORITY_LIMIT = 9999
_PROVIDER = re.compile(PROVIDER_NAME, re.ASCII)


class Unshown(str):
    """Text whose repr says nothing: libraries repeat a statement's parameters in their logs and errors by repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'(not shown)'"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueRequest:
    """One checked request; `text` is the JSON that `enqueue_v1` takes, version 1."""

    tenant_id: TenantId
    operation_key: str
    provider: str
    specification_hash: str
    text: Unshown = field(repr=False)


class Wishes(TypedDict, total=False):
    """What may be said beside the intent. `unit` is the estimate's, `priority` is kept and not looked at yet; instants need an offset."""

    unit: str | None
    priority: int | None
    not_before_at: datetime | None
    dispatch_by_at: datetime | None


def prepare(
    *,
    tenant_id: str,
    key: str,
    provider: str,
    specification: object,
    estimate: Decimal | int | str | None = None,
    unit: str | None = None,
    priority: int | None = None,
    not_before_at: datetime | None = None,
    dispatch_by_at: datetime | None = None,
) -> EnqueueRequest:
    """Check and write down a request, as `prepare(tenant_id="t1", key="order-7", provider="genace", specification={"prompt": "…"})`.

    `estimate` is an amount of money: `Decimal`, int or text, never a float. Instants need an offset. `specification` is whatever
    `core.fingerprint` takes, or a `Fingerprint`. Raises `SpecificationInvalid` and `Refused`.
    """
    found = specification if isinstance(specification, Fingerprint) else fingerprint(specification)
    fields = {
        "v": 1,
        "tenant_id": _name("tenant_id", tenant_id, NAME_LIMIT_BYTES),
        "operation_key": _name("key", key, NAME_LIMIT_BYTES),
        "provider": _provider(provider),
        "specification_text": found.text,
        "estimate": None if estimate is None else f"{amount_of('estimate', estimate):f}",
        "unit": None if unit is None else _name("unit", unit, UNIT_LIMIT_BYTES),
        "priority": None if priority is None else _priority(priority),
        "not_before_at": None if not_before_at is None else _instant("not_before_at", not_before_at),
        "dispatch_by_at": None if dispatch_by_at is None else _instant("dispatch_by_at", dispatch_by_at),
    }
    # ASCII, so that the encoding of a borrowed connection does not matter.
    text = json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=True)
    return EnqueueRequest(
        tenant_id=TenantId(tenant_id),
        operation_key=key,
        provider=provider,
        specification_hash=found.sha256_hex,
        text=Unshown(text),
    )


def _name(what: str, text: object, limit_bytes: int) -> str:
    if not isinstance(text, str):
        raise Refused(f"{what}: expected text, got {type(text).__name__}", next=f"give {what} as a str")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Refused(
            f"{what}: expected Unicode text, got a lone surrogate", next="decode it from the encoding that it came in"
        ) from None
    if not 1 <= size <= limit_bytes:
        raise Refused(
            f"{what}: expected 1 to {limit_bytes} bytes of UTF-8, got {size}",
            next="give one that is not empty" if size == 0 else "give a shorter one, such as an id or a hash",
        )
    if "\0" in text:
        raise Refused(
            f"{what}: expected text without NUL, which PostgreSQL cannot keep, got one", next="take it out or escape it"
        )
    return str.__str__(text)


def _provider(name: object) -> str:
    if not isinstance(name, str) or _PROVIDER.fullmatch(name) is None:
        raise Refused(
            "provider: expected a configured name, a lower-case letter and up to 62 letters, digits or single underscores, got something else",
            next="give the name that the workers' settings have: genace for COATCHECK_PROVIDERS__GENACE__…",
        )
    return str.__str__(name)


def _priority(priority: object) -> int:
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > PRIORITY_LIMIT:
        raise Refused(
            f"priority: expected a whole number from -{PRIORITY_LIMIT} to {PRIORITY_LIMIT}, got something else",
            next="give a number in that range, or none",
        )
    return int(priority)


def _instant(what: str, instant: object) -> str:
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        raise Refused(f"{what}: expected a datetime with an offset, got something else", next="datetime(…, tzinfo=UTC)")
    try:
        return instant.astimezone(UTC).isoformat()
    except OverflowError:
        raise Refused(
            f"{what}: expected an instant between the years 1 and 9999 in UTC, got another",
            next="leave it out where there is no such instant",
        ) from None
