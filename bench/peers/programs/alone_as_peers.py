"""The requests of the workflow and nothing else, as the peers' programs make them: no queue, no database, no id that is saved."""

import asyncio

import uvloop
import workload


async def fill(order: workload.Order) -> None:
    """There is no queue."""


async def work(order: workload.Order) -> None:
    """So many at once until all are done, then wait to be killed: who reads what a process took needs it alive."""
    prompts = iter(order.prompts())

    async with workload.session(order) as http:

        async def one_by_one() -> None:
            for prompt in prompts:
                await workload.rendered(http, prompt, saved)

        await asyncio.gather(*(one_by_one() for _ in range(order.concurrency)))
    await asyncio.Event().wait()


async def saved(remote_job_id: str) -> None:
    """Nowhere."""


if __name__ == "__main__":
    workload.run(fill, work, uvloop.new_event_loop)
