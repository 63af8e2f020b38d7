"""The stage of each story: its own database, service and sink."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from coatcheck.sim import ThreadedService, simulated_service
from faults.arena import Arena
from faults.nursery import Nursery, nursery_of
from faults.stage import Stage


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as running:
        yield running


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with nursery_of() as running:
        yield running


@pytest.fixture
def stage(database: postgres.Database, sim: ThreadedService, tmp_path: Path, nursery: Nursery) -> Iterator[Stage]:
    with Stage(database, sim, tmp_path) as made:
        made.nursery = nursery
        yield made


@pytest.fixture
def arena(database: postgres.Database, sim: ThreadedService, tmp_path: Path, nursery: Nursery) -> Iterator[Arena]:
    with Arena(database, sim, tmp_path) as made:
        made.nursery = nursery
        yield made


@pytest.fixture
def in_lab(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--lab"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Trials come in groups, each in a database of its own: `GROUPS` of a module says how many for every change and in the lab."""
    if "group" in metafunc.fixturenames:
        ci, lab = metafunc.module.GROUPS
        metafunc.parametrize("group", range(lab if metafunc.config.getoption("--lab") else ci))
