"""`coatcheck demo` as a real process: what it says, how it ends, and that nothing of it is left."""

import fcntl
import json
import os
import signal
from pathlib import Path

import pytest

from coatcheck.demo.premises import remove
from coatcheck.errors import Failed
from coatcheck.seams import Seams
from demo.stage import LONGEST_S, SMALL, Stage
from waiting import until

FIGURES = (
    *("operations", "posts", "max_posts_per_operation", "lost_replies", "uncertain"),
    *("delivered", "checksum_mismatches", "lost", "duplicated"),
    *("adopted", "forced", "proven_absent", "posts_authorised_again", "uncertain_left"),
    *("charged", "billed", "audit_findings", "ok"),
)
AFTER_THE_KILL = "is killed"


def test_a_demo_settles_its_account_and_its_database_can_be_looked_at_afterwards(stage: Stage) -> None:
    assert stage.done("--json", "--operations", str(SMALL), "--seed", "5") == 0, stage.err
    (line,) = stage.out.splitlines()
    figures = json.loads(line)
    assert tuple(figures) == FIGURES
    assert figures["operations"] == SMALL
    assert figures["max_posts_per_operation"] == 1
    assert figures["lost_replies"] == figures["uncertain"] > 0
    assert figures["delivered"] > 0
    assert figures["checksum_mismatches"] == figures["lost"] == figures["duplicated"] == 0
    assert figures["adopted"] + figures["proven_absent"] == figures["uncertain"]
    assert figures["posts_authorised_again"] == figures["proven_absent"] > 0
    assert figures["adopted"] >= figures["forced"] > 0
    assert figures["charged"] == figures["billed"] > 0
    assert figures["uncertain_left"] == figures["audit_findings"] == 0
    assert figures["ok"] is True
    assert "is killed with SIGKILL in the middle of a POST" in stage.err
    assert stage.left_running() == []

    listed = stage.coatcheck("operations", "list", "--json")
    assert len(listed.stdout.splitlines()) == SMALL, listed.stderr
    assert stage.coatcheck("reconcile", "list", "--json").stdout == ""
    assert stage.coatcheck("audit").returncode == 0
    assert stage.left_running() == []

    pointer = stage.demo_home / "postgres" / "place"
    server = Path(pointer.read_text()) if pointer.exists() else stage.demo_home / "postgres"
    assert server.is_dir()
    remove(stage.demo_home, seams=Seams.real())
    assert not server.exists()
    assert not stage.demo_home.exists()
    assert (stage.home / "out.txt").exists()


def test_what_no_demo_made_is_not_removed_and_what_one_uses_neither(tmp_path: Path) -> None:
    kept = tmp_path / "outputs"
    kept.mkdir()
    remove(tmp_path, seams=Seams.real())
    with (tmp_path / "demo.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Failed, match="only demo"):
            remove(tmp_path, seams=Seams.real())
    assert kept.is_dir()


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        pytest.param("", signal.SIGINT, id="interrupt while PostgreSQL starts"),
        pytest.param("workers start", signal.SIGINT, id="interrupt while workers start"),
        pytest.param(AFTER_THE_KILL, signal.SIGINT, id="interrupt while they work"),
        pytest.param(AFTER_THE_KILL, signal.SIGTERM, id="terminate while they work"),
    ],
)
def test_an_interrupted_demo_leaves_no_process_and_no_result(stage: Stage, moment: str, number: signal.Signals) -> None:
    with stage.begun("--json", "--operations", str(SMALL)) as process:
        until(lambda: (stage.demo_home / "demo.lock").exists() and moment in stage.err)
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does: everybody gets it
        else:
            process.send_signal(number)
        assert process.wait(LONGEST_S) == 130, stage.err
    assert stage.left_running() == []
    assert stage.out == ""
    assert json.loads(stage.err.splitlines()[-1])["code"] == "interrupted"


def test_a_second_demo_in_the_same_home_is_refused(stage: Stage) -> None:
    stage.demo_home.mkdir()
    with (stage.demo_home / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert stage.done("--json") == 1
    assert "another one that runs" in json.loads(stage.err.splitlines()[-1])["message"]


def test_too_few_operations_are_refused(stage: Stage) -> None:
    assert stage.done("--json", "--operations", "3") == 2
    assert json.loads(stage.err.splitlines()[-1])["code"] == "refused"


def test_a_demo_touches_no_database_that_somebody_configured(stage: Stage) -> None:
    """These lead nowhere, so whoever used them would fail."""
    elsewhere = {
        "COATCHECK_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere",
        "COATCHECK_SINK": "file:///proc/nowhere",
        "COATCHECK_LEASE__DISPATCH_S": "0.1",
    }
    with stage.begun("--operations", str(SMALL), settings=elsewhere) as process:
        until(lambda: AFTER_THE_KILL in stage.err, deadline_s=LONGEST_S)
        process.terminate()
        assert process.wait(LONGEST_S) == 130
