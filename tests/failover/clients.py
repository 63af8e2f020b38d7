"""Applications that enqueue without a pause, each on a connection of its own, and write down what they were told.

What an application was told by a clean commit is acknowledged; whatever else happened to a key, it is unknown, and may be asked again.
"""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import psycopg

from coatcheck.enqueue import enqueue_sync, prepare
from coatcheck.errors import CommitUnknown, Unavailable
from coatcheck.store.blocking import connected
from coatcheck.store.committing import committing

PAUSE_S = 0.3
"""Between two operations of one application: all together bring no more than two workers can end."""
FAILURES = (CommitUnknown, psycopg.OperationalError)


class Clients:
    """Several applications at once, from the beginning of the block to its end. `url` must lead to whichever server takes writes."""

    def __init__(self, url: str, job: Mapping[str, Any], *, count: int = 4) -> None:
        self._url = url
        self._job = job
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(count)
        self._count = count
        self._running: list[Future[None]] = []
        self.acknowledged: dict[str, UUID] = {}
        self.unknown: set[str] = set()

    def __enter__(self) -> Self:
        self._running = [self._pool.submit(self._enqueue_on, number) for number in range(self._count)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """No more operations come in. Raises what an application did not expect."""
        self._ended.set()
        self._pool.shutdown()
        for each in self._running:
            each.result()

    def ask_again(self, url: str) -> None:
        """What nobody knows is asked for with the same key, as an application is told to do: from now on nothing is unknown."""
        with connected(url, "application") as connection:
            for key in sorted(self.unknown):
                self._enqueue(connection, key)
        self.unknown.clear()

    def _enqueue_on(self, number: int) -> None:
        """Key after key. One that was under way when the connection broke is left to `ask_again`."""
        keys = iter(f"order {number}.{count}" for count in range(1_000_000))
        while not self._ended.wait(PAUSE_S):
            # nobody takes writes just now where not even a connection is to be had
            with suppress(Unavailable), connected(self._url, "application") as connection:
                self._enqueue_by(connection, keys)

    def _enqueue_by(self, connection: psycopg.Connection[Any], keys: Iterator[str]) -> None:
        for key in keys:
            try:
                self._enqueue(connection, key)
            except FAILURES:
                self.unknown.add(key)
                return
            if self._ended.wait(PAUSE_S):
                return

    def _enqueue(self, connection: psycopg.Connection[Any], key: str) -> None:
        request = prepare(
            tenant_id="ada", key=key, provider="genace", specification={"prompt": key, "sim": dict(self._job)}
        )
        with committing(connection):
            answer = enqueue_sync(connection, request)
        self.acknowledged[key] = answer.operation_id
