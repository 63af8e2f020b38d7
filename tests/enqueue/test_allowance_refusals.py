"""Where a tenant has a limit an operation needs an amount to hold: SQL, the library and the command line refuse it with one reason."""

import json
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import postgres
from coatcheck import Coatcheck, Refused
from coatcheck.config import load_settings

REASON = "estimate must be given: the tenant has an allowance in {unit}, and the provider has no default estimate"


@pytest.fixture
def limited(database: postgres.Database) -> postgres.Database:
    """Tenant t1 has a limit in credits, and is counted without one in tokens."""
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.allowances (tenant_id, unit, ceiling, set_by, updated_at)"
            " values ('t1', 'credits', 10, 'ada', now()), ('t1', 'tokens', null, 'ada', now())"
        )
    return database


def enqueue(database: postgres.Database, **fields: object) -> dict[str, Any]:
    request = {
        "v": 1,
        "tenant_id": "t1",
        "operation_key": "k",
        "provider": "genace",
        "specification_text": "{}",
        **fields,
    }
    with database.connect() as connection:
        row = connection.execute("select coatcheck.enqueue_v1(%s::text::jsonb)", [json.dumps(request)]).fetchone()
    assert row is not None
    answer: dict[str, Any] = row[0]
    return answer


def provider(database: postgres.Database, estimate: int | None, unit: str = "credits") -> None:
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.providers (name, account, kind, default_estimate, unit) values ('genace', 'genace', 'genace', %s, %s)",
            [estimate, unit],
        )


def estimate_of(database: postgres.Database) -> tuple[Decimal | None, str]:
    with database.connect() as connection:
        (row,) = connection.execute("select estimate, unit from coatcheck.operations").fetchall()
    return row


def test_without_an_amount_it_is_refused_and_nothing_is_written(limited: postgres.Database) -> None:
    assert enqueue(limited) == {"result": "refused", "reason": REASON.format(unit="credits")}
    provider(limited, None)
    assert enqueue(limited)["result"] == "refused"
    with limited.connect() as connection:
        assert connection.execute("select from coatcheck.operations").fetchall() == []


def test_an_amount_of_its_own_or_the_providers_is_enough(limited: postgres.Database) -> None:
    assert enqueue(limited, estimate="0")["result"] == "created"
    provider(limited, 3)
    assert enqueue(limited, operation_key="k2")["result"] == "created"


@pytest.mark.parametrize("fields", [{"unit": "tokens"}, {"tenant_id": "t2"}], ids=["no ceiling", "no allowance"])
def test_without_a_limit_no_amount_is_needed(limited: postgres.Database, fields: dict[str, str]) -> None:
    assert enqueue(limited, **fields)["result"] == "created"


def test_a_default_in_another_unit_is_no_amount(limited: postgres.Database) -> None:
    provider(limited, 3, unit="tokens")
    assert enqueue(limited, unit="credits")["reason"] == REASON.format(unit="credits")
    assert enqueue(limited, unit="seconds")["result"] == "created"
    assert estimate_of(limited) == (None, "seconds")
    assert enqueue(limited, operation_key="k2")["result"] == "created"


def test_a_key_that_is_there_already_is_answered_as_it_is(database: postgres.Database) -> None:
    created = enqueue(database)
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.allowances (tenant_id, unit, ceiling, set_by, updated_at) values ('t1', 'credits', 10, 'ada', now())"
        )
    assert enqueue(database) == {**created, "result": "existing"}
    assert enqueue(database, specification_text='{"other":1}')["result"] == "key_reused"


def test_the_library_raises_with_the_reason_and_the_transaction_goes_on(limited: postgres.Database) -> None:
    coatcheck = Coatcheck(load_settings({"COATCHECK_DATABASE_URL": limited.url}))
    wish: dict[str, Any] = {"tenant_id": "t1", "key": "k", "provider": "genace", "specification": {}}
    with psycopg.connect(limited.url) as connection:
        connection.execute("select 1")
        with pytest.raises(Refused, match="the tenant has an allowance in credits"):
            coatcheck.enqueue_sync(connection, **wish)
        assert coatcheck.enqueue_sync(connection, **wish, estimate=2).created
