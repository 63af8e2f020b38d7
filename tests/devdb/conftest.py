"""Homes for servers that a test starts, stops and kills; whatever happens to the test, nothing of them stays."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams
from devdb.owner import Owner

QUICK = {"fsync": "off"}


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder for one server, short enough for its socket; the server is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="home-"))
    yield folder
    DevPostgres(folder, seams=Seams.real()).remove()
    shutil.rmtree(folder)


@pytest.fixture
def server(home: Path, seams: Seams) -> DevPostgres:
    """A server that was not started yet."""
    return DevPostgres(home, seams=seams, settings=QUICK)


@pytest.fixture
def owner(home: Path) -> Iterator[Callable[[], Owner]]:
    """Starts other processes that use the same home."""
    started: list[Owner] = []

    def start() -> Owner:
        started.append(Owner(home))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A folder of an account that is not root: this process's own, or nobody's when this is root."""
    folder = Path(tempfile.mkdtemp(prefix="ordinary-"))
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    yield folder
    shutil.rmtree(folder)
