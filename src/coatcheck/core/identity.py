"""The text form of an operation's id: `op_` and the 26 Crockford characters of its 128 bits.

One id has exactly one text of each kind, so that texts can be compared: what does not spell an id canonically is no id at all. The form is
that of a TypeID, which equals a lower-case ULID of the same bits.
"""

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

from ulid import ULID

from coatcheck.core.operation import OperationId

_PREFIX = "op_"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# 26 characters carry 130 bits: a first character above 7 would not fit in 128.
_SUFFIX = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def operation_text(operation_id: OperationId) -> str:
    """The id as people and logs see it, as `operation_text(OperationId(UUID(int=1))) == "op_00000000000000000000000001"`."""
    return _PREFIX + str(ULID.from_uuid(operation_id)).lower()


def made_at(operation_id: OperationId) -> datetime:
    """When the id was made: the first 48 bits of a UUIDv7 count milliseconds from 1970."""
    return _EPOCH + timedelta(milliseconds=operation_id.int >> 80)


def parse_operation_id(text: str) -> OperationId | None:
    """Read `op_…` or the text of a UUID, as `parse_operation_id("op_01m8kq…")`.

    None for everything else: a reader treats a malformed id exactly like an unknown one, so that the answer tells nothing about which ids
    exist.
    """
    if text.startswith(_PREFIX) and _SUFFIX.fullmatch(suffix := text.removeprefix(_PREFIX)):
        return OperationId(ULID.from_str(suffix.upper()).to_uuid())
    if _UUID.fullmatch(text):
        return OperationId(UUID(text))
    return None
