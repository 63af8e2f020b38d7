"""The billable POST: read, written into the ledger, perhaps struck, perhaps creating a job.

The job exists and is billed before the first byte of any reply, so a reply that is lost or lies never hides what it cost.
"""

import json
from typing import Any

from coatcheck.errors import Refused
from coatcheck.sim.answers import next_hop, scripted_reply, unauthorized
from coatcheck.sim.bodies import malformed_reply
from coatcheck.sim.channel import Channel
from coatcheck.sim.director import Situation
from coatcheck.sim.faults import Fault
from coatcheck.sim.jobs import Job
from coatcheck.sim.kinds import Kind, Role
from coatcheck.sim.look import snapshot
from coatcheck.sim.replies import Reply, error_reply, json_reply, shaped_reply
from coatcheck.sim.requests import Body, Head
from coatcheck.sim.script import Directives, parse_directives
from coatcheck.sim.turn import Turn, no_answer, post_answer
from coatcheck.sim.world import World


async def create(world: World, head: Head, channel: Channel) -> Turn | None:
    """Answer a POST to the create path; None when the peer left before it was whole."""
    order = arrived(world, head)
    early = None if head.followed else world.director.early()
    if early is not None:
        world.ledger.struck(order, early.kind)
        if early.kind is not Kind.STALL_BEFORE_BODY:
            reply = shaped_reply(early.status or 400, early.form, "refused_early", "refused before the body was read")
            return post_answer(world.ledger, order, head, reply, early)
        await channel.deaf(early.seconds)
    body = await channel.inbound.body(world.settings.body_limit_bytes)
    digest = world.ledger.body(order, body.data, complete=body.complete)
    if body.too_long:
        hang_up = Fault(kind=Kind.EARLY_REPLY)
        return post_answer(world.ledger, order, head, error_reply(413, "too_large", "the body is too long"), hang_up)
    if not body.complete:
        no_answer(world.ledger, order)
        return None
    return await _answered(world, head, order, body, digest, early)


def arrived(world: World, head: Head) -> int:
    """Write a POST into the ledger as soon as its head is here; its key stays out."""
    shown = {name: value for name, value in head.headers.items() if name != "authorization"}
    at = world.seams.clock.now().isoformat()
    return world.ledger.arrived(at=at, path=head.target, authorized=world.admits(head), headers=shown)


async def _answered(world: World, head: Head, order: int, body: Body, digest: str, early: Fault | None) -> Turn:
    """What a whole POST gets: a refusal, the next hop of a redirect, or a job with or without a fault."""
    if not world.admits(head):
        return post_answer(world.ledger, order, head, unauthorized())
    if (hop := next_hop(head)) is not None:
        return post_answer(world.ledger, order, head, hop)
    read = _read(body.data)
    if isinstance(read, Reply):
        return post_answer(world.ledger, order, head, read)
    specification, directives = read
    prompt = specification.get("prompt")
    prompt = prompt if isinstance(prompt, str) else None
    world.occurrences[digest] += 1
    draw = (digest, world.occurrences[digest])
    wished = _fault(world, head, directives, Situation(role=Role.CREATE, prompt=prompt, draw=draw))
    fault = early or wished
    if fault is not None:
        world.ledger.struck(order, fault.kind)
    job = None
    if fault is None or fault.creates:
        changes = _changes(world, fault, directives, Situation(role=Role.JOB, prompt=prompt, draw=draw))
        job = world.new_job(
            digest=digest,
            occurrence=draw[1],
            post=order,
            head=head,
            prompt=prompt,
            rules=directives.rules,
            changes=changes,
        )
    reply = await _reply(world, head, fault, job)
    return post_answer(world.ledger, order, head, reply, fault)


def _read(data: bytes) -> tuple[dict[str, Any], Directives] | Reply:
    """The specification and its `sim` object, or the refusal that a bad one gets."""
    try:
        specification = json.loads(data)
    except (ValueError, RecursionError):
        return error_reply(400, "invalid_json", "the body is not JSON")
    if not isinstance(specification, dict):
        return error_reply(422, "invalid_specification", "the body is not an object")
    try:
        return specification, parse_directives(specification.get("sim", {}))
    except Refused as refused:
        return error_reply(422, "invalid_sim_object", refused.message, next=refused.next)


def _fault(world: World, head: Head, directives: Directives, situation: Situation) -> Fault | None:
    """The specification's own wish before the script's; a POST that followed a redirect meets neither, but is counted."""
    scripted = world.director.choose(situation)
    if head.followed:
        return None
    own = directives.create
    return own.fault if own and own.strikes(world.occurrences[str(situation.draw[0])]) else scripted


def _changes(world: World, fault: Fault | None, directives: Directives, situation: Situation) -> dict[str, Any]:
    """How the job's course differs from the usual one; the specification has the last word."""
    scripted = world.director.choose(situation)
    of_fault = {"outcome": fault.outcome} if fault and fault.outcome else {}
    return {**of_fault, **(scripted.course if scripted else {}), **directives.course}


async def _reply(world: World, head: Head, fault: Fault | None, job: Job | None) -> Reply:
    """The reply before any fault of the wire strikes it."""
    if (scripted := scripted_reply(fault, head, world.seams.clock.now())) is not None:
        return scripted
    job_id = job.id if job else world.chance.word("nobody", head.target)
    if fault is not None and fault.kind is Kind.MALFORMED:
        return malformed_reply(fault.status, fault.form, "job_id", {"job_id": job_id, "status": "queued"})
    if job is None:
        return error_reply(503, "unavailable", "nothing was created")
    if fault is not None and fault.kind is Kind.ERROR_WITH_JOB_ID:
        message = "the submission failed after a job was created"
        return error_reply(fault.status, "submission_failed", message, job_id=job_id)
    return await _accepted(world, job, whole=fault is None)


async def _accepted(world: World, job: Job, *, whole: bool) -> Reply:
    """The usual answer; a job that is over already brings its snapshot along."""
    now, status = world.now(), world.settings.created_status
    if not job.final(now):
        return json_reply(status, {"job_id": job.id, "status": job.status(now)})
    job.told_final = whole
    return json_reply(status, {"job_id": job.id, **await snapshot(world, job, now)})
