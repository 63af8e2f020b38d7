"""The list of an account's jobs: newest first, by reference or by time. Only a service in the style `echo` has one."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from coatcheck.sim.answers import next_hop, scripted_reply, unauthorized
from coatcheck.sim.bodies import malformed_reply
from coatcheck.sim.director import Situation
from coatcheck.sim.faults import Fault
from coatcheck.sim.jobs import Job
from coatcheck.sim.kinds import Kind, Role
from coatcheck.sim.look import described
from coatcheck.sim.replies import error_reply, json_reply
from coatcheck.sim.requests import Head
from coatcheck.sim.turn import Turn, answer
from coatcheck.sim.world import World

LIMIT = 100
"""Jobs of one answer; `has_more` says that there are others."""
_BOUNDS = ("created_after", "created_before")


def jobs_listed(world: World, head: Head) -> Turn:
    """Answer a GET of the list."""
    if not world.admits(head):
        return answer(head, unauthorized())
    if (hop := next_hop(head)) is not None:
        return answer(head, hop)
    world.lists += 1
    fault = None if head.followed else world.director.choose(Situation(role=Role.LIST, draw=(world.lists,)))
    if (scripted := scripted_reply(fault, head, world.seams.clock.now())) is not None:
        return answer(head, scripted, fault)
    try:
        after, before = (_bound(head, name) for name in _BOUNDS)
    except ValueError:
        wrong = error_reply(422, "invalid_instant", "created_after and created_before are ISO 8601 with an offset")
        return answer(head, wrong)
    unfiltered = fault is not None and fault.kind is Kind.UNFILTERED
    found = [job for job in _of_account(world, head) if unfiltered or _fits(job, head, after, before)]
    told = {"jobs": [_told(world, job, fault) for job in found[:LIMIT]], "has_more": len(found) > LIMIT}
    if fault is not None and fault.kind is Kind.MALFORMED:
        return answer(head, malformed_reply(fault.status, fault.form, "jobs", told), fault)
    return answer(head, json_reply(200, told), fault)


def _of_account(world: World, head: Head) -> Iterator[Job]:
    owner = head.owner()
    return (job for job in reversed(world.jobs.values()) if job.owner == owner)


def _bound(head: Head, name: str) -> datetime | None:
    """The instant asked for. Raises ValueError for one that is none or has no offset."""
    text = head.query.get(name)
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found


def _fits(job: Job, head: Head, after: datetime | None, before: datetime | None) -> bool:
    wanted, created_at = head.query.get("client_reference"), datetime.fromisoformat(job.created_at)
    return (
        (wanted is None or job.reference == wanted)
        and (after is None or after <= created_at)
        and (before is None or created_at <= before)
    )


def _told(world: World, job: Job, fault: Fault | None) -> dict[str, Any]:
    told = described(job, job.status(world.now()))
    if fault is not None and fault.kind is Kind.WRONG_REFERENCE:
        told["client_reference"] = fault.other_reference or world.chance.word("nobody", job.id, size=20)
    return told
