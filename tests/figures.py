"""What a run counted: tests report figures, equal names are added up over all of them, and `--figures FILE` keeps the sums as JSON.

The sums go with the commit, the machine and the versions that they were counted on: a figure without those says nothing.
"""

import json
import os
import platform
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

FIGURE = "figure:"
"""Begins the names of the properties that carry figures from a test process to the one that writes the file."""
Report = Callable[[str, float], None]
Scale = Callable[..., int]


class Book:
    """Adds up what reports of finished tests carry."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began = time.monotonic()
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._outcomes: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self._outcomes[report.outcome] += 1
        if report.when == "teardown":
            for name, value in report.user_properties:
                if name.startswith(FIGURE):
                    assert isinstance(value, int | float)
                    self._sums[name.removeprefix(FIGURE)] += value

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        told = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": _commit(),
            "python": platform.python_version(),
            "postgresql": session.config.getoption("--pg", None),
            "cores": os.cpu_count(),
            "wall_s": round(time.monotonic() - self._began, 1),
            "tests": dict(self._outcomes),
            "figures": {name: round(self._sums[name], 3) for name in sorted(self._sums)},
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(told, indent=2) + "\n")


def _commit() -> str | None:
    """The commit of the tree under test; None outside a clone, and marked where the tree is not that commit's."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, help="write the figures that the tests counted to this JSON file")
    parser.addoption(
        "--lab", action="store_true", help="count as far as the laboratory does, not as far as every change can wait"
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--figures")
    if path is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        _check_writable(path)
        config.pluginmanager.register(Book(path), "figures-book")


def _check_writable(path: Path) -> None:
    """Whoever names a place that takes no file learns it now, not after an hour of tests."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise pytest.UsageError(
            f"--figures: expected a file that can be written, got {path} ({error.strerror})"
        ) from error


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Report:
    """Reports a figure of this test, as `figures("kills", 12)`."""

    def report(name: str, value: float) -> None:
        request.node.user_properties.append((FIGURE + name, value))

    return report


@pytest.fixture
def lab_scale(pytestconfig: pytest.Config) -> Scale:
    """How far to count, as `lab_scale(ci=100, lab=1000)`."""

    def scale(*, ci: int, lab: int) -> int:
        return lab if pytestconfig.getoption("--lab") else ci

    return scale
