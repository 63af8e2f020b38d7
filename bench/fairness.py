"""What one tenant's backlog costs the others: `python -m bench.fairness`. Their dispatch delay, idle and under a flood, in one run.

A worker in a process of its own, as the command line starts it; the delay is from an operation's creation to its dispatch's mark.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

from bench.refusals import told
from coatcheck.bench import QUICK
from coatcheck.bench.books import PROVIDER
from coatcheck.bench.ground import opened
from coatcheck.errors import Failed
from coatcheck.seams import NO_FAULTS, Seams
from coatcheck.store.budgets import KEPT, Budget, change_budget

FLOOD = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 'flood', 'operation_key', 'flood ' || n,
  'provider', 'bench', 'specification_text', '{"prompt":"flood ' || n || '"}'))
from generate_series(%(first)s::integer, %(last)s::integer) as n
"""
ONE = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', %(tenant)s::text, 'operation_key', %(key)s::text,
  'provider', 'bench', 'specification_text', jsonb_build_object('prompt', %(key)s::text)::text))
"""
DELAYS = """
select extract(epoch from dispatches.begun_at - operations.created_at)::float8 * 1000
from coatcheck.operations
left join coatcheck.dispatches on dispatches.operation_id = operations.operation_id and dispatches.number = 1
where operations.operation_key like %(keys)s
order by operations.created_at
"""
DISPATCHED = "select count(*) from coatcheck.dispatches"
LEFT = """
select count(*)
from coatcheck.operations
where tenant_id = 'flood' and phase = 'prepared'
"""
BATCH = 5000
BEGUN = 100
"""Dispatches of the flood after which the others begin."""
TENANTS = ("ada", "ben", "cyd", "zoe")
WAIT_S = 120.0
Connection = psycopg.Connection[tuple[float | None]]


def figure(connection: Connection, query: str) -> float:
    """One figure."""
    row = connection.execute(query.encode()).fetchone()
    return (row[0] if row else None) or 0


def others(connection: Connection, seams: Seams, phase: str, count: int, every_s: float) -> Sequence[float]:
    """Enqueue one operation of another tenant now and then, and wait for their dispatches; each one's delay in milliseconds."""
    for number in range(count):
        tenant = TENANTS[number % len(TENANTS)]
        connection.execute(ONE.encode(), {"tenant": tenant, "key": f"{phase} {number}"})
        seams.pause(every_s * seams.jitter.between(0.5, 1.5))
    end = seams.clock.boottime() + WAIT_S
    while True:
        delays = [row[0] for row in connection.execute(DELAYS.encode(), {"keys": f"{phase} %"})]
        known = [delay for delay in delays if delay is not None]
        if len(known) == len(delays) or seams.clock.boottime() > end:
            return known
        seams.pause(0.2)


def main() -> None:
    """Measure and print."""
    asked = parsed()
    seams = Seams.real()
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(Path(folder) / "bench", url=None, scale=QUICK, seams=seams, telling=lambda _: None) as ground,
        ground.serving() as service,
        psycopg.connect(ground.url, autocommit=True) as connection,
    ):
        with ground.working(service):
            others(connection, seams, "warm", 10, asked.every_s)
            budget = Budget(max_in_flight=asked.max_in_flight or KEPT, dispatches_per_s=asked.dispatches_per_s or KEPT)
            asyncio.run(change_budget(ground.url, PROVIDER, budget, faults=NO_FAULTS))
            idle = others(connection, seams, "idle", asked.others, asked.every_s)
        for first in range(1, asked.flood + 1, BATCH):
            last = min(asked.flood, first + BATCH - 1)
            connection.execute(FLOOD.encode(), {"first": first, "last": last})
        with ground.working(service):
            before = figure(connection, DISPATCHED)
            while figure(connection, DISPATCHED) < before + BEGUN:
                seams.pause(0.05)
            began, before = seams.clock.boottime(), figure(connection, DISPATCHED)
            flooded = others(connection, seams, "flooded", asked.others, asked.every_s)
            rate = (figure(connection, DISPATCHED) - before) / (seams.clock.boottime() - began)
            if not figure(connection, LEFT):
                raise Failed("expected the flood to outlast the others, and it was over", next="a larger --flood")
        report(asked.flood, idle, flooded, rate)


def parsed() -> argparse.Namespace:
    """What was asked for; the parser refuses what cannot be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.fairness", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--flood", type=int, default=50_000, help="operations of the one tenant, enqueued beforehand")
    parser.add_argument(
        "--others", type=int, default=100, help="operations of the others, idle and again under the flood"
    )
    parser.add_argument("--every-s", type=float, default=0.15, help="seconds between two of the others, on the average")
    parser.add_argument("--dispatches-per-s", type=float, help="a budget of the account")
    parser.add_argument("--max-in-flight", type=int, help="a budget of the account")
    asked = parser.parse_args()
    for name, least, value in (("--flood", 2 * BEGUN, asked.flood), ("--others", 2, asked.others)):
        if value < least:
            parser.error(f"{name}: expected at least {least}, got {value}")
    return asked


def report(flood: int, idle: Sequence[float], flooded: Sequence[float], rate: float) -> None:
    """Print one figure a line."""
    (idle_p50, idle_p95), (flooded_p50, flooded_p95) = quantiles(idle), quantiles(flooded)
    lines = {
        "operations of the one tenant": f"{flood}",
        "dispatches per second under the flood, all": f"{rate:.0f}",
        "operations of the others, idle / flooded": f"{len(idle)} / {len(flooded)}",
        "dispatch delay idle, ms, p50 / p95": f"{idle_p50:.1f} / {idle_p95:.1f}",
        "dispatch delay under the flood, ms, p50 / p95": f"{flooded_p50:.1f} / {flooded_p95:.1f}",
        "flooded to idle, p50 / p95": f"{flooded_p50 / idle_p50:.1f} / {flooded_p95 / idle_p95:.1f}",
    }
    sys.stdout.writelines(f"{name:<50} {line}\n" for name, line in lines.items())


def quantiles(delays: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    cuts = statistics.quantiles(delays, n=100)
    return cuts[49], cuts[94]


if __name__ == "__main__":
    with told():
        main()
