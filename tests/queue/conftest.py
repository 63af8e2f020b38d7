"""The ground of a test of leases, its invariants checked at the end of every story."""

from collections.abc import Iterator

import pytest

import postgres
from store.ground import Ground
from store.invariants import assert_invariants


@pytest.fixture
def ground(database: postgres.Database) -> Iterator[Ground]:
    """One worker on a fresh database."""
    with Ground(database) as made:
        yield made
        assert_invariants(made.connection)
