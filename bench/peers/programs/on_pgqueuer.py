"""pgqueuer, as its performance guide advises: asyncpg, uvloop as in `pgq run`, `pgq autovac`, batches that suit short jobs.

Its own record of success is the row in its log. For the id of a job half-way it has no place: that is a table of the application's, written
through a pool.
"""

from datetime import timedelta
from typing import Any

import asyncpg
import uvloop
import workload
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

RENDERS = "create table renders (prompt text primary key, remote_job_id text not null)"
SAVE = "insert into renders (prompt, remote_job_id) values ($1, $2)"
POOL = 20
"""Connections, as in the guide's example of a pool for high throughput."""


async def fill(order: workload.Order) -> None:
    """Install the schema and enqueue everything in one batch."""
    connection = await asyncpg.connect(order.database_url)
    queries = Queries.from_asyncpg_connection(connection)
    await queries.install()
    await queries.optimize_autovacuum()
    await connection.execute(RENDERS)
    prompts = order.prompts()
    await queries.enqueue(["render"] * len(prompts), [prompt.encode() for prompt in prompts], [0] * len(prompts))
    await connection.close()


async def work(order: workload.Order) -> None:
    """Work until killed."""
    async with (
        workload.session(order) as http,
        asyncpg.create_pool(order.database_url, min_size=5, max_size=POOL) as pool,
    ):
        queuer = await _queuer(order, pool)

        @queuer.entrypoint("render")
        async def render(job: Job) -> None:
            prompt = (job.payload or b"").decode()
            await workload.rendered(http, prompt, lambda remote_job_id: pool.execute(SAVE, prompt, remote_job_id))

        await queuer.run(
            batch_size=order.settings["batch_size"],
            max_concurrent_tasks=order.concurrency or None,
            dequeue_timeout=timedelta(seconds=10),
        )


async def _queuer(order: workload.Order, pool: Any) -> PgQueuer:
    """Its guide advises a connection of the queue's own on one page and a pool for high throughput on the same one: both are tried."""
    if order.settings["driver"] == "pool":
        return PgQueuer.from_asyncpg_pool(pool)
    return PgQueuer.from_asyncpg_connection(await asyncpg.connect(order.database_url))


if __name__ == "__main__":
    workload.run(fill, work, uvloop.new_event_loop)
