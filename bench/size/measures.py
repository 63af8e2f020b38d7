"""The questions that are asked of a large store, each answered in milliseconds, bytes or operations a second."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from bench.size.crowd import TENANTS
from coatcheck.bench import lifecycle
from coatcheck.bench.books import PROVIDER
from coatcheck.bench.figure import quantile
from coatcheck.bench.ground import Ground
from coatcheck.core.actions import Action
from coatcheck.core.identity import parse_operation_id
from coatcheck.core.operation import OperationId
from coatcheck.errors import Failed
from coatcheck.queue.leases import Leases, Message, Release, Wanted
from coatcheck.seams import Seams
from coatcheck.store import db
from coatcheck.store.audit import audit
from coatcheck.store.operations import scan
from coatcheck.store.retention import Rule, retire

ROOM = 100
Figures = Mapping[str, float]
_WANTED = Wanted(action=Action.DISPATCH, provider=PROVIDER, account=PROVIDER, room=ROOM, lease_s=600)
_RULE = Rule(days=0, tenant_id=None, actor="bench", reason=None)
_SIZES = """
select relname as name, pg_table_size(oid) as table_bytes, pg_indexes_size(oid) as index_bytes
from pg_class where relnamespace = 'coatcheck'::regnamespace and relkind = 'r' and pg_total_relation_size(oid) > 1000000
order by relname
"""
_INFLOW = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 'inflow ' || mod(n, 10), 'operation_key', 'inflow ' || n,
  'provider', 'bench', 'specification_text', '{"prompt":"' || repeat(md5(n::text), 12) || '"}'))
from generate_series(%(first)s::integer, %(last)s::integer) as n
"""
SWEPT = ("outbox", "operations", "history", "specifications", "dispatches", "deliveries")
"""What retention leaves dead rows in, and what claims do."""
_PLAIN = """
with due as (
  select operation_id, lane
  from coatcheck.outbox
  where provider = 'bench' and action = 'dispatch' and parked_at is null and visible_at <= now()
  order by visible_at
  limit 100
  for no key update skip locked
)
update coatcheck.outbox as held
set visible_at = clock_timestamp() + interval '10 minutes', leased_by = 'bench', leased_at = clock_timestamp(), lease_count = 1
from due
where held.operation_id = due.operation_id and held.lane = due.lane
returning held.*
"""
_GIVEN_BACK = "update coatcheck.outbox set visible_at = now(), leased_by = null, leased_at = null, lease_count = 0 where leased_by = 'bench'"
_LIVED = """
select count(*) / extract(epoch from max(operations.updated_at) - min(dispatches.begun_at))::float8
from coatcheck.operations
join coatcheck.dispatches using (operation_id)
where operations.operation_id >= %s and operations.delivery_state = 'delivered'
"""


def sizes(connection: psycopg.Connection[Any], count: int) -> Figures:
    """Bytes of each table and of its indexes for one operation."""
    found: dict[str, float] = {}
    with connection.cursor(row_factory=dict_row) as cursor:
        for row in cursor.execute(_SIZES).fetchall():
            found[f"{row['name']}, bytes an operation"] = row["table_bytes"] / count
            found[f"{row['name']}, indexes, bytes an operation"] = row["index_bytes"] / count
    return found | {"all of it, bytes an operation": sum(found.values())}


async def claims(ground: Ground, rounds: int) -> list[float]:
    """Claim a hundred and give them back, over and over; milliseconds of each claim."""
    clock, taken = ground.seams.clock, list[float]()
    async with db.opened(ground.url, seams=ground.seams, name="bench") as database:
        leases = Leases(database, "bench")
        for _ in range(rounds):
            began = clock.boottime()
            found: Sequence[Message] = await leases.claim([_WANTED], doubts=ROOM, doubt_lease_s=30)
            taken.append((clock.boottime() - began) * 1000)
            await leases.release([Release(message=each, delay_s=0) for each in found])
    return taken


def plain_claims(connection: psycopg.Connection[Any], rounds: int) -> list[float]:
    """The floor of `claims`: a hundred by time alone, without tokens, turns, budgets, suspects or doubts, which is no claim of coatcheck's."""
    clock, taken = Seams.real().clock, list[float]()
    for _ in range(rounds):
        began = clock.boottime()
        connection.execute(_PLAIN.encode(), prepare=True).fetchall()
        taken.append((clock.boottime() - began) * 1000)
        connection.execute(_GIVEN_BACK.encode())
    return taken


def lives(ground: Ground, count: int) -> float:
    """Whole lives a second of so many operations of one tenant, enqueued beforehand, by a worker of its own. Nothing else may be due."""
    with ground.books() as books, ground.serving() as service, psycopg.connect(ground.url) as connection:
        with ground.working(service) as hand:
            # not `lifecycle.warm`, whose operations are the same each time: here nothing is cleared
            books.enqueue(f"warm {ground.seams.ids.uuid7()} ", lifecycle.WARM)
            lifecycle.finished(ground, books, lifecycle.WARM)
            hand.drain()
        first, *_ = books.enqueue(f"life {ground.seams.ids.uuid7()} ", count, tenants=1)
        with ground.working(service) as hand:
            lifecycle.finished(ground, books, count)
            hand.drain()
        service.check_posts(count + lifecycle.WARM)
        row = connection.execute(_LIVED.encode(), [parse_operation_id(first.operation_id)]).fetchone()
    if row is None or row[0] is None:
        raise Failed(f"expected {count} operations that are delivered, got none", next="see what the worker says above")
    return float(row[0])


