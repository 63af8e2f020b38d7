"""A fresh service for each test, in a thread of its own."""

from collections.abc import Iterator

import pytest

from coatcheck.sim import ThreadedService, simulated_service


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as service:
        yield service
