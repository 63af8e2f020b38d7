"""One run at a time in a folder: a second one is refused at once, and a lock on a file that is gone keeps nobody out and lets nobody in."""

import fcntl
import shutil
from pathlib import Path

import pytest

from coatcheck.devdb import alone
from coatcheck.errors import Failed


def test_a_second_run_is_refused_and_comes_in_when_the_first_is_over(tmp_path: Path) -> None:
    lock = tmp_path / "home" / "demo.lock"
    with alone(lock, "demo"):
        with pytest.raises(Failed, match=f"only demo in {lock.parent}"), alone(lock, "demo"):
            pytest.fail("came in")
        with alone(tmp_path / "other" / "demo.lock", "demo"):
            pass
    with alone(lock, "demo"):
        pass


def test_a_run_may_delete_its_folder(tmp_path: Path) -> None:
    lock = tmp_path / "home" / "bench.lock"
    with alone(lock, "measurement"):
        shutil.rmtree(lock.parent)
    with alone(lock, "measurement"):
        pass


@pytest.mark.parametrize("made_anew", [False, True])
def test_who_opened_the_file_before_it_was_deleted_is_refused(
    made_anew: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or two would run in one folder: it, and whoever made the file anew."""
    lock, took = tmp_path / "bench.lock", fcntl.flock

    def deleted_meanwhile(descriptor: int, kind: int) -> None:
        lock.unlink()
        if made_anew:
            lock.touch()
        took(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", deleted_meanwhile)
    with pytest.raises(Failed, match="only measurement"), alone(lock, "measurement"):
        pytest.fail("came in")
