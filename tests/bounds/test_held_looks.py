"""Waiting is cheap: a thousand looks are held at once by one worker, and no transaction is open while a service takes its time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import postgres
from bounds.scene import Watch, enqueue, settings_for
from coatcheck.app.workplace import worker_of
from coatcheck.config import Settings
from coatcheck.seams import Seams
from coatcheck.sim import SimulatedService
from waiting import until_async

LOOKS = 1_000
CONNECTIONS = 10
LONG = {"WAIT_S": "50", "TIMEOUT_S": "30"}
UNDER_WAY = {"service": {"queued_s": 0, "processing_s": 3_600}}
SOON_OVER = {"queued_s": 0, "processing_s": 0.05}


@asynccontextmanager
async def working(settings: Settings, database: postgres.Database, seams: Seams) -> AsyncIterator[None]:
    """A worker at work for the length of the block."""
    async with worker_of(settings, database.url, seams=seams) as (worker, _):
        running = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.drain()
            await running


def test_one_worker_holds_a_thousand_looks_at_once_on_at_most_ten_connections(
    database: postgres.Database, seams: Seams, tmp_path: Path
) -> None:
    enqueue(database, LOOKS)

    async def held() -> tuple[int, int]:
        async with SimulatedService(seams=seams) as service:
            service.script(UNDER_WAY)
            settings = settings_for(service.base_url, tmp_path, **LONG)
            # some places are kept for tenants that have nothing in hand, and here is only one
            roomy = replace(settings, concurrency=replace(settings.concurrency, observe=LOOKS + 8))
            async with working(roomy, database, seams):
                await until_async(lambda: service.held_peak >= LOOKS, deadline_s=90)
                return service.held_peak, watch.connections()

    with Watch(database) as watch:
        looks, connections = asyncio.run(held())
    assert looks == LOOKS
    assert 0 < connections <= CONNECTIONS


async def post_stalls(service: SimulatedService) -> bool:
    return [post.complete for post in service.ledger.posts] == [True]


async def look_is_held(service: SimulatedService) -> bool:
    return service.held_peak == 1


async def download_stalls(service: SimulatedService) -> bool:
    jobs = await service.jobs_json()
    return [job["downloads"] for job in jobs] == [1]


@pytest.mark.parametrize(
    ("script", "stalled"),
    [
        pytest.param({"rules": [{"on": "create", "kind": "stall"}]}, post_stalls, id="a stalled POST"),
        pytest.param(UNDER_WAY, look_is_held, id="a held look"),
        pytest.param(
            {"rules": [{"on": "output", "kind": "stall"}], "service": SOON_OVER},
            download_stalls,
            id="a stalled download",
        ),
    ],
)
def test_no_transaction_of_ours_is_open_while_the_service_takes_its_time(
    database: postgres.Database,
    seams: Seams,
    tmp_path: Path,
    script: dict[str, Any],
    stalled: Callable[[SimulatedService], Awaitable[bool]],
) -> None:
    """S8. A worker's own short statements may be seen in the act; one that waited for the service would never be seen closed."""
    enqueue(database, 1)
    seen: list[list[tuple[str, str]]] = []

    def all_closed() -> bool:
        seen.append(watch.open_transactions())
        return not seen[-1]

    async def look_into_it() -> int:
        async with SimulatedService(seams=seams) as service:
            service.script(script)
            async with working(settings_for(service.base_url, tmp_path, **LONG, SEND_S="1"), database, seams):
                await until_async(lambda: stalled(service))
                await until_async(all_closed)
                connections = watch.connections()
                await service.stop()
                return connections

    with Watch(database) as watch:
        connections = asyncio.run(look_into_it())
    assert connections > 0
    assert {state for states in seen for _, state in states} <= {"active"}
