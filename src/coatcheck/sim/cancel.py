"""Cancelling a job: over at once, with everything given back, unless it was over already. Not a POST that bills, so not in the ledger of those."""

from dataclasses import replace

from coatcheck.sim.answers import not_found, unauthorized
from coatcheck.sim.channel import Channel
from coatcheck.sim.look import described
from coatcheck.sim.replies import error_reply, json_reply
from coatcheck.sim.requests import Head
from coatcheck.sim.turn import Turn, answer
from coatcheck.sim.world import World

METHODS = frozenset({"POST", "DELETE"})


async def cancel(world: World, head: Head, channel: Channel, job_id: str) -> Turn | None:
    """Answer a wish to cancel; None when the peer left before it was whole. `cancel_status` answers in place of it."""
    body = await channel.inbound.body(world.settings.body_limit_bytes)
    if not body.complete:
        return None
    world.cancels += 1
    if not world.admits(head):
        return answer(head, unauthorized())
    if (status := world.settings.cancel_status) is not None:
        return answer(head, error_reply(status, f"simulated_{status}", "the script asked for this"))
    job = world.jobs.get(job_id)
    if job is None or job.owner != head.owner():
        return answer(head, not_found())
    if job.final(now := world.now()):
        return answer(head, error_reply(409, "over", "the job is over"))
    job.course = replace(job.course, outcome="cancelled", queued_s=0, processing_s=now - job.at, final_word="")
    return answer(head, json_reply(202, described(job, job.status(now))))
