"""The scene of each story: its own database and service; at its end every invariant of the store holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from coatcheck.sim import ThreadedService, simulated_service
from reconcile.scene import Scene


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as running:
        yield running


@pytest.fixture
def scene(
    database: postgres.Database, sim: ThreadedService, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    """`@pytest.mark.breaks("S2")` names the invariants that a story breaks on purpose."""
    with Scene(database, sim, tmp_path) as made:
        yield made
        broken = request.node.get_closest_marker("breaks")
        made.holds(but=broken.args if broken else ())


@pytest.fixture
def slow_scene(database: postgres.Database, sim: ThreadedService, tmp_path: Path) -> Iterator[Scene]:
    """A service that may create its job as late as an hour after a POST ended."""
    with Scene(database, sim, tmp_path, SERVICE_LAG_S="3600") as made:
        yield made
        made.holds()
