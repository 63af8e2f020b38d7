"""What the person on call learns of the spool: a worker refuses one that it could not write, and `doctor` says what waits in it."""

import os
from pathlib import Path

import pytest

from cli.terminal import Terminal
from coatcheck.spool.folder import Folder
from coatcheck.spool.own import Spool
from spool.records import ELSEWHERE, INSTALLATION, of


def checked(terminal: Terminal, code: int) -> dict[str, str]:
    ended = terminal.run("doctor", "--json")
    assert ended.code == code, ended.out + ended.err
    (check,) = [check for check in ended.object["checks"] if check["name"] == "spool"]
    return dict(check)


@pytest.mark.parametrize("trouble", ["Not a directory", "other accounts may write there"])
def test_a_worker_that_could_not_keep_a_reply_does_not_start(provided: Terminal, trouble: str) -> None:
    home = Path(provided.environ["COATCHECK_HOME"])
    if trouble == "Not a directory":
        home.touch()
    else:
        Folder(home).prepare()
        Folder(home).path.chmod(0o707)
    ended = provided.run("worker", "--until-idle", "--json")
    assert (ended.code, ended.error["code"]) == (2, "setting_invalid")
    assert ended.error["message"] == (
        "COATCHECK_HOME: expected a folder in which this account alone can keep its spool,"
        f" got {Folder(home).path} ({trouble})"
    )
    assert "COATCHECK_HOME" in ended.error["next"]
    assert provided.run("worker", "--roles", "observe,deliver", "--until-idle").code == 0
    assert checked(provided, 5)["reading"] == f"{Folder(home).path}: {trouble}"


def test_a_spool_in_which_nothing_waits_is_sound_and_was_not_made_for_the_asking(provided: Terminal) -> None:
    assert checked(provided, 0)["verdict"] == "ok"
    assert not os.path.lexists(Path(provided.environ["COATCHECK_HOME"]) / "spool")


def test_what_waits_is_found_whatever_its_installation(provided: Terminal) -> None:
    folder = Folder(Path(provided.environ["COATCHECK_HOME"]))
    for installation in (INSTALLATION, ELSEWHERE):
        spool = Spool(folder, installation, "dead-1")
        spool.append(of(1))
        spool.close()
    found = checked(provided, 5)
    assert found["verdict"] == "failed"
    assert f"{folder.path}: 2 replies wait in 2 files, the oldest for " in found["reading"]
    assert "coatcheck worker" in found["remedy"]


def test_what_was_set_aside_as_damaged_is_named(provided: Terminal) -> None:
    folder = Folder(Path(provided.environ["COATCHECK_HOME"]))
    folder.prepare()
    (folder.path / "x.damaged").write_bytes(b"half a li")
    assert checked(provided, 5)["reading"] == f"{folder.path}: damaged: x.damaged"
