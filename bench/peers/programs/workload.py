"""What a contestant's job does, the same for every peer: POST, save the id, look until it is done.

The programs of this folder run in environments of their own, where nothing of coatcheck can be imported. All use aiohttp with one pooled
session, as its documentation advises.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import aiohttp

DONE = "succeeded"
CONNECTIONS = 400
"""HTTP connections where the contestant itself sets no limit to what runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the measurement asks of a program."""

    database_url: str
    service_url: str
    operations: int
    settings: dict[str, Any]

    @property
    def concurrency(self) -> int:
        """Jobs in flight at once; 0 is no limit."""
        return int(self.settings["concurrency"])

    def prompts(self) -> list[str]:
        """Every operation's specification, which is its key at the service."""
        return [f"picture {number}" for number in range(1, self.operations + 1)]


def session(order: Order) -> aiohttp.ClientSession:
    """The one session of a worker, with a connection for each job in flight."""
    connector = aiohttp.TCPConnector(limit=order.concurrency or CONNECTIONS)
    return aiohttp.ClientSession(order.service_url, connector=connector)


async def submit(http: aiohttp.ClientSession, prompt: str) -> str:
    """The billable POST; the remote job's id."""
    async with http.post("/api/v1/jobs", json={"prompt": prompt}) as reply:
        reply.raise_for_status()
        return str((await reply.json())["job_id"])


async def finished(http: aiohttp.ClientSession, remote_job_id: str) -> str:
    """Look until the job is done; its output's address."""
    while True:
        async with http.get(f"/api/v1/jobs/{remote_job_id}") as reply:
            reply.raise_for_status()
            job = await reply.json()
        if job["status"] == DONE:
            return str(job["outputs"][0]["url"])


async def rendered(http: aiohttp.ClientSession, prompt: str, save: Callable[[str], Awaitable[object]]) -> None:
    """One job's whole work; `save` makes the id durable before anything else happens."""
    remote_job_id = await submit(http, prompt)
    await save(remote_job_id)
    await finished(http, remote_job_id)


async def alone(order: Order, one: Callable[[str], Awaitable[object]]) -> None:
    """All of it without a queue, so many at once, then wait to be killed: who reads what a process took needs it alive."""
    prompts = iter(order.prompts())

    async def one_by_one() -> None:
        for prompt in prompts:
            await one(prompt)

    await asyncio.gather(*(one_by_one() for _ in range(order.concurrency)))
    await asyncio.Event().wait()


async def no_queue(order: Order) -> None:
    """There is nothing to fill."""


def order() -> Order:
    """What this process was asked for."""
    return Order(**json.loads(sys.argv[2]))


def is_filling() -> bool:
    """Whether the queue is to be filled, and not worked on."""
    return sys.argv[1] == "fill"


def ready() -> None:
    """Everything is imported: wait for the word go."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


def run(
    fill: Callable[[Order], Coroutine[Any, Any, None]],
    work: Callable[[Order], Coroutine[Any, Any, None]],
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """The program of a peer: `fill` the queue and end, or be ready and `work` from the word go until killed."""
    with asyncio.Runner(loop_factory=loop) as runner:
        if is_filling():
            runner.run(fill(order()))
            return
        ready()
        runner.run(work(order()))
