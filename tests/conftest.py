"""Fixtures that every folder of tests shares: the server of this run and a fresh database for each test."""

import signal
from collections.abc import Iterator

import hypothesis
import pytest

import postgres
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams
from faults.pooler import Pooler

pytest_plugins = ("figures", "pooling")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pg", choices=("18", "16", "15"), default="18", help="major version of the PostgreSQL under test"
    )


# a busy machine must not turn a slow example into a finding
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


def pytest_configure() -> None:
    """A shell that runs the suite in the background has interrupts ignored, and every child that a test interrupts would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever asks for a database, however indirectly."""
    for item in items:
        if "server" in getattr(item, "fixturenames", ()):
            item.add_marker("database")


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Iterator[DevPostgres]:
    """The PostgreSQL server of this run; with xdist, one per worker. A test that stops or restarts it makes its own instead."""
    with postgres.served(str(pytestconfig.getoption("--pg"))) as running:
        yield running


@pytest.fixture(scope="session")
def template(server: DevPostgres, pooler: Pooler | None) -> Iterator[postgres.Template]:
    """The migrated template, made once in a run."""
    made = postgres.Template(server, migrated=True, reached_by=pooler.url_of if pooler else server.url)
    yield made
    made.close()


@pytest.fixture
def database(template: postgres.Template) -> Iterator[postgres.Database]:
    """A fresh, migrated database of this test's own."""
    with template.copy() as fresh:
        yield fresh


@pytest.fixture(scope="session")
def empty(server: DevPostgres) -> Iterator[postgres.Template]:
    """The template of databases in which nothing was migrated."""
    made = postgres.Template(server, migrated=False)
    yield made
    made.close()


@pytest.fixture
def fresh(empty: postgres.Template) -> Iterator[postgres.Database]:
    """A database in which nothing was migrated."""
    with empty.copy() as made:
        yield made


@pytest.fixture
def seams() -> Seams:
    """The real seams; a test swaps single members with dataclasses.replace."""
    return Seams.real()
