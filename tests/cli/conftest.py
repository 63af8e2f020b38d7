"""Fixtures of the command line's tests: a terminal on a fresh database, and the simulated service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from cli.several import end_left_at
from cli.terminal import Terminal, plain_environ
from coatcheck.sim import ThreadedService, simulated_service

GENACE = "COATCHECK_PROVIDERS__GENACE__"
API_KEY = "canary-key-3b1f"


@pytest.fixture
def terminal(database: postgres.Database, tmp_path: Path) -> Iterator[Terminal]:
    """A terminal whose database is migrated and empty, and in which no provider is configured. It leaves no worker process behind."""
    own = {
        "COATCHECK_DATABASE_URL": database.url,
        "COATCHECK_HOME": str(tmp_path / "home"),
        "COATCHECK_SINK": f"file://{tmp_path / 'outputs'}",
    }
    yield Terminal(folder=tmp_path, environ={**plain_environ(), **own})
    end_left_at(tmp_path / "home")


@pytest.fixture
def service() -> Iterator[ThreadedService]:
    """The other side."""
    with simulated_service(seed=7) as running:
        yield running


@pytest.fixture
def provided(terminal: Terminal, service: ThreadedService) -> Terminal:
    """The terminal with the simulated service as provider genace."""
    own = {
        f"{GENACE}BASE_URL": service.base_url,
        f"{GENACE}API_KEY": API_KEY,
        f"{GENACE}LOOK_MIN_S": "0.05",
        f"{GENACE}WAIT_S": "1",
    }
    return Terminal(folder=terminal.folder, environ={**terminal.environ, **own})
