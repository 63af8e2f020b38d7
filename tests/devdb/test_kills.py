"""What killed processes leave behind is put right by the next start, and processes that share a home do not clash."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from coatcheck.devdb import DevPostgres
from coatcheck.errors import Failed
from coatcheck.seams import Seams, Spawn
from devdb.owner import Owner, alive


def test_a_server_whose_owner_was_killed_is_ended_by_the_next_start(
    server: DevPostgres, owner: Callable[[], Owner]
) -> None:
    killed = owner()
    orphan, url, _ = killed.ready()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table coats ()")
    killed.kill()
    assert alive(orphan)
    with server:
        assert server.pid != orphan
        assert not alive(orphan)
        with psycopg.connect(server.url()) as connection:
            connection.execute("select from coats")
    assert server.pid is None


def test_two_that_start_at_once_share_one_server_and_the_last_one_stops_it(owner: Callable[[], Owner]) -> None:
    one, other = owner(), owner()
    (pid, _, _), (same, url, _) = one.ready(), other.ready()
    assert pid == same
    assert one.stop() == 0
    with psycopg.connect(url) as connection:
        connection.execute("select")
    assert other.stop() == 0
    assert not alive(pid)


def test_a_user_that_was_killed_does_not_keep_the_server_up(server: DevPostgres, owner: Callable[[], Owner]) -> None:
    other = owner()
    pid, _, _ = other.ready()
    with server:
        assert server.pid == pid
        other.kill()
        assert server.pid == pid
    assert not alive(pid)


def test_remove_is_refused_while_another_process_uses_the_server(
    server: DevPostgres, owner: Callable[[], Owner]
) -> None:
    other = owner()
    pid, _, _ = other.ready()
    with pytest.raises(Failed, match="another one"):
        server.remove()
    assert alive(pid)


def test_a_server_that_was_killed_itself_starts_again(server: DevPostgres) -> None:
    with server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        server.restart()
        with psycopg.connect(server.url()) as connection:
            connection.execute("select")


class Killed(BaseException):
    """Stands for the end of the process at this point."""


class SpawnThenDie(Spawn):
    """Lets one program end, then kills the caller before it can go on."""

    def __init__(self, program: str) -> None:
        self._program = program

    def __call__(self, arguments: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        process = super().__call__(arguments, **options)
        if arguments[0].endswith(self._program) and "--version" not in arguments:
            process.wait()
            raise Killed
        return process


@pytest.mark.parametrize("program", ["initdb", "postgres", "pg_ctl"])
def test_a_first_start_that_was_killed_after_any_program_is_made_good(
    home: Path, server: DevPostgres, program: str
) -> None:
    with pytest.raises(Killed):
        DevPostgres(home, seams=Seams(spawn=SpawnThenDie(program)), settings={"fsync": "off"}).start()
    with server, psycopg.connect(server.url()) as connection:
        connection.execute("select")
        assert list(server.data_dir.parent.glob("making-*")) == []


def test_a_removal_that_was_killed_half_way_leaves_nothing_that_the_next_start_takes_for_a_server(
    server: DevPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server:
        data = server.data_dir

    def killed(folder: Path, *, ignore_errors: bool) -> None:
        """After one of the files that make a folder a server's."""
        if folder == data.parent:
            next(data.parent.glob("*/PG_VERSION")).unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            server.remove()
    with server, psycopg.connect(server.url()) as connection:
        connection.execute("select")
        assert list(server.data_dir.parent.glob("making-*")) == []


def test_traces_that_name_a_living_process_of_someone_else_do_not_stop_a_start(server: DevPostgres) -> None:
    with server:
        pass
    stranger = os.getpid()
    traces = [server.data_dir / "postmaster.pid", server.data_dir.parent / "run" / ".s.PGSQL.5432.lock"]
    for trace in traces:
        trace.write_text(f"{stranger}\n{server.data_dir}\n")
    with server:
        assert server.pid not in {None, stranger}


def test_a_home_that_was_deleted_and_made_again_starts_empty(
    home: Path, server: DevPostgres, owner: Callable[[], Owner]
) -> None:
    killed = owner()
    orphan, url, _ = killed.ready()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table coats ()")
    killed.kill()
    shutil.rmtree(home / "postgres")
    with server, psycopg.connect(server.url()) as connection:
        assert connection.execute("select to_regclass('coats')").fetchone() == (None,)
    if os.geteuid() == 0:  # an ordinary user's server lost its files with the home, and ends by itself
        assert not alive(orphan)
