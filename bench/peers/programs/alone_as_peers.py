"""The requests of the workflow and nothing else, as the peers' programs make them: no queue, no database, no id that is saved."""

import uvloop
import workload


async def work(order: workload.Order) -> None:
    """Until killed."""
    async with workload.session(order) as http:
        await workload.alone(order, lambda prompt: workload.rendered(http, prompt, _saved))


async def _saved(remote_job_id: str) -> None:
    """Nowhere."""


if __name__ == "__main__":
    workload.run(workload.no_queue, work, uvloop.new_event_loop)
