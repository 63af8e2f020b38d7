"""Who cannot reach the database is told why and where, and neither user nor password is shown."""

import asyncio
import socket

import pytest

import postgres
from coatcheck.errors import CoatcheckError, SettingInvalid
from coatcheck.store.blocking import connected
from coatcheck.store.db import connect

SECRET = "canary-password"


def refused(url: str) -> CoatcheckError:
    with pytest.raises(CoatcheckError) as blocking, connected(url, "test"):
        pass
    with pytest.raises(CoatcheckError) as waiting:
        asyncio.run(connect(url, "test"))
    assert str(waiting.value) == str(blocking.value)
    assert SECRET not in f"{blocking.value} {blocking.value.next}"
    assert "ada" not in f"{blocking.value} {blocking.value.next}"
    return blocking.value


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1/shop", "at 127.0.0.1 port 1, database shop: the connection was refused"),
        ("nowhere.invalid/shop", "at nowhere.invalid, database shop: the host is unknown"),
        ("/shop?host=/nonexistent", "at /nonexistent, database shop: there is no such socket"),
    ],
)
def test_where_nobody_answers(address: str, said: str) -> None:
    error = refused(f"postgresql://ada:{SECRET}@{address}")
    assert said in error.message
    assert "nothing changed" in error.next


def test_where_the_server_says_no(database: postgres.Database) -> None:
    assert "the database does not exist (3D000)" in refused(database.url.replace(database.name, "nothere")).message
    no_role = refused(database.url.replace("//postgres@", f"//ada:{SECRET}@"))
    assert "the role or its password was not accepted" in no_role.message


def test_where_nobody_speaks() -> None:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://ada:{SECRET}@127.0.0.1:{server.getsockname()[1]}/shop"
        assert "no answer came in time" in refused(url).message


def test_an_address_that_cannot_be_read_gets_a_next_step(database: postgres.Database) -> None:
    slip = refused(f"{database.url}&aplication_name=x")
    assert (type(slip), slip.next) == (SettingInvalid, "correct or remove the parameter aplication_name")
    assert "postgresql://user@host:port/database" in refused(f"postgresql://ada:{SECRET}@[::1/db").next
