"""What every story here plays on: a database, the simulated service, a sink, and workers in processes of their own.

The settings are short, and leases end because the database's time is moved, not because anybody waits for them.
"""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

import postgres
from coatcheck.app.workplace import worker_of
from coatcheck.config import Settings, load_settings
from coatcheck.core.fingerprint import fingerprint
from coatcheck.seams import Seams
from coatcheck.sim import ThreadedService
from faults.checker import Record, findings
from faults.child import Child, Started
from faults.nursery import Nursery
from faults.strike import Strike, Striking, written
from nursery.client import PYTHONPATH

LEASES_OVER_S = 120.0
"""More than any lease of these settings lasts."""
ALWAYS = {
    "API_KEY": "key-for-tests",
    "SEND_S": "5",
    "TIMEOUT_S": "10",
    "SERVICE_LAG_S": "0.2",
    "MARGIN_S": "0.1",
    "WAIT_S": "5",
    "OBSERVE_TIMEOUT_S": "10",
    "LOOK_MIN_S": "0.05",
}
QUICK = {"queued_s": 0, "processing_s": 0.15}
"""The course of a job whose first look, being held open, brings the final state."""


class Stage(ExitStack):
    """One test's world. `url` is where workers find the database: a test may put something in between."""

    def __init__(self, database: postgres.Database, sim: ThreadedService, folder: Path) -> None:
        super().__init__()
        self.database = database
        self.url = database.url
        self.sim = sim
        self.sink = folder / "sink"
        self.folder = folder
        self.nursery: Nursery | None = None
        """Where children come from; programs of their own, where there is none."""
        self._keys = itertools.count(1)
        self._children = itertools.count(1)
        self._connection = self._connected()
        self.callback(self._close)

    def __enter__(self) -> Self:
        return self

    def _connected(self) -> psycopg.Connection[dict[str, Any]]:
        """Beside any pooler, whose sessions a story may strike."""
        url = self.database.url_beside or self.database.url
        return psycopg.connect(url, autocommit=True, row_factory=dict_row, application_name="test")

    def _close(self) -> None:
        self._connection.close()

    def reconnect(self) -> None:
        """The story's own eyes: they do not survive a server that was struck."""
        self._close()
        self._connection = self._connected()

    def environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        """Variables of a worker; `changes` name a provider's setting, or with COATCHECK_ in front any other."""
        provider = {"BASE_URL": self.sim.base_url, **ALWAYS}
        provider |= {name: value for name, value in changes.items() if not name.startswith("COATCHECK_")}
        return {
            "COATCHECK_HOME": os.fspath(self.folder / "home"),
            "COATCHECK_SINK": self.sink.as_uri(),
            **{f"COATCHECK_PROVIDERS__GENACE__{name}": value for name, value in provider.items()},
            **{name: value for name, value in changes.items() if name.startswith("COATCHECK_")},
        }

    def settings(self, changes: Mapping[str, str] = {}) -> Settings:
        return load_settings(self.environment(changes), self.folder)

    # -- operations ---------------------------------------------------------------------------------------------------

    def enqueue(self, job: Mapping[str, Any] = QUICK, *, count: int = 1, words: str = "a red bird") -> list[UUID]:
        """Operations of specifications that differ from all others, in order; `job` is what the service is to make of them."""
        return [self._enqueue({"prompt": f"{words} {number}", "sim": dict(job)}) for number in self._numbers(count)]

    def _numbers(self, count: int) -> Iterable[int]:
        return itertools.islice(self._keys, count)

    def _enqueue(self, specification: Mapping[str, Any], **fields: object) -> UUID:
        request = {
            "v": 1,
            "tenant_id": "ada",
            "operation_key": specification["prompt"],
            "provider": "genace",
            "specification_text": fingerprint(specification).text,
            **fields,
        }
        answer = self.one("select coatcheck.enqueue_v1(%s::text::jsonb) as answer", json.dumps(request))["answer"]
        assert answer["result"] == "created", answer
        found = self.one(
            "select operation_id from coatcheck.operations where operation_key = %s", specification["prompt"]
        )
        operation_id: UUID = found["operation_id"]
        return operation_id

    # -- workers ------------------------------------------------------------------------------------------------------

    def worker(self, *strikes: Strike, until_idle: bool = True, **changes: str) -> Child:
        """A worker in a process of its own, on which `strikes` befall."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
        arguments = [self.url, written(strikes), "until_idle" if until_idle else "on"]
        return self.child("worker", arguments, env={**env, **self.environment(changes)})

    def child(self, course: str, arguments: list[str], *, env: Mapping[str, str]) -> Child:
        """A process that runs one of the courses beside these tests; it does not outlive the stage."""
        name = f"{course}-{next(self._children)}"
        variables = {**env, "PYTHONPATH": PYTHONPATH}
        child: Child
        if self.nursery is not None:
            child = self.nursery.child(course, arguments, env=variables, folder=self.folder, name=name)
        else:
            program = [sys.executable, "-m", f"faults.{course}_main", *arguments]
            child = Started(program, env=variables, folder=self.folder, name=name)
        self.callback(child.kill)
        return child

    def finish(self, **changes: str) -> None:
        """Let every lease end, and let a healthy worker do all that is left."""
        self.database.move_time(LEASES_OVER_S)
        self.work(**changes)

    def work(self, *strikes: Strike, **changes: str) -> None:
        """Let a worker in this process do all that is due. Strikes that raise may befall it."""
        asyncio.run(self._work(self.settings(changes), Seams(faults=Striking(strikes))))

    async def _work(self, settings: Settings, seams: Seams) -> None:
        async with asyncio.timeout(60), worker_of(settings, self.url, seams=seams) as (worker, _):
            await worker.run(until_idle=True)

    # -- what came of it ----------------------------------------------------------------------------------------------

    def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        return self._connection.execute(statement.encode(), parameters).fetchall()

    def one(self, statement: str, *parameters: object) -> dict[str, Any]:
        (row,) = self.rows(statement, *parameters)
        return row

    def operation(self, operation_id: UUID) -> dict[str, Any]:
        return self.one("select * from coatcheck.operations where operation_id = %s", operation_id)

    def dispatches(self, operation_id: UUID) -> list[dict[str, Any]]:
        return self.rows("select * from coatcheck.dispatches where operation_id = %s order by number", operation_id)

    def events(self, operation_id: UUID) -> list[str]:
        """The names of its history, in order."""
        found = self.rows("select event from coatcheck.history where operation_id = %s order by revision", operation_id)
        return [row["event"] for row in found]

    def record(self) -> Record:
        """Both books, as the checker reads them."""
        return Record.of(self._connection, self.sim.posts, self.sim.jobs(), self.sink)

    def check(self) -> None:
        """The two books agree, and nothing was lost, doubled or left behind."""
        assert findings(self.record()) == []

    def posts(self, operation_id: UUID) -> int:
        """How many POSTs of this operation's specification arrived, whole or not."""
        return len(self.record().posts_of(operation_id))
