"""A stage for each test, and one real performance whose evidence the tests of both accounts falsify."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from coatcheck.demo.closing import Closing
from coatcheck.demo.performance import Performance
from coatcheck.demo.telling import Lines
from coatcheck.seams import Seams
from demo.stage import SMALL, Stage, staged


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def closing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closing]:
    home, seams = tmp_path_factory.mktemp("performance"), Seams.real()
    with staged(home) as stage:
        telling = Lines(Console(stderr=True), seams.clock)
        performance = Performance(home=stage.demo_home, operations=SMALL, seed=9, seams=seams, telling=telling)
        yield asyncio.run(performance.closing())
        assert stage.left_running() == []
