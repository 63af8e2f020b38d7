"""A worker's own files: its account's alone, held while it lives, gone when nothing is open, whole when the disk refuses."""

import fcntl
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coatcheck.core.operation import DispatchId
from coatcheck.spool.folder import Folder, Held, trouble_of
from coatcheck.spool.own import Spool
from coatcheck.spool.record import Record, read
from coatcheck.spool.survey import surveyed
from spool.records import ELSEWHERE, INSTALLATION, of


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "home")


@pytest.fixture
def spool(folder: Folder) -> Iterator[Spool]:
    made = Spool(folder, INSTALLATION, "host-1")
    yield made
    made.close()


def another(folder: Folder) -> Spool:
    return Spool(folder, INSTALLATION, "host-2")


def dispatch(record: Record) -> DispatchId:
    return record.dispatch_id


def lines(folder: Folder) -> list[Record]:
    return [read(line) for path in folder.all_files() for line in path.read_bytes().splitlines()]


@contextmanager
def files_no_longer_than(size_bytes: int) -> Iterator[None]:
    """The kernel refuses what goes beyond, after having written what fits: as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_is_made_before_it_is_needed(folder: Folder, spool: Spool) -> None:
    assert spool.others() == []
    assert not folder.path.exists()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_folder_and_file_are_the_accounts_alone_whatever_the_umask(folder: Folder, spool: Spool, mask: int) -> None:
    folder.path.parent.mkdir()
    before = os.umask(mask & 0o077)
    try:
        spool.append(of(1))
    finally:
        os.umask(before)
    (file,) = folder.files(INSTALLATION)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert file.stat().st_uid == folder.path.stat().st_uid == os.geteuid()


def test_what_is_settled_goes_and_what_is_open_stays(folder: Folder, spool: Spool) -> None:
    spool.append(of(1))
    spool.append(of(2))
    spool.append(of(2))
    assert lines(folder) == [of(1), of(2)]
    spool.settle(dispatch(of(1)))
    assert spool.open_lines() == {dispatch(of(2))}
    assert lines(folder) == [of(1), of(2)]
    spool.settle(dispatch(of(2)))
    (file,) = folder.all_files()
    assert file.stat().st_size == 0
    spool.append(of(3))
    assert lines(folder) == [of(3)]
    spool.close()
    assert lines(folder) == [of(3)]


def test_an_orderly_end_leaves_no_file_without_a_line(folder: Folder, spool: Spool) -> None:
    spool.append(of(1))
    spool.settle(dispatch(of(1)))
    spool.close()
    assert folder.all_files() == []


def test_only_what_lies_there_counts_as_kept(folder: Folder, spool: Spool) -> None:
    spool.append(of(1))
    spool.append(of(1))
    spool.close()
    for record in (of(1), of(2)):
        with pytest.raises(OSError, match="the spool is closed"):
            spool.append(record)
    assert lines(folder) == [of(1)]


def test_lines_that_never_stop_coming_do_not_keep_the_settled_ones(folder: Folder) -> None:
    spool = Spool(folder, INSTALLATION, "host-1", room_bytes=1500)
    for number in range(1, 101):
        spool.append(of(number))
        if number > 1:
            spool.settle(dispatch(of(number - 1)))
    assert len(lines(folder)) < 5
    assert of(100) in lines(folder)
    spool.close()


def test_a_file_is_taken_only_when_its_owner_is_gone(folder: Folder, spool: Spool) -> None:
    spool.append(of(1))
    (file,) = folder.all_files()
    assert spool.others() == []
    assert another(folder).others() == [file]
    assert Held.taken(file) is None
    spool.close()
    first = Held.taken(file)
    assert first is not None
    assert Held.taken(file) is None
    first.remove()
    first.close()
    assert Held.taken(file) is None


def ended_just_before_it_is_locked(patch: pytest.MonkeyPatch, folder: Folder, *, others: bytes | None) -> None:
    """Between the opening of a file and its locking another process ends it and, with `others`, begins one of that name."""
    really = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        patch.undo()
        (file,) = folder.all_files()
        file.unlink()
        if others is not None:
            file.write_bytes(others)
        really(descriptor, how)

    patch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize("others", [None, b"another"])
def test_a_lock_on_a_file_that_was_ended_meanwhile_does_not_count(
    folder: Folder, spool: Spool, monkeypatch: pytest.MonkeyPatch, others: bytes | None
) -> None:
    spool.append(of(1))
    spool.close()
    (file,) = folder.all_files()
    ended_just_before_it_is_locked(monkeypatch, folder, others=others)
    assert Held.taken(file) is None


def test_an_owner_whose_new_file_was_ended_before_it_was_locked_makes_another(
    folder: Folder, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended_just_before_it_is_locked(monkeypatch, folder, others=None)
    spool.append(of(1))
    assert lines(folder) == [of(1)]


def test_a_file_of_another_installation_is_nobodys_here(folder: Folder) -> None:
    foreign = Spool(folder, ELSEWHERE, "host-1")
    foreign.append(of(1))
    foreign.close()
    assert another(folder).others() == []
    assert len(folder.files(ELSEWHERE)) == 1


def test_a_line_that_nobody_saves_any_more_is_left_to_whoever_replays_it(folder: Folder, spool: Spool) -> None:
    spool.append(of(1))
    spool.let_go(dispatch(of(1)))
    assert spool.open_lines() == frozenset()
    (file,) = spool.others()
    held = Held.taken(file)
    assert held is not None
    assert read(held.content()) == of(1)
    held.close()
    spool.append(of(2))
    assert len(folder.all_files()) == 2


def test_half_a_line_is_taken_back_and_the_next_one_is_whole(folder: Folder, spool: Spool) -> None:
    spool.append(of(1))
    (file,) = folder.all_files()
    with files_no_longer_than(file.stat().st_size + 100), pytest.raises(OSError, match="File too large"):
        spool.append(of(2))
    assert lines(folder) == [of(1)]
    spool.append(of(2))
    assert sorted(lines(folder), key=lambda each: each.operation_id) == [of(1), of(2)]
    assert spool.open_lines() == {dispatch(of(1)), dispatch(of(2))}


def test_a_first_line_that_the_disk_refuses_leaves_nothing(folder: Folder, spool: Spool) -> None:
    with files_no_longer_than(100), pytest.raises(OSError, match="File too large"):
        spool.append(of(1))
    assert folder.all_files() == []
    spool.append(of(1))
    assert lines(folder) == [of(1)]


def test_a_name_that_no_file_can_have_becomes_one_that_it_can(folder: Folder) -> None:
    spool = Spool(folder, INSTALLATION, "../a b/\u00e9-1")
    spool.append(of(1))
    assert len(folder.files(INSTALLATION)) == 1
    spool.close()


def test_a_link_is_not_followed(folder: Folder, spool: Spool, tmp_path: Path) -> None:
    folder.prepare()
    (tmp_path / "target").write_bytes(b"x")
    link = folder.path / f"{INSTALLATION}.host-9.1.jsonl"
    link.symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic"):
        Held.taken(link)


def test_a_folder_that_others_may_write_is_refused(folder: Folder, spool: Spool) -> None:
    folder.prepare()
    folder.path.chmod(0o770)
    with pytest.raises(PermissionError, match="other accounts may write there"):
        spool.append(of(1))
    assert trouble_of(folder.path.parent, keep_folder=True) == "other accounts may write there"


@pytest.mark.parametrize("keep", [True, False])
def test_a_try_leaves_the_folder_only_where_it_is_to_be_kept(folder: Folder, keep: bool) -> None:
    assert trouble_of(folder.path.parent, keep_folder=keep) is None
    assert folder.path.exists() is keep
    assert folder.path.parent.exists() is keep
    if keep:
        assert list(folder.path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_a_trouble(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    assert trouble_of(tmp_path / "home", keep_folder=True) == "Not a directory"


def test_a_survey_counts_every_installation_and_what_was_set_aside(folder: Folder, spool: Spool) -> None:
    assert surveyed(folder.path.parent).line_count == 0
    spool.append(of(1))
    foreign = Spool(folder, ELSEWHERE, "host-1")
    foreign.append(of(2))
    foreign.append(of(3))
    (folder.path / "x.damaged").touch()
    found = surveyed(folder.path.parent)
    assert (found.line_count, found.file_count, found.damaged) == (3, 2, ("x.damaged",))
    assert found.oldest_at == of(1).kept_at
    foreign.close()
