"""The ground of a test, its invariants checked at the end of every story."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from store.ground import Ground
from store.host import Host
from store.invariants import assert_invariants


@pytest.fixture
def ground(database: postgres.Database, request: pytest.FixtureRequest) -> Iterator[Ground]:
    """One worker on a fresh database. `@pytest.mark.breaks("S2")` names the invariants that a story breaks on purpose."""
    with Ground(database) as made:
        yield made
        broken = request.node.get_closest_marker("breaks")
        assert_invariants(made.connection, but=broken.args if broken else ())


@pytest.fixture
def host(ground: Ground, tmp_path: Path) -> Host:
    return Host(ground, tmp_path)
