"""A request is checked before the database sees it, by the same limits, and is never shown."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import postgres
from coatcheck.core.fingerprint import fingerprint
from coatcheck.enqueue import EnqueueRequest, enqueue_sync, prepare
from coatcheck.errors import Refused, SpecificationInvalid


def prepared(**changes: Any) -> EnqueueRequest:
    return prepare(
        **{"tenant_id": "ada", "key": "order-7", "provider": "genace", "specification": {"prompt": "s3cret"}, **changes}
    )


def test_the_request_is_what_the_contract_says() -> None:
    full = prepared(
        estimate=Decimal("1.50"),
        unit="credits",
        priority=-3,
        not_before_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))),
        dispatch_by_at=datetime(2027, 1, 1, tzinfo=UTC),
    )
    assert json.loads(full.text) == {
        "v": 1,
        "tenant_id": "ada",
        "operation_key": "order-7",
        "provider": "genace",
        "specification_text": '{"prompt":"s3cret"}',
        "estimate": "1.50",
        "unit": "credits",
        "priority": -3,
        "not_before_at": "2026-01-02T01:04:05+00:00",
        "dispatch_by_at": "2027-01-01T00:00:00+00:00",
    }
    assert set(json.loads(prepared().text)) == {"v", "tenant_id", "operation_key", "provider", "specification_text"}


def test_a_fingerprint_is_a_specification() -> None:
    assert prepared(specification=fingerprint({"prompt": "s3cret"})) == prepared()


def test_a_request_shows_nothing_of_the_specification() -> None:
    found = prepared()
    assert "s3cret" not in f"{found!r} {found} {found.text!r} {[found.text]}"
    assert "s3cret" in str(found.text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tenant_id": ""}, "tenant_id: expected 1 to 255 bytes of UTF-8, got 0"),
        ({"tenant_id": "\u00e9" * 128}, "tenant_id: expected 1 to 255 bytes of UTF-8, got 256"),
        ({"tenant_id": "a\0"}, "tenant_id: expected text without NUL"),
        ({"tenant_id": "\ud800"}, "tenant_id: expected Unicode text, got a lone surrogate"),
        ({"tenant_id": 7}, "tenant_id: expected text, got int"),
        ({"key": ""}, "key: expected 1 to 255 bytes"),
        ({"key": "k" * 256}, "got 256"),
        ({"key": b"k"}, "key: expected text, got bytes"),
        ({"provider": "Genace"}, "provider: expected a configured name"),
        ({"provider": "genace\n"}, "provider: expected a configured name"),
        ({"provider": ""}, "provider: expected a configured name"),
        ({"provider": "a__b"}, "provider: expected a configured name"),
        ({"estimate": 0.1}, "estimate: expected a Decimal, an int or text, got float"),
        ({"estimate": True}, "got bool"),
        ({"estimate": -1}, "estimate: expected a decimal amount from 0"),
        ({"estimate": Decimal("-0.01")}, "estimate: expected a decimal amount from 0"),
        ({"estimate": Decimal("NaN")}, "estimate: expected a decimal amount from 0"),
        ({"estimate": Decimal("Infinity")}, "estimate: expected a decimal amount from 0"),
        ({"estimate": Decimal("1E+999999")}, "estimate: expected a decimal amount from 0"),
        ({"estimate": Decimal("1E-13")}, "at most 12 decimals"),
        ({"estimate": 10**18}, "below 10^18"),
        ({"estimate": 10**5000}, "below 10^18"),
        ({"estimate": "1e3"}, "estimate: expected a decimal amount from 0"),
        ({"estimate": " 1"}, "estimate: expected a decimal amount from 0"),
        ({"estimate": "\u0661"}, "estimate: expected a decimal amount from 0"),
        ({"unit": ""}, "unit: expected 1 to 32 bytes"),
        ({"unit": "u" * 33}, "unit: expected 1 to 32 bytes"),
        ({"priority": 10_000}, "priority: expected a whole number from -9999 to 9999"),
        ({"priority": True}, "priority: expected a whole number"),
        ({"not_before_at": datetime(2026, 1, 1)}, "not_before_at: expected a datetime with an offset"),  # noqa: DTZ001 - the point
        ({"dispatch_by_at": "2026-01-01"}, "dispatch_by_at: expected a datetime with an offset"),
        (
            {"dispatch_by_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))},
            "between the years 1 and 9999",
        ),
    ],
)
def test_a_field_out_of_its_limits_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        prepared(**change)
    assert said in refused.value.message


def test_a_specification_without_a_text_is_refused() -> None:
    with pytest.raises(SpecificationInvalid, match=r"\$\.seed: expected a finite number"):
        prepared(specification={"seed": float("nan")})


@pytest.mark.parametrize(
    "change",
    [
        {"tenant_id": "\u00e9" * 127 + "x", "key": "k" * 255},
        {"provider": "g" + "_9" * 31},
        {"estimate": "9" * 18 + "." + "9" * 12},
        {"estimate": 10**18 - 1},
        {"estimate": Decimal("-0")},
        {"estimate": Decimal("1E+3")},
        {"estimate": "007"},
        {"estimate": Decimal("1E-12")},
        {"unit": "\u20ac" * 10 + "xx"},
        {"priority": -9999},
        {"priority": 9999},
        {"not_before_at": datetime(1, 1, 2, tzinfo=UTC), "dispatch_by_at": datetime.max.replace(tzinfo=UTC)},
        {"specification": {"x": "y" * (1024 * 1024 - 8)}},
    ],
    ids="+".join,
)
def test_what_is_within_the_limits_here_is_within_those_of_the_database(
    database: postgres.Database, change: dict[str, Any]
) -> None:
    with psycopg.connect(database.url) as connection:
        assert enqueue_sync(connection, prepared(**change)).created


def test_a_refusal_by_the_database_leaves_the_transaction_usable(database: postgres.Database) -> None:
    future = EnqueueRequest(
        tenant_id=prepared().tenant_id,
        operation_key="order-7",
        provider="genace",
        specification_hash=prepared().specification_hash,
        text=type(prepared().text)(prepared().text.replace('"v": 1', '"v": 2')),
    )
    with psycopg.connect(database.url) as connection:
        with pytest.raises(Refused, match="v must be the number 1"):
            enqueue_sync(connection, future)
        assert enqueue_sync(connection, prepared()).created
