"""oban-py, embedded as its production page shows: a pool of ten, one queue with a local limit, uvloop as in `oban start`.

The id of a job half-way is saved in a table of the application's, through a pool of its own in autocommit: one round trip instead of three.
"""

import uvloop
import workload
from oban import Oban, worker
from oban.job import Job
from oban.schema import install
from psycopg_pool import AsyncConnectionPool

RENDERS = "create table renders (prompt text primary key, remote_job_id text not null)"
SAVE = "insert into renders (prompt, remote_job_id) values (%s, %s)"
POOL = 10


@worker(queue="renders")
class Render:
    """One render."""

    http: workload.aiohttp.ClientSession
    pool: AsyncConnectionPool

    async def process(self, job: Job) -> None:
        """POST, save, look."""
        prompt = job.args["prompt"]
        await workload.rendered(self.http, prompt, lambda remote_job_id: self._save(prompt, remote_job_id))

    async def _save(self, prompt: str, remote_job_id: str) -> None:
        async with self.pool.connection() as connection:
            await connection.execute(SAVE, (prompt, remote_job_id))


async def fill(order: workload.Order) -> None:
    """Install the schema and enqueue everything in one batch."""
    pool = await Oban.create_pool(order.database_url)
    await install(pool)
    async with pool.connection() as connection:
        await connection.execute(RENDERS)
    await Oban(pool=pool).enqueue_many(Render.new({"prompt": prompt}) for prompt in order.prompts())
    await pool.close()


async def work(order: workload.Order) -> None:
    """Work until killed."""
    pool = await Oban.create_pool(order.database_url, min_size=POOL, max_size=POOL)
    async with (
        workload.session(order) as http,
        AsyncConnectionPool(order.database_url, min_size=POOL, max_size=POOL, kwargs={"autocommit": True}) as own,
        Oban(pool=pool, queues={"renders": order.concurrency}),
    ):
        Render.http, Render.pool = http, own
        await workload.asyncio.Event().wait()


if __name__ == "__main__":
    workload.run(fill, work, uvloop.new_event_loop)
