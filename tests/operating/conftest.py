"""The office of each story: its own database and service; at its end every invariant of the store holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from coatcheck.sim import ThreadedService, simulated_service
from operating.office import Office


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as running:
        yield running


@pytest.fixture
def office(database: postgres.Database, sim: ThreadedService, tmp_path: Path) -> Iterator[Office]:
    with Office(database, sim, tmp_path) as made:
        yield made
        made.holds()
