"""A small run of `coatcheck bench` as a process of its own, and what it printed."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "coatcheck", "bench")
SMALL = ("--quick", "--operations", "50", "--renders", "20", "--rows", "2000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How it ended, and its figures by name."""

    code: int
    machine: Mapping[str, Any]
    figures: Mapping[str, Mapping[str, Any]]
    error: str


def measured(home: Path, *words: str) -> Measured:
    """Run it to its end, in an environment that says nothing but where its home is."""
    ended = subprocess.run(
        [*COMMAND, *words, *SMALL, "--json"],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    report: dict[str, Any] = (
        json.loads(ended.stdout) if ended.stdout else {"machine": {}, "scale": {"is_hurried": True}, "figures": []}
    )
    assert report["scale"]["is_hurried"], "figures of small sizes say so"
    figures = {figure["name"]: figure for figure in report["figures"]}
    return Measured(code=ended.returncode, machine=report["machine"], figures=figures, error=ended.stderr)


def environment(home: Path) -> Mapping[str, str]:
    """It says nothing but where the home is."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    return {**environ, "COATCHECK_HOME": str(home)}
