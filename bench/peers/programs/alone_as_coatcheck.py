"""The requests of the workflow and nothing else, as coatcheck makes them: its POST on a connection of its own, its looks, its reading of replies."""

import asyncio

import uvloop
import workload

from coatcheck.config import load_settings
from coatcheck.config.settings import ProviderSettings
from coatcheck.core.events import Accepted
from coatcheck.core.operation import DispatchId, RemoteJobId, RenderState
from coatcheck.provider.connecting import secure_context
from coatcheck.provider.genace import Genace
from coatcheck.provider.http import Gets
from coatcheck.provider.looking import look_once
from coatcheck.provider.port import Seen
from coatcheck.provider.progress import Progress
from coatcheck.provider.wire import SendWindow, post
from coatcheck.seams import Seams

TIMEOUT_S = 60.0


async def fill(order: workload.Order) -> None:
    """There is no queue."""


async def work(order: workload.Order) -> None:
    """So many at once until all are done, then wait to be killed: who reads what a process took needs it alive."""
    seams, tls, prompts = Seams.real(), secure_context(), iter(order.prompts())
    adapter = Genace.configured(_settings(order), version="bench")

    async def submitted(prompt: str) -> RemoteJobId:
        dispatch_id, progress = DispatchId(seams.ids.uuid7()), Progress(seams.clock)
        request = adapter.create(b'{"prompt":"%b"}' % prompt.encode(), dispatch_id=dispatch_id)
        window = SendWindow(send_by=seams.clock.boottime() + TIMEOUT_S, limit_s=TIMEOUT_S)
        exchange = await post(request, window=window, progress=progress, tls=tls, seams=seams)
        reply = adapter.reply(exchange, dispatch_id=dispatch_id, now=seams.clock.now())
        if not isinstance(reply, Accepted):
            raise TypeError(f"expected an accepted job, got {reply}")
        return reply.remote_job_id

    async with Gets(tls=tls, seams=seams) as gets:

        async def is_done(remote_job_id: RemoteJobId) -> bool:
            look = await look_once(adapter, gets, remote_job_id, timeout_s=TIMEOUT_S, clock=seams.clock)
            if not isinstance(look, Seen):
                raise TypeError(f"expected a job, got {look}")
            return look.snapshot.render_state is RenderState.SUCCEEDED

        async def one_by_one() -> None:
            for prompt in prompts:
                remote_job_id = await submitted(prompt)
                while not await is_done(remote_job_id):
                    pass

        await asyncio.gather(*(one_by_one() for _ in range(order.concurrency)))
    await asyncio.Event().wait()


def _settings(order: workload.Order) -> ProviderSettings:
    given = {
        "COATCHECK_PROVIDERS__GENACE__BASE_URL": order.service_url,
        "COATCHECK_PROVIDERS__GENACE__API_KEY": "bench-key",
    }
    return load_settings(given).providers["genace"]


if __name__ == "__main__":
    workload.run(fill, work, uvloop.new_event_loop)
