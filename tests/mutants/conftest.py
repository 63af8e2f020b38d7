"""Which mutants are tried: all of them in the laboratory, else a few that the commit under test chooses."""

import subprocess
from pathlib import Path

import pytest

from mutants.mutant import Mutant
from mutants.table import MUTANTS

SAMPLE = 2


def chosen_ones(*, is_lab: bool) -> list[Mutant]:
    """Every change another few, so that all have their turn; the same ones in each process of a run."""
    if is_lab:
        return list(MUTANTS)
    asked = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(
        asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()
    first = int(commit[:8] or "0", 16)
    return [MUTANTS[(first + number * len(MUTANTS) // SAMPLE) % len(MUTANTS)] for number in range(SAMPLE)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mutant_tried" in metafunc.fixturenames:
        chosen = chosen_ones(is_lab=metafunc.config.getoption("--lab"))
        metafunc.parametrize("mutant_tried", chosen, ids=lambda mutant: mutant.broken)


@pytest.fixture
def chosen(pytestconfig: pytest.Config) -> list[Mutant]:
    """The mutants that this run tries."""
    return chosen_ones(is_lab=pytestconfig.getoption("--lab"))


@pytest.fixture
def pg(pytestconfig: pytest.Config) -> str:
    """The version of PostgreSQL that the killers are run on, too."""
    return str(pytestconfig.getoption("--pg"))
