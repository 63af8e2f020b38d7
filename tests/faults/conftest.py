"""The stage of each story: its own database, service and sink."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from coatcheck.sim import ThreadedService, simulated_service
from faults.stage import Stage


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as running:
        yield running


@pytest.fixture
def stage(database: postgres.Database, sim: ThreadedService, tmp_path: Path) -> Iterator[Stage]:
    with Stage(database, sim, tmp_path) as made:
        yield made
