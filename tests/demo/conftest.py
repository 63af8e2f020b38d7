"""A stage for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.stage import Stage, staged


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as made:
        yield made
