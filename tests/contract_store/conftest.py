"""The two stores under test: side by side behind one connection, or each by itself."""

import asyncio
from collections.abc import Iterator

import pytest

import postgres
from contract_store.grounds import Ground, InMemory, InPostgres
from contract_store.twin import OnPostgres, Twin


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One loop for all that a test does."""
    with asyncio.Runner() as made:
        yield made


@pytest.fixture
def twin(database: postgres.Database, runner: asyncio.Runner) -> Iterator[Twin]:
    """Both stores on a fresh database."""
    made = Twin(OnPostgres(database))
    yield made
    runner.run(made.close())


@pytest.fixture(params=["memory", "postgresql"])
def ground(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[Ground]:
    """One store, whichever: a test with this runs against each."""
    if request.param == "memory":
        yield InMemory(runner)
        return
    made = InPostgres(OnPostgres(request.getfixturevalue("database")), runner)
    yield made
    made.close()
