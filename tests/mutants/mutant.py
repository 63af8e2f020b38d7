"""One promise taken out of the product: a piece of its code or SQL, what stands there instead, and the tests that must notice.

A mutant whose piece is not found exactly once is an error: the code moved on, and the mutant has to follow.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "coatcheck"
FAILED = 1
"""How pytest ends when tests failed; every other end says something about the trial, not about the mutant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`broken` is the promise that no longer holds. `killers` are pytest's names of the tests that must fail."""

    broken: str
    path: str
    old: str
    new: str
    killers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How the killers ended on the mutant."""

    returncode: int
    said: str

    @property
    def killed(self) -> bool:
        """Whether a test failed: one that could not even begin says nothing."""
        return self.returncode == FAILED and "\nFAILED tests/" in self.said


def copied(folder: Path) -> Path:
    """A copy of the package as it is; the folder for PYTHONPATH."""
    source = folder / "src"
    shutil.copytree(PACKAGE, source / "coatcheck", ignore=shutil.ignore_patterns("__pycache__"))
    return source


def mutated(mutant: Mutant, folder: Path) -> Path:
    """A copy of the package with this one change. Raises ValueError when the piece is not there once."""
    source = copied(folder)
    path = source / "coatcheck" / mutant.path
    text = path.read_text()
    if (count := text.count(mutant.old)) != 1:
        raise ValueError(f"expected the piece of '{mutant.broken}' once in {mutant.path}, found it {count} times")
    path.write_text(text.replace(mutant.old, mutant.new))
    return source


def tried(source: Path, killers: tuple[str, ...], *options: str) -> Trial:
    """Run the killers on the package in `source`, in a process of their own, until the first one fails."""
    asked = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *options, *killers]
    ended = subprocess.run(
        asked,
        cwd=ROOT,
        env=_environment(source),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Trial(returncode=ended.returncode, said=ended.stdout)


def _environment(source: Path) -> Mapping[str, str]:
    """Without what the tests around this one told their own processes."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COATCHECK_"))}
    return {**inherited, "PYTHONPATH": os.fspath(source), "PYTHONDONTWRITEBYTECODE": "1"}