def vacuumed(connection: psycopg.Connection[Any], tables: Sequence[str]) -> Figures:
    """Milliseconds that a vacuum of each table takes as it stands."""
    clock, found = Seams.real().clock, dict[str, float]()
    for table in tables:
        began = clock.boottime()
        connection.execute(sql.SQL("vacuum {}").format(sql.Identifier("coatcheck", table)))
        found[f"vacuum of {table}, ms"] = (clock.boottime() - began) * 1000
    return found


def told(name: str, taken: list[float]) -> Figures:
    """The median and the 99th percentile."""
    return {f"{name}, p50, ms": quantile(taken, 0.5), f"{name}, p99, ms": quantile(taken, 0.99)}


async def lists(ground: Ground) -> Figures:
    """The first page of a list of all tenants, of one tenant, and a whole tenant."""
    wishes = {
        "list, 100 of all tenants": (None, 100),
        "list, 100 of one tenant": ("tenant 7", 100),
        "list, all of one tenant of a thousand": ("tenant 7", None),
    }
    found: dict[str, float] = {}
    async with db.opened(ground.url, seams=ground.seams, name="bench") as database:
        for name, (tenant, limit) in wishes.items():
            times = []
            for _ in range(5):
                began = ground.seams.clock.boottime()
                _ = [each async for each in scan(database, tenant_id=tenant, phase=None, limit=limit)]
                times.append((ground.seams.clock.boottime() - began) * 1000)
            found[f"{name}, ms"] = quantile(times, 0.5)
    return found


async def audited(ground: Ground, most: int, after: OperationId) -> Figures:
    """The audit of so many operations: how many a second, and how many findings (0, or this store is not sound)."""
    began, count, findings = ground.seams.clock.boottime(), 0, 0
    async for part in audit(ground.url, checks=frozenset(f"S{n}" for n in range(1, 13)) - {"S8"}, after=after):
        count, findings = part.operation_count, findings + len(part.findings)
        if count >= most:
            break
    seconds = ground.seams.clock.boottime() - began
    return {"audit, operations": count, "audit, operations a second": count / seconds, "audit, findings": findings}


async def retired(ground: Ground, most: int, inflow: int) -> Figures:
    """Retention of so many while as many a second are enqueued beside it: how many a second go, and how many came."""
    clock, gone, stop = ground.seams.clock, 0, asyncio.Event()
    producing = asyncio.create_task(_enqueued(ground, inflow, stop))
    async with db.opened(ground.url, seams=ground.seams, name="bench") as database:
        began = clock.boottime()
        async for part in retire(database, _RULE, faults=ground.seams.faults):
            gone += part.retired_count
            if gone >= most:
                break
        seconds = clock.boottime() - began
        stop.set()
        came = await producing
    name = f"retention beside {inflow} enqueues a second"
    return {f"{name}, retired a second": gone / seconds, f"{name}, enqueued a second": came / seconds}


async def _enqueued(ground: Ground, rate: int, stop: asyncio.Event) -> int:
    """Ten batches a second, as long as it takes."""
    clock, batch, done = ground.seams.clock, max(1, rate // 10), 0
    async with await psycopg.AsyncConnection.connect(ground.url, autocommit=True) as connection:
        began, base = clock.boottime(), int(clock.boottime() * 1000) % 1_000_000_000
        while rate and not stop.is_set():
            await connection.execute(_INFLOW.encode(), {"first": base + done, "last": base + done + batch - 1})
            done += batch
            await ground.seams.sleep(max(0.0, began + done / rate - clock.boottime()))
    return done


@contextmanager
def snapshot_held(ground: Ground) -> Iterator[None]:
    """Somebody reads, and goes on reading."""
    with psycopg.connect(ground.url) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from coatcheck.outbox")
        yield


async def churned(ground: Ground, moves: int) -> Sequence[list[float]]:
    """The milliseconds of claims, in five fifths of so many leases taken and given back."""
    taken = await claims(ground, max(5, moves // (2 * ROOM)))
    size = len(taken) // 5
    return [taken[first : first + size] for first in range(0, 5 * size, size)]


def middle(connection: psycopg.Connection[Any]) -> OperationId:
    """An operation in the middle of the crowd."""
    row = connection.execute(
        "select operation_id from coatcheck.operations where operation_key = 'crowd ' || (select (count(*) / 2)::bigint"
        " from coatcheck.operations where tenant_id = 'tenant 7') * %s limit 1",
        [TENANTS],
    ).fetchone()
    return OperationId(row[0] if row else UUID(int=0))
