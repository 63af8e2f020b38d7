"""A fixed small run, counted: what one operation costs PostgreSQL, alone and in a crowd, on a server where nobody else writes.

Each role has its own turn and a queue that is complete before it and fits into one claim, so none depends on how quick the machine is. Alone: one action in hand at
a time. In a crowd: everything in hand at once, and what is saved waits until all have come as far (`gates`).
"""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

import postgres
from coatcheck.app.workplace import worker_of
from coatcheck.bench import books
from coatcheck.bench.books import PROVIDER, Books, Counters
from coatcheck.bench.witness import Tally
from coatcheck.config import Settings, load_settings
from coatcheck.config.names import provider_variable
from coatcheck.core.actions import Action
from coatcheck.devdb import DevPostgres
from coatcheck.seams import Seams
from coatcheck.sim import ServiceSettings, ThreadedService, simulated_service
from coatcheck.store.schema import migrate_up
from counters.gates import Gates
from waiting import until

ALONE, CROWD = "alone", "in a crowd"
OPERATIONS: Mapping[str, int] = {ALONE: 20, CROWD: 90}
TURNS = (Action.DISPATCH, Action.OBSERVE, Action.DELIVER)
QUIET = {
    **postgres.SETTINGS,
    # nothing may write but the worker and the enqueues
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "track_commit_timestamp": "off",
}
BESIDE = frozenset(
    {
        "queue/left",
        "queue/renew",
        "queue/retry_waiting",
        "queue/sleep",
        "store/check_installation",
        "store/list_providers",
        "store/read_installation",
        "store/register_providers",
        "store/report_worker",
    }
)
"""Statements that a worker runs at its beginning, at its end and now and then: none of them comes with an operation."""
PACE = ServiceSettings(queued_s=(0, 0), processing_s=(2, 2))
"""Long enough for a reply to tell of a render that goes on, so that each is looked at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one run: statements by name, without those beside; rows and log in bytes, enqueues included."""

    operations: int
    statements: Mapping[str, int]
    rows: int
    wal_bytes: int
    final_wal_bytes: int
    """Of the log, what was written until the render's end was saved, so all but the delivery."""


def counted(manner: str) -> Cost:
    """Run it on a server of its own."""
    count = OPERATIONS[manner]
    places = {ALONE: 1, CROWD: count + 50}[manner]
    with _served() as server, simulated_service(seed=7, settings=PACE) as service:
        url = server.url()
        with psycopg.connect(url) as connection:
            migrate_up(connection)
        with tempfile.TemporaryDirectory() as folder, books.opened(url) as reader:
            settings = _settings(url, service, Path(folder), places)
            _lived(
                reader, settings, ALONE, 1
            )  # what is done once only, such as the first page of a table, is not counted
            before, tally, after = reader.counters(), Tally(), {}
            for action, turn, counters in _lived(reader, settings, manner, count):
                tally.statements.update(turn.statements)
                after[action] = counters
            lives = reader.lifecycles()
        assert lives.delivered_count == count + 1
        assert len(service.posts) == count + 1
    return _cost(count, tally, before, after)


def _lived(reader: Books, settings: Settings, manner: str, count: int) -> list[tuple[Action, Tally, Counters]]:
    """Enqueue so many and let each role have its turn: what each turn ran, and what was counted when its sessions had reported."""
    with books.opened(settings.database_url or "") as own:
        own.enqueue(f"{manner} {count}", count)
    turns = []
    for action in TURNS:
        tally = asyncio.run(_turn(settings, action, Gates(is_open=manner == ALONE)))
        until(lambda: reader.session_count() == 0)
        turns.append((action, tally, reader.counters()))
    return turns


async def _turn(settings: Settings, action: Action, gates: Gates) -> Tally:
    """A worker of one role, until it is idle."""
    seams = replace(Seams.real(), faults=gates)
    url = settings.database_url or ""
    async with worker_of(settings, url, seams=seams, roles=[action], opening=gates.opened) as (worker, _):
        await worker.run(until_idle=True)
    return gates


def _cost(count: int, tally: Tally, before: Counters, after: Mapping[Action, Counters]) -> Cost:
    ended = after[TURNS[-1]]
    return Cost(
        operations=count,
        statements={name: number for name, number in sorted(tally.statements.items()) if name not in BESIDE},
        rows=ended.row_count - before.row_count,
        wal_bytes=ended.wal_bytes - before.wal_bytes,
        final_wal_bytes=after[Action.OBSERVE].wal_bytes - before.wal_bytes,
    )


def _settings(url: str, service: ThreadedService, folder: Path, places: int) -> Settings:
    environ = {
        "COATCHECK_DATABASE_URL": url,
        "COATCHECK_HOME": str(folder),
        "COATCHECK_SINK": (folder / "outputs").as_uri(),
        "COATCHECK_WAKE": "poll",
        **{f"COATCHECK_CONCURRENCY__{role}": str(places) for role in ("DISPATCH", "OBSERVE", "DELIVER")},
        provider_variable(PROVIDER, "BASE_URL"): service.base_url,
        provider_variable(PROVIDER, "API_KEY"): "counted-key",
        # a slow machine may take its time: a POST that left too late would be sent again, and counted
        provider_variable(PROVIDER, "SEND_S"): "60",
        provider_variable(PROVIDER, "TIMEOUT_S"): "60",
    }
    return load_settings(environ, folder)


@contextmanager
def _served() -> Iterator[DevPostgres]:
    """A server that nobody else uses."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        server = DevPostgres(home, seams=Seams.real(), settings=QUIET).start()
        try:
            yield server
        finally:
            server.remove()
