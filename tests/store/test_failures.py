"""What a failure of the driver tells the caller: whether nothing changed, or nobody knows, is never guessed."""

import asyncio

import psycopg
import pytest

import postgres
from coatcheck.app.reading import RereadingDatabase
from coatcheck.errors import CoatcheckError, CommitUnknown, Failed, Refused, SchemaMismatch, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.failures import meaning
from faults.proxy import Cut, Side, cutting


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *((psycopg.OperationalError("lost"), CommitUnknown), (psycopg.InterfaceError("closed"), CommitUnknown)),
        *(
            (psycopg.errors.ConnectionFailure("08006"), CommitUnknown),
            (psycopg.errors.AdminShutdown("57P01"), Unavailable),
        ),
        *((psycopg.errors.DiskFull("53100"), Unavailable), (psycopg.errors.DeadlockDetected("40P01"), Unavailable)),
        *(
            (psycopg.errors.UndefinedTable("42P01"), SchemaMismatch),
            (psycopg.errors.InsufficientPrivilege("42501"), Refused),
        ),
        (psycopg.errors.CheckViolation("23514"), Failed),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else type(each).__name__,
)
def test_a_drivers_error_has_one_meaning(error: psycopg.Error, expected: type[CoatcheckError]) -> None:
    assert type(meaning(error)) is expected


def test_only_what_changed_nothing_ends_a_command_with_6() -> None:
    assert (CommitUnknown.exit_code, CommitUnknown.code) == (1, "commit_unknown")
    assert not issubclass(CommitUnknown, Unavailable)


def test_a_read_that_is_cut_again_and_again_changed_nothing(database: postgres.Database) -> None:
    async def story(url: str) -> None:
        reader = RereadingDatabase(url, seams=Seams.real(), name="cut")
        with pytest.raises(Unavailable):
            await reader.fetch("select 'story'")
        assert await reader.fetch("select 'story' as told") == [{"told": "story"}]
        await reader.close()

    with cutting(database.url, b"story", [Cut(side=Side.REPLY, share=0.5)] * 2) as (proxy, url):
        asyncio.run(story(url))
        assert proxy.cut_count == 2
