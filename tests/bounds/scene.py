"""A queue to drain, a worker to drain it, and the database's own figures of what that cost."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg

import postgres
from coatcheck.app.workplace import worker_of
from coatcheck.config import Settings, load_settings
from coatcheck.seams import Seams
from waiting import until

ENQUEUE = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 'ada', 'operation_key', 'key ' || n,
  'provider', 'genace', 'specification_text', '{"prompt":"picture ' || n || '"}'))
from generate_series(1, %(count)s) as n
"""
OURS = "datname = %(name)s and application_name like 'coatcheck %%'"


def settings_for(base_url: str, folder: Path, **provider: str) -> Settings:
    """Settings of a worker with short looks; `provider` adds settings of the one provider, by their names in upper case."""
    chosen = {"BASE_URL": base_url, "API_KEY": "key-for-tests", "LOOK_MIN_S": "0.05", **provider}
    environ = {f"COATCHECK_PROVIDERS__GENACE__{name}": value for name, value in chosen.items()}
    return load_settings({"COATCHECK_HOME": str(folder), **environ}, folder)


def enqueue(database: postgres.Database, count: int) -> None:
    """Commit `count` operations at once."""
    with psycopg.connect(database.url) as connection:
        connection.execute(ENQUEUE, {"count": count})


def drain(settings: Settings, database: postgres.Database, seams: Seams) -> None:
    """Run one worker until nothing is left to do."""

    async def work() -> None:
        async with worker_of(settings, database.url, seams=seams) as (worker, _):
            await worker.run(until_idle=True)

    asyncio.run(work())


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Transactions that a database has seen, and how many of the server's wrote something (those alone get an id)."""

    transactions: int
    writes: int


class Watch:
    """Looks at one database from another one, so that looking costs the database nothing."""

    def __init__(self, database: postgres.Database) -> None:
        self._name = database.name
        self._connection = psycopg.connect(database.server.url("postgres"), autocommit=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def spent(self) -> Spent:
        """The figures so far. Backends hand theirs in when they end at the latest, so everybody must have left first."""
        until(lambda: not self.rows("select from pg_stat_activity where datname = %(name)s"))
        [(transactions, writes)] = self.rows(
            "select xact_commit + xact_rollback, pg_current_xact_id()::text::bigint from pg_stat_database"
            " where datname = %(name)s"
        )
        return Spent(transactions=transactions, writes=writes)

    def connections(self) -> int:
        """How many connections workers have to the database."""
        [(count,)] = self.rows(f"select count(*) from pg_stat_activity where {OURS}")
        return int(count)

    def open_transactions(self) -> list[tuple[str, str]]:
        """Workers' connections that are inside a transaction, with the state they are in."""
        return self.rows(
            f"select application_name, state from pg_stat_activity where {OURS} and xact_start is not null"
        )

    def rows(self, query: str) -> list[Any]:
        """The rows of a query that may name the database as `name`."""
        return self._connection.execute(query.encode(), {"name": self._name}).fetchall()
