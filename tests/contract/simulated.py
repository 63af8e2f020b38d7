"""The simulated service reached by the real client: one fault, one request over real sockets, one exchange."""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

from coatcheck.core.events import Accepted
from coatcheck.core.evidence import Exchange
from coatcheck.core.operation import RemoteJobId
from coatcheck.provider.http import Gets
from coatcheck.provider.port import Adapter
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Seams
from coatcheck.sim import ThreadedService
from contract.scenarios import Scenario
from provider.sending import DISPATCH, NOW, TLS

QUICK: Mapping[str, Any] = {"queued_s": 0, "processing_s": 0}


async def created(adapter: Adapter, job: Mapping[str, Any], *, limit_s: float) -> Exchange:
    seams = Seams.real()
    window = SendWindow(send_by=seams.clock.boottime() + 5, limit_s=limit_s)
    text = json.dumps({"prompt": "a red bird", "sim": {**QUICK, **job}}).encode()
    return await post(
        adapter.create(text, dispatch_id=DISPATCH), window=window, progress=Progress(seams.clock), tls=TLS, seams=seams
    )


async def looked(adapter: Adapter, job: RemoteJobId, *, wait_s: float) -> Exchange:
    async with Gets(tls=TLS, seams=Seams.real()) as gets:
        return await gets.get(adapter.look(job, wait_s), timeout_s=10)


async def exchanged(
    sim: ThreadedService, scenario: Scenario, reached: Callable[[str], Adapter]
) -> tuple[Exchange, RemoteJobId]:
    """The exchange of the scenario's one request, and the id of the job that the service made, if it made one."""
    adapter = reached(sim.base_url)
    if scenario.on == "nowhere":
        return await created(reached(nowhere()), {}, limit_s=5), RemoteJobId("")
    if scenario.on == "create":
        struck(sim, scenario)
        exchange = await created(adapter, scenario.job, limit_s=0.5 if scenario.rule == {"kind": "stall"} else 10)
        return exchange, RemoteJobId(next((job["id"] for job in await asyncio.to_thread(sim.jobs)), ""))
    reply = adapter.reply(await created(adapter, scenario.job, limit_s=10), dispatch_id=DISPATCH, now=NOW)
    assert isinstance(reply, Accepted)
    await looked(adapter, reply.remote_job_id, wait_s=5)
    struck(sim, scenario)
    closing = scenario.rule is not None and scenario.rule["kind"] == "closed_window"
    return await looked(adapter, reply.remote_job_id, wait_s=0.05 if closing else 5), reply.remote_job_id


def struck(sim: ThreadedService, scenario: Scenario) -> None:
    if scenario.rule is not None:
        sim.script([{"on": scenario.on, **scenario.rule}])


def nowhere() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
