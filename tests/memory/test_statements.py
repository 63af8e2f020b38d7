"""No statement is forgotten: each of the rooms that workers use is carried out in memory, or named with the reason why it is not."""

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest

from coatcheck.errors import CommitUnknown
from coatcheck.store.statements import statement
from memory.line import MemoryDatabase
from memory.statements import EFFECTS, OUT_OF_SCOPE, names
from memory.store import Memory

REQUEST = {"v": 1, "tenant_id": "t1", "operation_key": "k", "provider": "genace", "specification_text": "{}"}
INSTALLATION = statement("store", "read_installation")


def test_each_statement_is_carried_out_or_has_a_reason() -> None:
    assert EFFECTS.keys() | OUT_OF_SCOPE.keys() == set(names().values())
    assert not EFFECTS.keys() & OUT_OF_SCOPE.keys()


@pytest.mark.parametrize("name", OUT_OF_SCOPE)
def test_one_that_is_not_carried_out_says_so(name: str) -> None:
    with pytest.raises(LookupError, match=f"{name} is not carried out in memory: {OUT_OF_SCOPE[name]}"):
        _memory().run(statement(*name.split("/")), {})


def test_a_text_that_nobody_knows_is_refused() -> None:
    with pytest.raises(LookupError, match="select 1"):
        _memory().run("select 1", {})


def _memory() -> Memory:
    return Memory(lambda: datetime(2027, 1, 1, tzinfo=UTC))


def test_equal_states_are_equal_values_and_have_equal_digests() -> None:
    first, second = _memory(), _memory()
    assert first.snapshot() == second.snapshot()
    first.enqueue(REQUEST)
    assert first.digest() != second.digest()
    second.enqueue(REQUEST)
    assert (first.snapshot(), first.digest()) == (second.snapshot(), second.digest())


def test_what_is_enqueued_is_heard_of_only_while_somebody_sleeps() -> None:
    memory, heard = _memory(), []
    memory.on_notify(lambda: heard.append("!"))
    memory.enqueue({**REQUEST, "operation_key": "k1"})
    assert heard == []
    memory.run(statement("queue", "sleep"), {"sleep_s": 10})
    memory.enqueue({**REQUEST, "operation_key": "k2"})
    assert heard == ["!"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_breaks_makes_a_commit_unknown(when: str) -> None:
    async def breaks(name: str) -> None:
        assert name == "queue/sleep"
        raise psycopg.OperationalError("the connection is lost")

    memory = _memory()
    line = MemoryDatabase(memory, before=breaks) if when == "before" else MemoryDatabase(memory, after=breaks)
    with pytest.raises(CommitUnknown):
        asyncio.run(_sleep(line))
    (wake_up,) = memory.snapshot()["wake_ups"]
    assert (wake_up["sleeping_until"] > datetime(2027, 1, 1, tzinfo=UTC)) == (when == "after")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_statement_that_is_cancelled_is_carried_out_as_a_whole_or_not_at_all(when: str) -> None:
    async def cancelled(name: str) -> None:
        raise asyncio.CancelledError

    memory = _memory()
    line = MemoryDatabase(memory, before=cancelled) if when == "before" else MemoryDatabase(memory, after=cancelled)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_sleep(line))
    (wake_up,) = memory.snapshot()["wake_ups"]
    assert (wake_up["sleeping_until"] > datetime(2027, 1, 1, tzinfo=UTC)) == (when == "after")


async def _sleep(line: MemoryDatabase) -> None:
    await line.fetch(statement("queue", "sleep"), {"sleep_s": 10})
