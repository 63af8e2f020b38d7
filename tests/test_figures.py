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


INTERRUPTED = """
def test_counting(figures):
    figures("kills", 7)

def test_interrupted():
    raise KeyboardInterrupt
"""


def counted(
    folder: Path, figures: str, text: str = COUNTING, *, processes: int = 2
) -> subprocess.CompletedProcess[str]:
    (folder / "test_counting.py").write_text(text)
    run = ["-n", str(processes), "--lab", "--figures", figures]
    options = ["-p", "figures", "-p", "no:cacheprovider", *run, "-o", "addopts="]
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
    assert {"python", "postgresql", "cores"} <= kept.keys()
    (record,) = kept["files"].values()
    assert record["figures"] == kept["figures"]
    assert {"at", "commit", "seconds"} <= record.keys()


def test_a_run_replaces_the_records_of_the_files_that_it_ran_and_leaves_those_of_the_others(tmp_path: Path) -> None:
    """Except of what is not there any more."""
    record = {"commit": "c", "at": "t", "seconds": 1, "tests": {"passed": 4}, "figures": {"kills": 100, "cuts": 3}}
    (tmp_path / "test_other.py").write_text("")
    names = ("test_other.py", "test_counting.py", "test_gone.py")
    (tmp_path / "figures.json").write_text(json.dumps({"files": dict.fromkeys(names, record)}))
    counted(tmp_path, "figures.json")
    kept = json.loads((tmp_path / "figures.json").read_text())
    assert kept["files"].keys() == {"test_other.py", "test_counting.py"}
    assert kept["files"]["test_other.py"] == record
    assert kept["figures"] == {"cuts": 3, "kills": 108, "seeds": 200}
    assert kept["tests"] == {"failed": 1, "passed": 6}


def test_of_a_file_that_an_interrupted_run_did_not_end_nothing_is_kept(tmp_path: Path) -> None:
    """Its earlier record stays."""
    counted(tmp_path, "figures.json")
    before = json.loads((tmp_path / "figures.json").read_text())
    ended = counted(tmp_path, "figures.json", INTERRUPTED, processes=0)
    assert ended.returncode == pytest.ExitCode.INTERRUPTED
    assert json.loads((tmp_path / "figures.json").read_text()) == before


def test_a_place_that_takes_no_file_is_refused_before_the_first_test(tmp_path: Path) -> None:
    ended = counted(tmp_path, ".")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--figures: expected a file that can be written" in ended.stderr
    assert "passed" not in ended.stdout
