"""Money as people type and read it: decimal digits in and the same digits out, never a float and never rounded."""

from decimal import Decimal

from coatcheck.core.amounts import amount_of
from coatcheck.errors import Refused

_UNIT_BYTES = 32
_NAME_BYTES = 255
NONE = "none"


def amount_or_none(name: str, text: str) -> Decimal | None:
    """An amount from 0 to below 10^18 with at most 12 decimals, or None for the word none. Raises `Refused`.

    Example: `amount_or_none("AMOUNT", "12.5")`.
    """
    if text == NONE:
        return None
    return amount_of(name, text, otherwise=NONE)


def unit_of(name: str, text: str) -> str:
    """A unit as operations carry it: 1 to 32 bytes that print, no space around them. Raises `Refused`."""
    return _word(name, text, _UNIT_BYTES, "give the unit that the operations have, such as credits")


def tenant_of(name: str, text: str) -> str:
    """A tenant: 1 to 255 bytes without NUL. Raises `Refused`."""
    if not 1 <= _size(name, text) <= _NAME_BYTES or "\0" in text:
        raise Refused(
            f"{name}: expected 1 to {_NAME_BYTES} bytes without NUL, got {_size(name, text)} bytes",
            next="give the tenant as it is enqueued",
        )
    return text


def exact(amount: Decimal | None) -> str | None:
    """The amount's own digits: `exact(Decimal("10.50"))` is 10.50."""
    return None if amount is None else f"{amount:f}"


def _word(name: str, text: str, limit_bytes: int, remedy: str) -> str:
    if not 1 <= _size(name, text) <= limit_bytes or not text.isprintable() or text != text.strip():
        raise Refused(
            f"{name}: expected 1 to {limit_bytes} bytes that print, without a space around them, got {text!a}",
            next=remedy,
        )
    return text


def _size(name: str, text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Refused(
            f"{name}: expected UTF-8, got other bytes", next="type it in a terminal whose encoding is UTF-8"
        ) from None
