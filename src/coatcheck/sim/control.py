"""The service's back room under `/_sim/`: the ledger, the jobs and the script. It needs no key and is never billed."""

import json
from typing import Any

from coatcheck.errors import Refused
from coatcheck.sim.answers import not_found
from coatcheck.sim.channel import Channel
from coatcheck.sim.replies import Reply, error_reply, json_reply
from coatcheck.sim.requests import Head
from coatcheck.sim.script import Script
from coatcheck.sim.turn import Turn, answer
from coatcheck.sim.world import World

CONTROL_PREFIX = "/_sim/"


async def control(world: World, head: Head, channel: Channel) -> Turn | None:
    """Answer a request below `/_sim/`; None when the peer left before it was whole."""
    match head.method, head.path.removeprefix(CONTROL_PREFIX):
        case "GET", "ledger":
            return answer(head, json_reply(200, ledger_json(world)))
        case "GET", "looks":
            return answer(head, json_reply(200, {**looks_json(world), **more_of_looks(world)}))
        case "GET", "jobs":
            return answer(head, json_reply(200, {"jobs": await jobs_json(world)}))
        case "POST", "script":
            body = await channel.inbound.body(world.settings.body_limit_bytes)
            return answer(head, _scripted(world, body.data)) if body.complete else None
        case _:
            return answer(head, not_found())


def ledger_json(world: World) -> dict[str, Any]:
    """Every POST, the sums, and how the looks went."""
    return {
        "posts": [post.as_json() for post in world.ledger.posts],
        "totals": world.ledger.totals(world.refunded()),
        "looks": looks_json(world),
        "lists": {"count": world.lists},
        "cancels": {"count": world.cancels},
    }


def looks_json(world: World) -> dict[str, Any]:
    """How many looks came, and how many are and were held open."""
    return {"count": world.gets, "held": world.holds.now, "held_peak": world.holds.peak}


def more_of_looks(world: World) -> dict[str, Any]:
    """How many jobs were looked at, and how many looks came in each tenth of a second in which there was any."""
    jobs = sum(job.looks > 0 for job in world.jobs.values())
    return {"jobs": jobs, "by_tenth": sorted(world.gets_by_tenth.items())}


async def jobs_json(world: World) -> list[dict[str, Any]]:
    """Every job in the order of creation."""
    return [await job.as_json(world.now()) for job in tuple(world.jobs.values())]


def _scripted(world: World, data: bytes) -> Reply:
    """Take the script over whole, or refuse it whole."""
    try:
        found = json.loads(data)
        replace = found.pop("replace", False) if isinstance(found, dict) else False
        script = Script.parse(found)
        world.install(script, replace=replace is True)
    except Refused as refused:
        return error_reply(400, refused.code, refused.message, next=refused.next)
    except (ValueError, RecursionError):
        return error_reply(400, "refused", "expected JSON", next='send {"rules": [...]}')
    return json_reply(200, {"rules": len(script.rules), "mix": len(script.mix), "replaced": replace is True})
