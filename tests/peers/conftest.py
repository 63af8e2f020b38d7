"""One stage for the tests of a file."""

import os
from collections.abc import Iterator

import pytest
from bench.peers.environments import ROOT
from bench.peers.stage import Stage, staged

from coatcheck.seams import Seams


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged(Seams.real()) as made:
        yield made


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    # the planted programs use what the peers' programs share
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.fspath(ROOT), os.fspath(ROOT / "tests")]))
