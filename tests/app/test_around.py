"""What doctor makes of the way to the server: each reading at its limit and beyond it, and a pooler that lends one session to two."""

import asyncio
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import postgres
from coatcheck.app.around import line_checks
from coatcheck.app.check import Check, Verdict
from coatcheck.config import Wake
from coatcheck.seams import Clock
from coatcheck.store.surroundings import Surroundings, look_around

SOUND = Surroundings(
    is_pooled=False,
    is_shared=False,
    keeps_prepared=True,
    is_tcp=True,
    guards={"keepalives_idle": "5", "tcp_user_timeout": "10000"},
    clock_ahead_s=1.0,
    isolation="read committed",
    snapshot_age_s=600.0,
    hidden_count=0,
)


def check(name: str, found: Surroundings, wake: Wake = Wake.NOTIFY) -> Check:
    (one,) = [each for each in line_checks(found, wake) if each.name == name]
    return one


def test_at_the_limits_all_is_well() -> None:
    assert {each.verdict for each in line_checks(SOUND, Wake.NOTIFY)} == {Verdict.OK}
    assert {each.remedy for each in line_checks(SOUND, Wake.NOTIFY)} == {""}


@pytest.mark.parametrize("ahead_s", [1.1, -1.1])
def test_a_clock_that_is_off_is_told_either_way(ahead_s: float) -> None:
    found = check("clock", replace(SOUND, clock_ahead_s=ahead_s))
    assert (found.verdict, ("ahead" if ahead_s > 0 else "behind") in found.reading) == (Verdict.WARNING, True)


def test_an_old_snapshot_is_told_and_what_may_not_be_seen() -> None:
    found = check("oldest snapshot", replace(SOUND, snapshot_age_s=601, hidden_count=2))
    assert (found.verdict, found.reading) == (Verdict.WARNING, "601 s; 2 more that this role may not see")


@pytest.mark.parametrize("guards", [{"keepalives": "0", "tcp_user_timeout": "1"}, {"tcp_user_timeout": "0"}, {}])
def test_an_unguarded_line_is_told_unless_it_is_a_unix_socket(guards: dict[str, str]) -> None:
    assert check("tcp", replace(SOUND, guards=guards)).verdict is Verdict.WARNING
    assert check("tcp", replace(SOUND, guards=guards, is_tcp=False)).verdict is Verdict.OK


def test_a_pooler_in_transaction_mode_needs_polling() -> None:
    shared = replace(SOUND, is_pooled=True, is_shared=True)
    assert check("pooler", shared).verdict is Verdict.WARNING
    assert check("pooler", shared, Wake.POLL).verdict is Verdict.OK
    assert check("pooler", replace(SOUND, is_pooled=True)).verdict is Verdict.OK


class Ahead(Clock):
    """This host's clock is an hour behind."""

    def now(self) -> datetime:
        return datetime.now(UTC) - timedelta(hours=1)


def test_a_look_around_reads_the_server_as_it_is(database: postgres.Database) -> None:
    with closing(psycopg.connect(database.url)) as other:
        other.execute("select 1")
        found = asyncio.run(look_around(database.url, Ahead()))
        (age,) = (
            other.execute("select extract(epoch from clock_timestamp() - transaction_timestamp())").fetchone() or ()
        )
    assert 3590 < found.clock_ahead_s < 3610
    assert 0 < found.snapshot_age_s <= age
    assert (found.is_pooled, found.is_shared, found.keeps_prepared) == (False, False, True)
    assert found.isolation == "read committed"
    assert found.guards["tcp_user_timeout"] == "10000"
