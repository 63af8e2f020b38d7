"""What the laboratory reports is what its tests counted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def counted(folder: Path, figures: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_counting.py").write_text(COUNTING)
    options = ["-p", "figures", "-p", "no:cacheprovider", "-n", "2", "--lab", "--figures", figures, "-o", "addopts="]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_counting.py"],
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.fspath(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_figures_of_all_tests_are_added_up_whoever_ran_them(tmp_path: Path) -> None:
    """Two processes count; the file has the sums, how the tests ended and what they ran on."""
    counted(tmp_path, "kept/figures.json")
    kept = json.loads((tmp_path / "kept" / "figures.json").read_text())
    assert kept["figures"] == {"kills": 8, "seeds": 200}
    assert kept["tests"] == {"passed": 2, "failed": 1}
    assert {"at", "commit", "python", "postgresql", "cores", "wall_s"} <= kept.keys()


def test_a_place_that_takes_no_file_is_refused_before_the_first_test(tmp_path: Path) -> None:
    ended = counted(tmp_path, ".")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--figures: expected a file that can be written" in ended.stderr
    assert "passed" not in ended.stdout
