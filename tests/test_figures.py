"""What the laboratory reports is what its tests counted."""

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
COUNTING = """
import pytest

@pytest.mark.parametrize("count", [2, 5])
def test_counting(figures, lab_scale, count):
    figures("kills", count)
    figures("seeds", lab_scale(ci=1, lab=100))

def test_failing(figures):
    figures("kills", 1)
    assert False
"""


def test_figures_of_all_tests_are_added_up_whoever_ran_them(tmp_path: Path) -> None:
    """Two processes count; the file has the sums, how the tests ended and what they ran on."""
    (tmp_path / "test_counting.py").write_text(COUNTING)
    asked = [
        "-p",
        "figures",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
        "--lab",
        "--figures",
        "kept/figures.json",
        "-o",
        "addopts=",
    ]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run(
        [sys.executable, "-m", "pytest", *asked, "test_counting.py"],
        cwd=tmp_path,
        env={**inherited, "PYTHONPATH": os.fspath(TESTS)},
        capture_output=True,
        check=False,
    )
    kept = json.loads((tmp_path / "kept" / "figures.json").read_text())
    assert kept["figures"] == {"kills": 8, "seeds": 200}
    assert kept["tests"] == {"passed": 2, "failed": 1}
    assert {"at", "commit", "python", "postgresql", "cores", "wall_s"} <= kept.keys()
