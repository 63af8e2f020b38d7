"""Every measurement of `coatcheck bench` comes to its end at a small size, on an embedded PostgreSQL of its own, and nothing is left of it."""

import signal
import subprocess
from pathlib import Path

import pytest

from coatcheck.bench import MEASUREMENTS
from coatcheck.devdb import account, place, postmaster
from measuring.ground import COMMAND, SMALL, environment, measured
from waiting import until

MAY_BE_LESS = ("images", "memory of each", "statements of an idle")
"""Figures that are small enough, in a small run, to be nothing."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MEASUREMENTS)
def test_every_measurement_brings_figures_and_what_limits_them(name: str, tmp_path: Path) -> None:
    ended = measured(tmp_path, name)
    assert ended.code == 0, ended.error
    assert ended.figures
    for figure in ended.figures.values():
        assert figure["limited_by"]
        assert figure["value"] is not None
        assert figure["value"] > 0 or figure["name"].startswith(MAY_BE_LESS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """Here while two workers, a service and a server run."""
    said = tmp_path / "said"
    home = tmp_path / "home"
    home.mkdir()
    with said.open("wb") as out:
        process = subprocess.Popen([*COMMAND, "kill", *SMALL], env=environment(home), stderr=out, cwd=home)
    folder = home / "bench"
    until(lambda: len(list(folder.glob("worker-*.log"))) == 2 or process.poll() is not None, deadline_s=240)
    process.send_signal(number)
    assert process.wait(120) == 130
    assert said.read_text().splitlines()[-1] == "coatcheck: interrupted"
    assert list(home.iterdir()) == []
    assert running_in(folder) == []


@pytest.mark.timeout(600)
def test_of_a_killed_run_nobody_works_on_and_the_next_one_clears_the_rest_away(tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, "kill", *SMALL], env=environment(tmp_path), cwd=tmp_path)
    folder = tmp_path / "bench"
    until(lambda: len(list(folder.glob("worker-*.log"))) == 2 or process.poll() is not None, deadline_s=240)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    until(lambda: all("postgres" in line for line in running_in(folder)), deadline_s=60)
    data = place.chosen(place.locks_folder(folder / "postgres"), account.borrowed("nobody")).data
    assert postmaster.running(data) is not None
    ended = measured(tmp_path, "idle")
    assert ended.code == 0, ended.error
    assert postmaster.running(data) is None
    assert list(tmp_path.iterdir()) == []
    assert running_in(folder) == []


def running_in(folder: Path) -> list[str]:
    """The command lines of processes that work in it, or are told of it."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in f"{line} {working_folder(line.split()[0])}"]


def working_folder(pid: str) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""
