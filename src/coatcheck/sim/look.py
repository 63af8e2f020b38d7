"""The long poll: held while the job is under way and its status does not change, then answered with the snapshot of that instant."""

from typing import Any

from coatcheck.sim.answers import next_hop, not_found, scripted_reply, unauthorized
from coatcheck.sim.bodies import malformed_reply
from coatcheck.sim.catalogue import TRAITS
from coatcheck.sim.director import Situation
from coatcheck.sim.faults import Fault
from coatcheck.sim.jobs import Job
from coatcheck.sim.kinds import Kind, Role
from coatcheck.sim.output import output_url
from coatcheck.sim.replies import Plain, Reply, json_reply
from coatcheck.sim.requests import Head
from coatcheck.sim.turn import Turn, answer
from coatcheck.sim.world import World

_ERRORS = {
    "failed": ("render_failed", "the render failed"),
    "moderated": ("moderated", "the content was refused"),
    "cancelled": ("cancelled", "the job was cancelled"),
    "expired": ("expired", "the job was not finished in time"),
}


async def look(world: World, head: Head, job_id: str) -> Turn:
    """Answer a GET of a job."""
    world.looked()
    if not world.admits(head):
        return answer(head, unauthorized())
    job = world.jobs.get(job_id)
    if job is None or job.owner != head.owner():
        return answer(head, next_hop(head) or not_found())
    job.looks += 1
    if (hop := next_hop(head)) is not None:
        return answer(head, hop)
    fault = None if head.followed else _fault(world, job)
    if (scripted := scripted_reply(fault, head, world.seams.clock.now())) is not None:
        return answer(head, scripted, fault)
    if fault is None or not TRAITS[fault.kind].at_once:
        await _held(world, job, _wait_s(world, head), whole=fault is not None and fault.kind is Kind.CLOSED_WINDOW)
    return answer(head, await _reply(world, job, fault), fault)


def _fault(world: World, job: Job) -> Fault | None:
    situation = Situation(
        role=Role.LOOK, prompt=job.prompt, job=job.id, told_final=job.told_final, draw=(job.id, job.looks)
    )
    return world.director.choose(situation, job.rules)


def _wait_s(world: World, head: Head) -> float:
    """The window asked for, within the service's own limit; nonsense counts as none."""
    try:
        asked = float(head.query.get(world.settings.wait_param, 0))
    except ValueError:
        return 0.0
    return min(asked, world.settings.wait_max_s) if asked > 0 else 0.0


async def _held(world: World, job: Job, wait_s: float, *, whole: bool) -> None:
    """Wait for the job's next change, at most to the end of the window; `whole`: to its end in any case."""
    now = world.now()
    word, end = job.status(now), now + wait_s
    with world.holds:
        while now < end and (whole or (not job.final(now) and job.status(now) == word)):
            change = None if whole else job.next_change(now)
            await world.seams.sleep((end if change is None else min(end, change)) - now)
            now = world.now()


async def _reply(world: World, job: Job, fault: Fault | None) -> Reply:
    now = world.now()
    good = await snapshot(world, job, now)
    if fault is None:
        job.told_final = job.told_final or job.final(now)
        return json_reply(200, good)
    if fault.kind is Kind.CLOSED_WINDOW:
        return Reply(status=fault.status, content_type=None, content=Plain(b""))
    if fault.kind is Kind.MALFORMED:
        return malformed_reply(fault.status, fault.form, "id", good)
    return json_reply(200, _told(world, job, good, fault))


def _told(world: World, job: Job, good: dict[str, Any], fault: Fault) -> dict[str, Any]:
    """The snapshot as a fault tells it; faults of the wire leave it as it is."""
    match fault.kind:
        case Kind.WRONG_ID:
            return {**good, "id": fault.other_id or f"job_{world.chance.word('nobody', job.id, size=20)}"}
        case Kind.REGRESSION | Kind.UNKNOWN_WORD:
            return {**described(job, fault.word), "outputs": []}
        case Kind.NO_OUTPUTS | Kind.DECLARE_WRONG if good["outputs"]:
            return _spoiled(good, fault)
        case _:
            return good


def described(job: Job, word: str) -> dict[str, Any]:
    """What a look and a list alike say of a job whose status is `word`."""
    reference = {} if job.reference is None else {"client_reference": job.reference}
    return {"id": job.id, "status": word, "created_at": job.created_at, **reference}


async def snapshot(world: World, job: Job, now: float) -> dict[str, Any]:
    """What the service says of the job at `now`; telling URLs makes them fresh where they had expired."""
    told: dict[str, Any] = {**described(job, job.status(now)), "outputs": []}
    if not job.final(now):
        return told
    course = job.course
    if course.outcome == "succeeded":
        told["outputs"] = [await _output(world, job, index) for index in range(len(job.media))]
    else:
        code, message = _ERRORS[course.outcome]
        told["error"] = {"code": course.error_code or code, "message": course.error_message or message}
    told["credits"] = {"charged": course.price, "refunded": course.refunded}
    return told


async def _output(world: World, job: Job, index: int) -> object:
    url = output_url(world, job, index)
    if job.course.outputs_as == "urls":
        return url
    media = job.media[index]
    return {"url": url, "type": media.content_type, "bytes": media.length, "sha256": await job.digest(index)}


def _spoiled(good: dict[str, Any], fault: Fault) -> dict[str, Any]:
    """A success whose outputs are missing, or declared wrongly."""
    match fault.form:
        case "empty":
            return {**good, "outputs": []}
        case "missing":
            return {name: value for name, value in good.items() if name != "outputs"}
        case "null":
            return {**good, "outputs": None}
        case "blank_url":
            return {**good, "outputs": [{"url": ""}]}
        case _:
            wrong = {"sha256": "0" * 64, "bytes": 1, "type": "video/mp4"}[fault.form]
            entries = [entry if isinstance(entry, dict) else {"url": entry} for entry in good["outputs"]]
            return {**good, "outputs": [{**entry, fault.form: wrong} for entry in entries]}
