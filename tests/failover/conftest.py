"""Trials are numbered: one for every change, many in the laboratory, each with its own time limit and in whichever process is free."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coatcheck.sim import ThreadedService, simulated_service
from failover.pair import Cold

TRIALS = {"confirmed": (1, 24), "unconfirmed": (1, 6), "split": (1, 8), "careless": (1, 2)}
"""How many trials of each kind there are, by the name of the argument that numbers them: for every change, and in the laboratory."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for kind, (ci, lab) in TRIALS.items():
        if kind in metafunc.fixturenames:
            metafunc.parametrize(kind, range(lab if metafunc.config.getoption("--lab") else ci))


@pytest.fixture(scope="session")
def cold(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Cold:
    """What every server here is a clone of."""
    return Cold(str(pytestconfig.getoption("--pg")), tmp_path_factory.mktemp("cold"))


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the machines of a trial keep what they keep."""
    return tmp_path
