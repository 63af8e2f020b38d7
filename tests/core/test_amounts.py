"""An amount is plain decimal digits, by one rule for everybody who says one."""

from decimal import Decimal

import pytest

from coatcheck.cli.amounts import amount_or_none
from coatcheck.core.amounts import amount_of
from coatcheck.errors import Refused

WRONG = (
    *(
        "",
        " ",
        "1_000",
        "\u0661",
        " 5 ",
        "5\n",
        "1e3",
        "+5",
        "-0",
        "-1",
        ".5",
        "5.",
        "0x5",
        "NaN",
        "Infinity",
        "1,5",
        "1" * 19,
    ),
    "0." + "1" * 13,
    *(-1, 10**18, 10**5000, True, 0.1, None, b"5"),
    *(Decimal("-0.01"), Decimal("NaN"), Decimal("Infinity"), Decimal("1E-13"), Decimal("1E+18"), Decimal("1E+999999")),
)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("5", "5"),
        ("007", "7"),
        ("12.50", "12.50"),
        ("9" * 18 + "." + "9" * 12, "9" * 18 + "." + "9" * 12),
        (0, "0"),
        (10**18 - 1, "9" * 18),
        (Decimal("-0"), "0"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-12"), "0.000000000001"),
    ],
)
def test_an_amount_keeps_its_digits(value: object, amount: str) -> None:
    assert f"{amount_of('charged', value):f}" == amount


@pytest.mark.parametrize("value", WRONG, ids=lambda value: ascii(value)[:20] if value != 10**5000 else "huge")
def test_what_is_no_plain_amount_is_refused_by_name(value: object) -> None:
    with pytest.raises(Refused, match=r"^charged: expected "):
        amount_of("charged", value)


@pytest.mark.parametrize("text", [each for each in WRONG if isinstance(each, str)], ids=ascii)
def test_commands_refuse_the_same(text: str) -> None:
    with pytest.raises(Refused, match="or none"):
        amount_or_none("--estimate", text)
    assert amount_or_none("--estimate", "none") is None
