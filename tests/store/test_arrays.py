"""A column that is written here comes back from PostgreSQL as it was."""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
FAR = [Decimal(each) for each in ("1E+30", "-0", "1E-40", "Infinity", "-Infinity", "123456789012345678901234567890.5")]
"""Numbers of every size that money never has."""


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


AWKWARD = st.text(alphabet="\\\"'{},;$%() \t\r\n\v\f\b\u00a0\u2028aNULnul\x01\x7f\u0085\ufeff\U0001f3a8", max_size=12)
WORDS = st.sampled_from(
    ["NULL", "null", "{}", "{NULL}", '""', "\\", "\\N", "\\x", "[0:1]={1}", " ", "infinity", "now", "\\" * 99, '"' * 99]
)
TEXTS = AWKWARD | WORDS | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=OFFSETS)  # noqa: DTZ001 - the zones are drawn
KINDS: Sequence[tuple[str, st.SearchStrategy[Any]]] = (
    ("text", TEXTS),
    ("bytea", st.binary(max_size=80)),
    ("uuid", st.uuids()),
    ("smallint", st.integers(-(2**15), 2**15 - 1)),
    ("integer", st.integers(-(2**31), 2**31 - 1)),
    ("bigint", st.integers(-(2**63), 2**63 - 1)),
    ("boolean", st.booleans()),
    ("float8", st.floats(allow_nan=False)),
    ("numeric", st.decimals(allow_nan=False, min_value=-(10**30), max_value=10**30) | st.sampled_from(FAR)),
    ("timestamptz", INSTANTS),
)


@contextmanager
def _asking(server: DevPostgres) -> Iterator[Callable[[str, Sequence[object]], Any]]:
    with asyncio.Runner() as runner:
        line = Database(server.url("postgres"), seams=Seams.real(), name="arrays")
        try:
            yield lambda kind, column: runner.run(_asked(line, kind, column))
        finally:
            runner.run(line.close())


@pytest.mark.parametrize(("kind", "element"), KINDS, ids=[kind for kind, _ in KINDS])
def test_whatever_is_sent_arrives_as_it_was(kind: str, element: st.SearchStrategy[Any], server: DevPostgres) -> None:
    with _asking(server) as back:

        @given(column=st.lists(st.none() | element, max_size=6))
        @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
        def arrives(column: list[Any]) -> None:
            assert literal(column) is not None
            found = back(kind, column)
            assert found == column
            assert [type(each) for each in found] == [type(each) for each in column]

        arrives()


def test_very_long_text_and_many_elements_arrive_as_they_were(server: DevPostgres) -> None:
    column = ['\\"{},' * 400_000, *(str(number) for number in range(20_000))]
    assert _back(server, "text", column) == column


def test_what_is_no_number_arrives_as_that(server: DevPostgres) -> None:
    not_one, none, also_not_one = _back(server, "numeric", [Decimal("NaN"), None, Decimal("NaN")])
    assert (not_one.is_nan(), none, also_not_one.is_nan()) == (True, None, True)
    assert math.isnan(_back(server, "float8", [math.nan])[0])


@pytest.mark.parametrize("text", ["\ud800", "job\udc80"])
def test_half_a_character_is_refused_before_it_is_sent(text: str, server: DevPostgres) -> None:
    with pytest.raises(UnicodeEncodeError):
        _back(server, "text", [text])


def _back(server: DevPostgres, kind: str, column: Sequence[object]) -> Any:
    with _asking(server) as back:
        return back(kind, column)


async def _asked(line: Database, kind: str, column: Sequence[object]) -> Any:
    (row,) = await line.fetch(f"select %(column)s::{kind}[] as column", {"column": list(column)})
    return row["column"]
