"""Whether the server has room for the connections of workers: never, not now, or yes; and what doctor says of it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import postgres
from coatcheck.app.check import Verdict
from coatcheck.app.connections import check_room, connections_of, room_check
from coatcheck.config import Wake, load_settings
from coatcheck.errors import Refused
from coatcheck.seams import Seams
from coatcheck.store.blocking import look_for_room
from coatcheck.store.connection_room import Bound, Room, read_room
from coatcheck.store.db import opened

SERVER = Bound(words="max_connections 20, of which 3 are reserved", remedy="raise it", most_count=17, taken_count=2)
ROLE = Bound(words="connection limit 15 of the role r", remedy="alter role r", most_count=15, taken_count=0)


def room(*bounds: Bound) -> Room:
    return Room(backend_pid=1, bounds=bounds)


def test_a_worker_takes_one_less_that_polls_and_one_more_with_a_port(tmp_path: Path) -> None:
    settings = load_settings({}, tmp_path)
    polling = replace(settings, wake=Wake.POLL)
    assert [connections_of(settings), connections_of(polling), connections_of(settings, has_health=True)] == [7, 6, 8]


def test_at_the_limit_all_is_well() -> None:
    assert check_room(room(SERVER, ROLE), processes=2, each_count=7) is None
    assert check_room(room(replace(SERVER, taken_count=3)), processes=2, each_count=7) is None


def test_what_can_never_fit_is_refused_with_the_sum_and_the_most_that_would() -> None:
    with pytest.raises(Refused) as refused:
        check_room(room(SERVER, ROLE), processes=3, each_count=7)
    assert refused.value.message == (
        "expected room for 21 connections to PostgreSQL (3 processes, 7 each), got 15 at most (connection limit 15 of the role r)"
    )
    assert refused.value.next.startswith("lower --processes to 2, or alter role r;")


def test_one_process_that_can_never_fit_is_not_told_to_be_fewer() -> None:
    with pytest.raises(Refused) as refused:
        check_room(room(replace(ROLE, most_count=6)), processes=1, each_count=7)
    assert refused.value.message.startswith("expected room for 7 connections to PostgreSQL, got 6 at most")
    assert "lower" not in refused.value.next


def test_what_does_not_fit_at_the_moment_is_a_warning_with_the_numbers() -> None:
    full = replace(SERVER, taken_count=4)
    assert check_room(room(full, ROLE), processes=2, each_count=7) == (
        "14 connections to PostgreSQL (2 processes, 7 each) are needed and 13 are free "
        "(max_connections 20, of which 3 are reserved, 4 taken): close others, or raise it"
    )


def test_doctor_tells_for_how_many_more_there_is_room_and_when_there_is_none() -> None:
    found = room_check(room(SERVER, ROLE), 7, is_pooled=False)
    assert (found.verdict, found.remedy) == (Verdict.OK, "")
    assert found.reading.endswith("room for 2 more worker processes")
    assert room_check(room(replace(SERVER, taken_count=11)), 7, is_pooled=False).verdict is Verdict.WARNING
    assert room_check(room(replace(ROLE, most_count=6)), 7, is_pooled=False).verdict is Verdict.FAILED


def test_doctor_says_that_a_poolers_limits_cannot_be_seen() -> None:
    found = room_check(room(replace(ROLE, most_count=6)), 7, is_pooled=True)
    assert (found.verdict, "cannot be seen" in found.reading, "max_client_conn" in found.limit) == (
        Verdict.OK,
        True,
        True,
    )


def test_the_room_is_what_the_server_tells_a_role_of_its_own_and_of_all(database: postgres.Database) -> None:
    """A role and a database with limits, and a session that another role has open; of that one this role sees no more than that it is there."""
    role = f"few_{database.name}"
    with database.connect() as admin:
        admin.execute(f"create role {role} login connection limit 5".encode())
        admin.execute(f"alter database {database.name} connection limit 9".encode())
        try:
            few = make_conninfo(database.url_beside or database.url, user=role)
            with psycopg.connect(few, autocommit=True) as own, psycopg.connect(few):
                found, is_pooled = look_for_room(own)
            with psycopg.connect(database.url_beside or database.url) as mighty:
                unbound, _ = look_for_room(mighty)
        finally:
            admin.execute(f"drop role {role}".encode())
    most = {each.words: each.most_count for each in found.bounds}
    assert not is_pooled
    assert most == {
        "max_connections 200, of which 3 are reserved": 197,
        f"connection limit 5 of the role {role}": 5,
        f"connection limit 9 of the database {database.name}": 9,
    }
    of_all, of_role, of_database = (each.taken_count for each in found.bounds)
    assert (of_role, of_database) == (1, 2)
    assert of_all >= of_database
    assert (found.ever.most_count, found.now.free_count) == (5, 4)
    assert [each.words for each in unbound.bounds] == ["max_connections 200"]


def test_the_same_is_read_beside_a_running_loop(database: postgres.Database) -> None:
    async def read() -> Room:
        async with opened(database.url, seams=Seams.real(), name="test") as line:
            return await read_room(line)

    assert [each.most_count for each in asyncio.run(read()).bounds] == [200]
