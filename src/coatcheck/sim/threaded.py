"""The service for blocking callers: its event loop runs in a thread of its own, and every call crosses over and waits."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from coatcheck.seams import Seams
from coatcheck.sim.ledger import PostRecord
from coatcheck.sim.script import Script
from coatcheck.sim.server import SimulatedService
from coatcheck.sim.settings import ServiceSettings

CALL_S = 30.0
Answer = TypeVar("Answer")


class ThreadedService:
    """A running service as seen from another thread."""

    def __init__(self, service: SimulatedService, loop: asyncio.AbstractEventLoop) -> None:
        self._service = service
        self._loop = loop

    @property
    def base_url(self) -> str:
        """`http://host:port`."""
        return self._service.base_url

    @property
    def posts(self) -> tuple[PostRecord, ...]:
        """The POST ledger's records so far."""
        return self._service.ledger.posts

    def totals(self) -> dict[str, Any]:
        """The ledger's sums."""
        return dict(self._call(self._ledger())["totals"])

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs as `/_sim/jobs` shows them."""
        return self._call(self._service.jobs_json())

    def script(self, rules: Script | list[dict[str, Any]] | dict[str, Any], *, replace: bool = False) -> None:
        """Add rules, or replace all. Raises Refused naming the rule."""
        self._call(self._script(rules, replace=replace))

    def stop(self) -> None:
        """Go away as a service does that is down: connections are reset, the port refuses."""
        self._call(self._service.stop())

    def start(self) -> None:
        """Come back on the same port with the same jobs."""
        self._call(self._service.start())

    async def _ledger(self) -> dict[str, Any]:
        return self._service.ledger_json()

    async def _script(self, rules: Script | list[dict[str, Any]] | dict[str, Any], *, replace: bool) -> None:
        self._service.script(rules, replace=replace)

    def _call(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_S)


@contextmanager
def simulated_service(
    *,
    seed: int = 0,
    script: Script | None = None,
    api_keys: frozenset[str] | None = None,
    settings: ServiceSettings | None = None,
    seams: Seams | None = None,
    port: int = 0,
) -> Iterator[ThreadedService]:
    """A service in a thread, stopped at the end of the block, which raises what went wrong inside the service.

    Example: `with simulated_service(seed=7) as sim: client = Client(base_url=sim.base_url)`.
    """
    service = SimulatedService(
        seams=seams or Seams.real(), seed=seed, script=script, api_keys=api_keys, settings=settings, port=port
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="coatcheck-sim", daemon=True)
    thread.start()
    threaded = ThreadedService(service, loop)
    try:
        threaded.start()
        yield threaded
    finally:
        try:
            threaded.stop()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CALL_S)
            loop.close()
