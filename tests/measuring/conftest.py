"""A terminal in a folder of its own, for commands that measure nothing."""

from pathlib import Path

import pytest

import postgres
from cli.terminal import Terminal, plain_environ


@pytest.fixture
def terminal(database: postgres.Database, tmp_path: Path) -> Terminal:
    """Its database is migrated and empty."""
    own = {"COATCHECK_DATABASE_URL": database.url, "COATCHECK_HOME": str(tmp_path / "home")}
    return Terminal(folder=tmp_path, environ={**plain_environ(), **own})
