"""An amount of money as people and programs give it: plain decimal digits, by one rule wherever it is said; never a float, never rounded."""

import re
from decimal import Decimal
from typing import Final

from coatcheck.errors import Refused

_AMOUNT: Final = re.compile(r"\d{1,18}(?:\.\d{1,12})?", re.ASCII)
_LIMIT: Final = 10**18
_DIGITS_LIMIT: Final = 64
"""A Decimal of a larger exponent is not even written out."""
_SHOWN: Final = 80


def amount_of(name: str, value: object, *, otherwise: str = "") -> Decimal:
    """The amount, from 0 to below 10^18 with at most 12 decimals: `amount_of("charged", "4.25")`.

    Text is digits with at most one point between them; `otherwise` is a word that would do as well, for the message. Raises `Refused`.
    """
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise Refused(
            f"{name}: expected a Decimal, an int or text, got {type(value).__name__}",
            next="money is decimal: write Decimal('0.1'), not 0.1",
        )
    match = _AMOUNT.fullmatch(_digits(value))
    if match is None:
        alternative = f", or {otherwise}" if otherwise else ""
        raise Refused(
            f"{name}: expected a decimal amount from 0 to below 10^18 with at most 12 decimals{alternative}, got {_shown(value)}",
            next="give an amount as 12.5",
        )
    return Decimal(match[0])


def _digits(value: Decimal | int | str) -> str:
    """The amount's plain digits; of what cannot be one, nothing."""
    match value:
        case Decimal():
            is_plain = value.is_finite() and abs(value.adjusted()) < _DIGITS_LIMIT
            return f"{abs(value) if value == 0 else value:f}" if is_plain else ""
        case int():
            return str(value) if 0 <= value < _LIMIT else ""
        case str():
            return value


def _shown(value: Decimal | int | str) -> str:
    # an int of thousands of digits cannot even be written
    return "another" if isinstance(value, int) else ascii(str(value)[:_SHOWN])
