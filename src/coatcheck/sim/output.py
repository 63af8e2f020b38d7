"""Output files behind URLs that carry a token: a URL that has expired stays expired, and only a look at the job brings a fresh one."""

from dataclasses import replace

from coatcheck.sim.answers import next_hop, not_found, scripted_reply
from coatcheck.sim.director import Situation
from coatcheck.sim.faults import Fault
from coatcheck.sim.jobs import Job
from coatcheck.sim.kinds import Kind, Role
from coatcheck.sim.media import PIECE_BYTES
from coatcheck.sim.replies import Content, Plain, Reply, error_reply
from coatcheck.sim.requests import Head
from coatcheck.sim.turn import Turn, answer
from coatcheck.sim.world import World

OUTPUTS_PREFIX = "/outputs/"
_IN_PLACE = {
    "html": b"<!doctype html>\n<html><body>Please sign in.</body></html>\n",
    "svg": b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>\n',
    "script": b"#!/bin/sh\necho not a picture\n",
    "empty": b"",
}


def output_url(world: World, job: Job, index: int) -> str:
    """The URL that a snapshot tells now; a new one if the last has expired."""
    now = world.now()
    if job.url_told_at is None or _expired(world, job):
        job.url_generation += job.url_told_at is not None
        job.url_told_at, job.url_revoked = now, False
    return f"{world.base_url}{OUTPUTS_PREFIX}{job.id}/{index}?token={_token(world, job, index)}"


def output(world: World, head: Head) -> Turn:
    """Answer a GET of a file."""
    job_id, _, number = head.path.removeprefix(OUTPUTS_PREFIX).partition("/")
    job = world.jobs.get(job_id)
    index = int(number) if number.isdecimal() else -1
    if job is None or not 0 <= index < len(job.media) or not job.succeeded(world.now()):
        return answer(head, not_found())
    job.downloads[index] += 1
    job.downloads_with_credentials += "authorization" in head.headers
    if (hop := next_hop(head)) is not None:
        return answer(head, hop)
    if head.query.get("token") != _token(world, job, index) or _expired(world, job):
        return answer(head, _gone(job.gone_status or world.settings.expired_status))
    fault = None if head.followed else _fault(world, job, index)
    scripted = scripted_reply(fault, head, world.seams.clock.now())
    return answer(head, scripted or _reply(world, job, index, fault), fault)


def _token(world: World, job: Job, index: int) -> str:
    return world.chance.word("token", job.id, index, job.url_generation, size=16)


def _expired(world: World, job: Job) -> bool:
    life = world.settings.url_life_s
    aged = life is not None and job.url_told_at is not None and world.now() - job.url_told_at >= life
    return job.url_revoked or aged


def _fault(world: World, job: Job, index: int) -> Fault | None:
    situation = Situation(
        role=Role.OUTPUT,
        prompt=job.prompt,
        job=job.id,
        output=index,
        told_final=job.told_final,
        draw=(job.id, index, job.downloads[index]),
    )
    return world.director.choose(situation, job.rules)


def _reply(world: World, job: Job, index: int, fault: Fault | None) -> Reply:
    media = job.media[index]
    content: Content = media
    match fault.kind if fault else None:
        case Kind.EXPIRED if fault:
            job.url_revoked, job.gone_status = True, fault.status
            return _gone(fault.status)
        case Kind.REPLACED if fault:
            content = Plain(_IN_PLACE[fault.form])
        case Kind.ENDLESS | Kind.LARGE if fault:
            length = None if fault.kind is Kind.ENDLESS else fault.size_bytes
            block = world.chance.block("file", job.id, index, size_bytes=PIECE_BYTES)
            content = replace(media, length=length, block=block)
        case _:
            pass
    return Reply(status=200, content_type=media.content_type, content=content)


def _gone(status: int) -> Reply:
    return error_reply(status, "url_expired", "this URL is not valid any more")
