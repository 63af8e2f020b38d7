"""What runs counted: tests report figures, equal names are added up over all of them, and `--figures FILE` keeps the sums as JSON.

The laboratory takes longer than there is time for at once, so each file of tests has a record of its own: a run replaces those of the files
that it ran and leaves the others, each with the commit and the instant that it was counted at. A figure without those says nothing.
"""

import json
import os
import platform
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

FIGURE = "figure:"
"""Begins the names of the properties that carry figures from a test process to the one that writes the file."""
Report = Callable[[str, float], None]
Scale = Callable[..., int]


class Book:
    """Adds up what reports of finished tests carry, by the file of the test."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sums: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._took_s: defaultdict[str, float] = defaultdict(float)
        self._left: Counter[str] = Counter()
        """Tests of each file that have not ended yet: a file that an interrupted run did not end has no record."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._expect(ids)

    def _expect(self, ids: Iterable[str]) -> None:
        self._left = Counter(_file(each) for each in ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = _file(report.nodeid)
        self._took_s[file] += report.duration
        if report.when == "call" or report.failed:
            self._outcomes[file][report.outcome] += 1
        if report.when == "teardown":
            self._left[file] -= 1
            for name, value in report.user_properties:
                if name.startswith(FIGURE):
                    assert isinstance(value, int | float)
                    self._sums[file][name.removeprefix(FIGURE)] += value

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        files = self._before(session.config.rootpath) | self._now()
        told = {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "postgresql": session.config.getoption("--pg", None),
            "tests": _added(record["tests"] for record in files.values()),
            "figures": _added(record["figures"] for record in files.values()),
            "files": dict(sorted(files.items())),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(told, indent=2) + "\n")

    def _before(self, root: Path) -> dict[str, Any]:
        """The records of earlier runs, of files that are still there."""
        text = self._path.read_text() if self._path.exists() else ""
        files: Mapping[str, Any] = json.loads(text)["files"] if text else {}
        return {file: record for file, record in files.items() if (root / file).exists()}

    def _now(self) -> dict[str, Any]:
        run = {"commit": _commit(), "at": datetime.now(UTC).isoformat(timespec="seconds")}
        return {
            file: {
                **run,
                "seconds": round(self._took_s[file], 1),
                "tests": dict(outcomes),
                "figures": {name: round(value, 3) for name, value in sorted(self._sums[file].items())},
            }
            for file, outcomes in self._outcomes.items()
            if not self._left[file]
        }


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        for name, value in part.items():
            sums[name] += value
    return {name: round(sums[name], 3) for name in sorted(sums)}


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
