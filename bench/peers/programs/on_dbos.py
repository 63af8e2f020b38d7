"""DBOS, as its queue tutorial advises: async workflows, a limit per worker instead of a global one, two steps.

A step's result is a checkpoint, so the id is saved by the step that POSTs. The looks are one step, although its documentation would allow
two: fewer checkpoints are to its advantage.
"""

import asyncio

import aiohttp
import uvloop
import workload
from dbos import DBOS, DBOSConfig

QUEUE = "renders"


class Session:
    """The one HTTP session, opened on the event loop that the workflows run on."""

    order: workload.Order
    http: aiohttp.ClientSession | None = None

    @classmethod
    def get(cls) -> aiohttp.ClientSession:
        """Open it with the first job."""
        if cls.http is None:
            cls.http = workload.session(cls.order)
        return cls.http


@DBOS.step()
async def submit(prompt: str) -> str:
    """The billable POST, its id checkpointed."""
    return await workload.submit(Session.get(), prompt)


@DBOS.step()
async def finished(remote_job_id: str) -> str:
    """Both looks."""
    return await workload.finished(Session.get(), remote_job_id)


@DBOS.workflow()
async def render(prompt: str) -> str:
    """One render."""
    return await finished(await submit(prompt))


async def fill(order: workload.Order) -> None:
    """Create the system database's tables and enqueue everything; there is no call for many at once."""
    _launched(order)
    await _registered(order, limited=True)
    crowd = asyncio.Semaphore(20)

    async def enqueued(prompt: str) -> None:
        async with crowd:
            await DBOS.enqueue_workflow_async(QUEUE, render, prompt)

    # a queue that nobody listens to yet is filled and not worked on
    await asyncio.gather(*map(enqueued, order.prompts()))
    DBOS.destroy()


async def work(order: workload.Order) -> None:
    """Work until killed."""
    Session.order = order
    _launched(order, listens=True)
    await _registered(order, limited=order.concurrency > 0)
    await asyncio.Event().wait()


def _launched(order: workload.Order, *, listens: bool = False) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": order.database_url,
        "sys_db_pool_size": order.settings["pool_size"],
        "application_version": "bench",
        "log_level": "WARNING",
    }
    DBOS(config=config)
    if not listens:
        DBOS.listen_queues([])
    DBOS.launch()


async def _registered(order: workload.Order, *, limited: bool) -> None:
    await DBOS.register_queue_async(
        QUEUE,
        worker_concurrency=order.concurrency if limited else None,
        polling_interval_sec=order.settings["polling_s"],
        on_conflict="always_update",
    )


if __name__ == "__main__":
    workload.run(fill, work, uvloop.new_event_loop)
