"""`python -m bench.size --operations 5000000`: sizes, claims, lists, audit, churn under a held snapshot, retention. One figure a line."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import psycopg

from bench.refusals import told
from bench.size import measures
from bench.size.crowd import gather
from coatcheck.bench import QUICK
from coatcheck.bench.ground import Ground, opened
from coatcheck.config import load_settings
from coatcheck.seams import Seams
from coatcheck.store import db
from coatcheck.store.pauses import register


def main() -> None:
    """Fill a store, ask, print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.size", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--operations", type=_count, default=100_000, help="operations that are over")
    parser.add_argument("--live", type=_count, default=10_000, help="operations that are due")
    parser.add_argument("--rounds", type=_count, default=300, help="claims of a hundred")
    parser.add_argument("--audit", type=_count, default=100_000, help="operations to audit")
    parser.add_argument("--retire", type=_count, default=100_000, help="operations to retire")
    parser.add_argument("--inflow", type=int, default=1000, help="operations enqueued a second meanwhile")
    parser.add_argument(
        "--lives", type=_count, default=2000, help="whole lives, on the empty store and on the full one"
    )
    parser.add_argument(
        "--moves", type=_count, default=60_000, help="leases taken and given back under a held snapshot"
    )
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(Path(folder) / "bench", url=None, scale=QUICK, seams=Seams.real(), telling=_say) as ground,
        psycopg.connect(ground.url, autocommit=True) as connection,
    ):
        asyncio.run(_registered(ground))
        _print({"lives a second on an empty store": measures.lives(ground, asked.lives)})
        gather(connection, asked.operations, _say)
        _print({"lives a second on the full one": measures.lives(ground, asked.lives)})
        with ground.books() as books:
            books.enqueue("due", asked.live, tenants=10)
            books.analyze()
        _print(measures.sizes(connection, asked.operations))
        _print(measures.told("claim of 100", asyncio.run(measures.claims(ground, asked.rounds))))
        _print(measures.told("claim of 100 by time alone", measures.plain_claims(connection, asked.rounds)))
        _print(asyncio.run(measures.lists(ground)))
        _print(asyncio.run(measures.audited(ground, asked.audit, measures.middle(connection))))
        _snapshot(ground, asked.moves)
        _print(asyncio.run(measures.retired(ground, asked.retire, asked.inflow)))
        _print({f"dead rows after retention, {name}": count for name, count in _dead(connection)})
        _print(measures.vacuumed(connection, measures.SWEPT))


def _count(word: str) -> int:
    count = int(word)
    if count < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {count}")
    return count


def _snapshot(ground: Ground, moves: int) -> None:
    with measures.snapshot_held(ground):
        for number, taken in enumerate(asyncio.run(measures.churned(ground, moves)), start=1):
            _print(measures.told(f"claim under a held snapshot, fifth {number} of {moves} moves", taken))
    _print(measures.told("claim after the snapshot went", asyncio.run(measures.claims(ground, 50))))
    with psycopg.connect(ground.url, autocommit=True) as connection:
        connection.execute("vacuum coatcheck.outbox")
    _print(measures.told("claim after a vacuum", asyncio.run(measures.claims(ground, 50))))


def _dead(connection: psycopg.Connection[tuple[str, int]]) -> list[tuple[str, int]]:
    connection.execute("select pg_stat_force_next_flush()")
    return connection.execute(
        "select relname, n_dead_tup from pg_stat_user_tables where schemaname = 'coatcheck' and n_dead_tup > 1000 order by 1"
    ).fetchall()


async def _registered(ground: Ground) -> None:
    settings = load_settings({"COATCHECK_PROVIDERS__BENCH__BASE_URL": "http://127.0.0.1:1"}, ground.home)
    async with db.opened(ground.url, seams=ground.seams, name="bench") as database:
        await register(database, settings)


def _print(figures: measures.Figures) -> None:
    sys.stdout.writelines(f"{name:<70} {value:>12,.1f}\n" for name, value in figures.items())
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    with told():
        main()
