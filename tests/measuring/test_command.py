"""`coatcheck bench` on a database that somebody names: it measures, says what limits, and leaves the database as empty as it found it."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

import psycopg
import pytest
from psycopg.types.json import Jsonb

import postgres
from cli.terminal import Terminal
from coatcheck.bench import MEASUREMENTS, QUICK, books, ground, lifecycle
from coatcheck.bench.ground import Ground
from coatcheck.bench.service import Service
from coatcheck.devdb import DevPostgres
from coatcheck.errors import Failed, Refused
from coatcheck.seams import Seams
from coatcheck.sim import simulated_service
from coatcheck.store.migrations import required_version, shipped
from coatcheck.store.schema import migrate_status, migrate_up, version_of
from measuring.ground import measured
from waiting import until

TABLES = ("operations", "outbox", "specifications", "history", "dispatches", "providers", "accounts", "workers")


def counts(database: postgres.Database) -> dict[str, int]:
    with database.connect() as connection:
        return {table: count(connection, table) for table in TABLES}


def count(connection: psycopg.Connection[tuple[object, ...]], table: str) -> int:
    (found,) = connection.execute(f"select count(*)::integer from coatcheck.{table}".encode()).fetchone() or (None,)
    assert isinstance(found, int)
    return found


def measuring_on(database: postgres.Database, folder: Path) -> AbstractContextManager[Ground]:
    seams = Seams.real()
    return ground.opened(folder / "bench", url=database.url, scale=QUICK, seams=seams, telling=lambda _: None)


def enqueue(connection: psycopg.Connection[tuple[object, ...]], *, tenant: str, provider: str) -> None:
    request = {"v": 1, "tenant_id": tenant, "operation_key": "k1", "provider": provider, "specification_text": "{}"}
    connection.execute("select coatcheck.enqueue_v1(%s)", (Jsonb(request),))


def waits_for_a_lock(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    query = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    return connection.execute(query).fetchone() is not None


def test_a_small_run_measures_and_leaves_nothing(database: postgres.Database, tmp_path: Path) -> None:
    ended = measured(tmp_path, "lifecycle", "--database-url", database.url)
    assert ended.code == 0, ended.error
    assert "the figures only show that it works" in ended.error
    assert list(ended.figures) == ["lifecycles, one worker, one tenant", "lifecycles, one worker, 3 tenants"]
    for figure in ended.figures.values():
        assert figure["value"] > 0
        parties = ("worker", "service", "PostgreSQL", "bench", "others")
        assert all(f"{party} " in figure["limited_by"] for party in parties)
    assert ended.machine.keys() == {
        "cores",
        "memory_bytes",
        "system",
        "python",
        "event_loop",
        "postgresql",
        "coatcheck",
        "date",
    }
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


def test_a_used_database_that_is_one_version_behind_is_refused_as_it_is(
    terminal: Terminal, fresh: postgres.Database
) -> None:
    """Migrating it is for its owner, at a time of his choice."""
    with fresh.connect() as connection:
        migrate_up(connection, migrations=shipped()[:-1])
        enqueue(connection, tenant="ada", provider="genace")
    ended = terminal.run("bench", "lifecycle", "--database-url", fresh.url, "--json")
    assert (ended.code, ended.error["code"]) == (2, "refused")
    assert "operations in it" in ended.error["message"]
    with fresh.connect() as connection:
        assert version_of(migrate_status(connection)) == required_version() - 1


@pytest.mark.parametrize("version", range(required_version()))
def test_an_unused_database_of_any_version_is_migrated(version: int, fresh: postgres.Database, tmp_path: Path) -> None:
    with fresh.connect() as connection:
        migrate_up(connection, migrations=shipped()[:version])
    with measuring_on(fresh, tmp_path), fresh.connect() as connection:
        assert version_of(migrate_status(connection)) == required_version()


@pytest.mark.parametrize(("name", "account"), [("bench", "ours"), ("ours", "bench")])
def test_a_provider_or_an_account_of_the_measurements_name_is_somebodys(
    name: str, account: str, terminal: Terminal, database: postgres.Database
) -> None:
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.providers (name, account, kind) values (%s, %s, 'genace')", (name, account)
        )
        connection.execute("insert into coatcheck.accounts (account) values (%s)", (account,))
    before = counts(database)
    ended = terminal.run("bench", "lifecycle", "--database-url", database.url, "--json")
    assert (ended.code, ended.error["code"]) == (2, "refused")
    assert "named bench" in ended.error["message"]
    assert counts(database) == before


@pytest.mark.parametrize(("tenant", "provider"), [("ada", "genace"), ("bench 1", "genace"), ("ada", "bench")])
def test_whoever_enqueues_while_it_measures_loses_nothing(
    tenant: str, provider: str, database: postgres.Database, tmp_path: Path
) -> None:
    """It ends with a refusal instead, in the middle as at the end, and leaves everything."""
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(Refused, match="others by now"))
        place = stack.enter_context(measuring_on(database, tmp_path))
        reader, connection = stack.enter_context(place.books()), stack.enter_context(database.connect())
        reader.enqueue("mine", 2)
        enqueue(connection, tenant=tenant, provider=provider)
        with pytest.raises(Refused, match="others by now"):
            reader.clear()
        reader.enqueue("more", 1)
    assert counts(database)["operations"] == counts(database)["outbox"] == 4


def test_an_enqueue_that_is_not_committed_yet_is_waited_for(database: postgres.Database) -> None:
    with database.connect() as connection, books.opened(database.url) as reader, ThreadPoolExecutor(1) as aside:
        connection.autocommit = False
        enqueue(connection, tenant="ada", provider="genace")
        clearing = aside.submit(reader.clear)
        with database.connect() as watching:
            until(lambda: waits_for_a_lock(watching))
        connection.commit()
        with pytest.raises(Refused, match="others by now"):
            clearing.result()
    assert counts(database)["operations"] == 1


def test_only_the_workers_of_the_measurement_are_forgotten(database: postgres.Database, tmp_path: Path) -> None:
    with measuring_on(database, tmp_path) as place, database.connect() as connection:
        connection.cursor().executemany(
            "insert into coatcheck.workers (incarnation, version, roles, started_at, seen_at) values (%s, '1', '{}', now(), now())",
            [("mine",), ("theirs",)],
        )
        place.incarnations.append("mine")
    with database.connect() as connection:
        assert connection.execute("select incarnation from coatcheck.workers").fetchall() == [("theirs",)]


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
    assert terminal.run("bench", "--list", "costz").code == 2


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


def test_a_server_that_a_killed_run_left_without_images_has_them_again(tmp_path: Path) -> None:
    seams = Seams.real()
    left = DevPostgres(tmp_path / "postgres", seams=seams).start()
    with psycopg.connect(left.url("postgres"), autocommit=True) as connection:
        connection.execute("alter system set full_page_writes = off")
    left.stop()
    with (
        ground.opened(tmp_path, url=None, scale=QUICK, seams=seams, telling=lambda _: None) as place,
        psycopg.connect(place.url) as connection,
    ):
        shown = connection.execute("show full_page_writes").fetchone()
    assert shown == ("on",)
