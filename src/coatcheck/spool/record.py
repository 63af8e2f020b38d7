"""One line of a spool: the end of one POST, whole or recognised as not whole.

A line carries everything that saving the end takes, and no more: no credential, no reply's body, which may quote what was asked for, and no
first look, which the observer brings again. Its checksum tells a line that a dying host cut or a bad disk bent from one that was written by another version.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any, get_args
from uuid import UUID

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import DispatchId, OperationId
from coatcheck.spool.fitting import fits

VERSION = 2
_REPLIES = {kind.kind: kind for kind in get_args(ev.Reply)}


class Damaged(ValueError):
    """These bytes are not what was written."""


class Foreign(ValueError):
    """A whole line in a form that this version does not know: another version reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The end of a POST. `begun_ago_s` counts from the mark to `kept_at` (wall clock); the exchange has no body.

    `held` is what the mark held, in `unit`, should its row be gone.
    """

    operation_id: OperationId
    reply: ev.Reply
    exchange: Exchange
    account: str
    number: int
    authorisation: int
    authorised_by: str
    settle_s: float
    begun_ago_s: float
    held: Decimal | None
    unit: str | None
    kept_at: datetime

    @property
    def dispatch_id(self) -> DispatchId:
        """Which POST ended."""
        return self.reply.dispatch_id


def written(record: Record) -> bytes:
    """The record as a line with its line feed."""
    end = {each.name: getattr(record, each.name) for each in fields(record)}
    end |= {
        "operation_id": str(record.operation_id),
        "reply": _reply_form(record.reply),
        "exchange": _exchange_form(record.exchange),
        "held": None if record.held is None else str(record.held),
        "kept_at": record.kept_at.isoformat(),
    }
    return _text({"v": VERSION, "sha256": _checksum(end), "end": end}) + b"\n"


def read(line: bytes) -> Record:
    """The record in a line, with or without its line feed. Raises `Damaged` or `Foreign`, which say nothing of the line's content."""
    try:
        form = json.loads(line)
        sound = form["sha256"] == _checksum(form["end"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Damaged("expected a line of JSON") from None
    if not sound:
        raise Damaged("expected a line that fits its checksum")
    try:
        return _record_of(form["v"], form["end"])
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
        raise Foreign(f"expected a line of version {VERSION}") from None


def _record_of(version: object, end: Mapping[str, Any]) -> Record:
    if version != VERSION:
        raise ValueError(version)
    values = dict(end) | {
        "operation_id": OperationId(UUID(end["operation_id"])),
        "reply": _reply_of(end["reply"]),
        "exchange": _exchange_of(end["exchange"]),
        "held": None if end["held"] is None else Decimal(end["held"]),
        "kept_at": datetime.fromisoformat(end["kept_at"]),
    }
    record = Record(**values)
    if not fits(record, Record):
        raise ValueError("a value of another type")
    return record


def _reply_form(reply: ev.Reply) -> dict[str, object]:
    form = {each.name: getattr(reply, each.name) for each in fields(reply) if each.name != "snapshot"}
    return form | {"kind": reply.kind, "dispatch_id": str(reply.dispatch_id)}


def _reply_of(form: Mapping[str, Any]) -> ev.Reply:
    values = {name: value for name, value in form.items() if name != "kind"}
    reply: ev.Reply = _REPLIES[form["kind"]](**values | {"dispatch_id": DispatchId(UUID(form["dispatch_id"]))})
    return reply


def _exchange_form(exchange: Exchange) -> dict[str, object]:
    form = {each.name: getattr(exchange, each.name) for each in fields(exchange)}
    return form | {"body": base64.b64encode(exchange.body).decode()}


def _exchange_of(form: Mapping[str, Any]) -> Exchange:
    values = dict(form) | {
        "stage": Stage(form["stage"]),
        "body": base64.b64decode(form["body"], validate=True),
        "headers": tuple((name, value) for name, value in form["headers"]),
        "marks_ms": tuple((Stage(stage), at) for stage, at in form["marks_ms"]),
    }
    return Exchange(**values)


def _checksum(end: object) -> str:
    return hashlib.sha256(_text(end)).hexdigest()


def _text(form: object) -> bytes:
    """The one way in which a value is written, so that what was read can be written again and compared."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
