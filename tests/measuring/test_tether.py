"""Worker and service of a measurement end with it, all their processes, and get none of the caller's keys."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import postgres
from coatcheck.bench.service import serving
from coatcheck.seams import Seams
from measuring.stopping import stopped
from waiting import until

MEASURING = """
import json, sys
from pathlib import Path
from coatcheck.bench import QUICK, ground
from coatcheck.seams import Seams

folder, url = Path(sys.argv[1]), sys.argv[2]
with ground.opened(folder, url=url, scale=QUICK, seams=Seams.real(), telling=lambda _: None) as place:
    with place.serving() as service, place.working_together(service, int(sys.argv[3])) as hand:
        print(json.dumps([sorted({service.pid, hand.pid, *hand.pids}), hand.pids]), flush=True)
        sys.stdin.read()
"""
"""A measurement that goes on until its stdin ends."""
KEY = "a-key-that-costs-money"


def begun(
    folder: Path, database: postgres.Database, process_count: int
) -> tuple[subprocess.Popen[bytes], list[int], list[int]]:
    """A measurement, the processes that it began, and which of them are workers."""
    words = (sys.executable, "-c", MEASURING, str(folder), database.url, str(process_count))
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    pids, workers = json.loads(process.stdout.readline())
    assert len(pids) == (2 if process_count == 1 else 2 + process_count)
    assert len(workers) == process_count
    return process, pids, workers


def live(pids: list[int]) -> list[int]:
    """A dead one may wait for a parent to take note."""
    listed = subprocess.run(["ps", "-eo", "pid,stat"], capture_output=True, text=True, check=True).stdout
    states = dict(line.split()[:2] for line in listed.splitlines()[1:])
    return [pid for pid in pids if not states.get(str(pid), "Z").startswith("Z")]


@pytest.mark.parametrize("process_count", [1, 2])
def test_who_is_killed_takes_worker_and_service_along(
    process_count: int, database: postgres.Database, tmp_path: Path
) -> None:
    process, pids, _ = begun(tmp_path / "bench", database, process_count)
    with process:
        assert live(pids) == pids
        process.kill()
        until(lambda: not live(pids))


@pytest.mark.parametrize("process_count", [1, 2])
def test_who_ends_leaves_nobody(process_count: int, database: postgres.Database, tmp_path: Path) -> None:
    """Also workers that cannot drain, and at once."""
    process, pids, workers = begun(tmp_path / "bench", database, process_count)
    with process, stopped(workers):
        process.communicate()
        assert process.returncode == 0
        assert not live(pids)


def test_the_service_is_told_none_of_the_callers_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_PROVIDERS__GENACE__API_KEY", KEY)
    monkeypatch.setenv("COAT", "of mine")
    with serving(tmp_path, seams=Seams.real()) as service:
        told = Path(f"/proc/{service.pid}/environ").read_bytes()
    assert KEY.encode() not in told
    assert b"COATCHECK_" not in told
    assert b"COAT=of mine" in told
