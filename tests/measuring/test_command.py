"""`coatcheck bench` on a database that somebody names: it measures, says what limits, and leaves the database as empty as it found it."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg
import pytest

import postgres
from cli.terminal import Terminal
from coatcheck.bench import MEASUREMENTS, books, lifecycle
from coatcheck.bench.service import Service
from coatcheck.errors import Failed
from coatcheck.sim import simulated_service
from measuring.ground import measured

TABLES = ("operations", "outbox", "specifications", "history", "dispatches", "providers", "accounts", "workers")


def counts(database: postgres.Database) -> dict[str, int]:
    with database.connect() as connection:
        return {table: count(connection, table) for table in TABLES}


def count(connection: psycopg.Connection[tuple[object, ...]], table: str) -> int:
    (found,) = connection.execute(f"select count(*)::integer from coatcheck.{table}".encode()).fetchone() or (None,)
    assert isinstance(found, int)
    return found


def test_a_small_run_measures_and_leaves_nothing(database: postgres.Database, tmp_path: Path) -> None:
    ended = measured(tmp_path, "lifecycle", "--database-url", database.url)
    assert ended.code == 0, ended.error
    assert list(ended.figures) == ["lifecycles, one worker, one tenant", "lifecycles, one worker, 3 tenants"]
    for figure in ended.figures.values():
        assert figure["value"] > 0
        parties = ("worker", "service", "PostgreSQL", "bench", "others")
        assert all(f"{party} " in figure["limited_by"] for party in parties)
    assert ended.machine.keys() == {"cores", "memory_bytes", "system", "python", "postgresql", "coatcheck", "date"}
    assert counts(database) == dict.fromkeys(TABLES, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_database_with_operations_in_it_is_refused_and_untouched(
    terminal: Terminal, database: postgres.Database
) -> None:
    terminal.enqueue("k1")
    before = counts(database)
    ended = terminal.run("bench", "lifecycle", "--database-url", database.url, "--json")
    assert (ended.code, ended.error["code"]) == (2, "refused")
    assert "operations in it" in ended.error["message"]
    assert counts(database) == before


def test_a_database_with_a_worker_is_refused(terminal: Terminal, database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.workers (incarnation, version, roles, started_at, seen_at) values ('w', '1', '{}', now(), now())"
        )
    ended = terminal.run("bench", "lifecycle", "--database-url", database.url, "--json")
    assert (ended.code, ended.error["code"]) == (2, "refused")
    assert "a worker that reported" in ended.error["message"]


def test_the_list_names_every_measurement(terminal: Terminal) -> None:
    shown = terminal.run("bench", "--list", "--json")
    assert [each["name"] for each in map(json.loads, shown.out.splitlines())] == list(MEASUREMENTS)
    assert all(name in terminal.run("bench", "--list").out for name in MEASUREMENTS)


def test_an_operation_that_is_not_delivered_spoils_the_figure(database: postgres.Database) -> None:
    with books.opened(database.url) as reader:
        reader.enqueue("left", 1)
        with pytest.raises(Failed, match="expected 1 operations that are delivered"):
            lifecycle.verified(reader, 1)


def test_a_missing_and_a_second_post_spoil_the_figure() -> None:
    with simulated_service(seed=7) as service:
        at = Service(base_url=service.base_url, pid=0)
        for posts in (1, 2):
            asked = Request(
                f"{service.base_url}/api/v1/jobs", data=b'{"prompt":"a"}', headers={"Authorization": "Bearer k"}
            )
            with urlopen(asked) as reply:
                assert reply.status == 201
            with pytest.raises(Failed, match=f"expected {posts + 1} POSTs"):
                at.check_posts(posts + 1)
            if posts == 1:
                at.check_posts(1)
        with pytest.raises(Failed, match="one for each specification"):
            at.check_posts(2)
