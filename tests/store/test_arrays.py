"""A column that is written here comes back from PostgreSQL as it was."""

import asyncio
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest

from coatcheck.core.evidence import Stage
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams
from coatcheck.store.arrays import literal
from coatcheck.store.db import Database

COLUMNS: Sequence[tuple[str, Sequence[object]]] = (
    (
        "text",
        [
            "plain",
            "",
            "NULL",
            "null",
            None,
            'a "quoted" word',
            "back\\slash",
            "{a,b}",
            " edges ",
            "two\nlines\tand a tab",
        ],
    ),
    ("text", ["\\", '"', '\\"', "','", "$1 %s", "\u00e9\U0001f3a8", "\x7f\u0085"]),
    ("uuid", [UUID(int=0), UUID(int=2**128 - 1), None]),
    ("bigint", [0, -1, 2**63 - 1, -(2**63), None]),
    ("boolean", [True, False, None]),
    ("float8", [0.0, 1e-07, 1e300, math.inf, -2.5, None]),
    ("numeric", [Decimal("0.10"), Decimal("1E+3"), Decimal(-7), None]),
    ("bytea", [b"", b"\\x00", bytes(range(256)), None]),
    ("timestamptz", [datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), None]),
    ("text", []),
    ("integer", [None, None]),
)


@pytest.mark.parametrize(("kind", "column"), COLUMNS)
def test_a_column_comes_back_as_it_was(kind: str, column: Sequence[object], server: DevPostgres) -> None:
    assert _back(server, kind, column) == list(column)


def test_a_word_of_an_enum_is_its_value(server: DevPostgres) -> None:
    assert _back(server, "text", [Stage.BODY_SENT, None]) == ["body_sent", None]


def test_a_character_that_no_text_of_the_server_can_hold_is_refused_before_it_is_sent(server: DevPostgres) -> None:
    with pytest.raises(psycopg.DataError):
        _back(server, "text", ["a\0b"])


def test_what_is_not_known_here_is_left_to_the_driver(server: DevPostgres) -> None:
    assert literal([[1], [2]]) is None
    assert _back(server, "integer", [[1], [2]]) == [[1], [2]]


def _back(server: DevPostgres, kind: str, column: Sequence[object]) -> object:
    async def asked() -> object:
        line = Database(server.url("postgres"), seams=Seams.real(), name="arrays")
        try:
            (row,) = await line.fetch(f"select %(column)s::{kind}[] as column", {"column": list(column)})
        finally:
            await line.close()
        return row["column"]

    return asyncio.run(asked())
