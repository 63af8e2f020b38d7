"""The requests of the workflow and nothing else, as coatcheck makes them: its POST on a connection of its own, its looks, its reading of replies.

In the product only `workers/dispatch` sends a POST, after a mark. Here nothing is at stake but what it takes: the service is the measurement's own.
"""

import uvloop
import workload

from coatcheck.cli.collecting import collect_seldom
from coatcheck.config import load_settings
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


async def work(order: workload.Order) -> None:
    """Until killed."""
    seams, tls = Seams.real(), secure_context()
    given = {
        "COATCHECK_PROVIDERS__GENACE__BASE_URL": order.service_url,
        "COATCHECK_PROVIDERS__GENACE__API_KEY": "bench-key",
    }
    settings = load_settings(given).providers["genace"]
    adapter = Genace.configured(settings, version="bench")
    collect_seldom()

    async def submitted(prompt: str) -> RemoteJobId:
        dispatch_id, progress = DispatchId(seams.ids.uuid7()), Progress(seams.clock)
        request = adapter.create(b'{"prompt":"%b"}' % prompt.encode(), dispatch_id=dispatch_id)
        window = SendWindow(send_by=seams.clock.boottime() + settings.send_s, limit_s=settings.timeout_s)
        exchange = await post(request, window=window, progress=progress, tls=tls, seams=seams)
        reply = adapter.reply(exchange, dispatch_id=dispatch_id, now=seams.clock.now())
        if not isinstance(reply, Accepted):
            raise TypeError(f"expected an accepted job, got {reply}")
        return reply.remote_job_id

    async with Gets(tls=tls, seams=seams) as gets:

        async def is_done(remote_job_id: RemoteJobId) -> bool:
            look = await look_once(
                adapter,
                gets,
                remote_job_id,
                timeout_s=settings.observe_timeout_s,
                clock=seams.clock,
                wait_s=settings.wait_s if settings.wait_param else 0.0,
            )
            if not isinstance(look, Seen):
                raise TypeError(f"expected a job, got {look}")
            return look.snapshot.render_state is RenderState.SUCCEEDED

        async def rendered(prompt: str) -> None:
            remote_job_id = await submitted(prompt)
            while not await is_done(remote_job_id):
                pass

        await workload.alone(order, rendered)


if __name__ == "__main__":
    workload.run(workload.no_queue, work, uvloop.new_event_loop)
