"""One look, one search, one list: a GET and what the adapter makes of it. Free and repeatable; nothing here can name a POST.

Whoever looks, worker or command, looks through these, so that both read a reply alike. Remote faults are in the value, never raised.
"""

from datetime import datetime

from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.provider.port import FindPort, Found, Getter, Listed, ListPort, Look, LookPort
from coatcheck.seams import Clock


async def look_once(
    port: LookPort, getter: Getter, remote_job_id: RemoteJobId, *, timeout_s: float, clock: Clock, wait_s: float = 0.0
) -> Look:
    """What the service says of one job; it may hold the answer back for `wait_s` seconds.

    `await look_once(adapter, gets, RemoteJobId("job-1"), timeout_s=10, clock=seams.clock)`
    """
    exchange = await getter.get(port.look(remote_job_id, wait_s), timeout_s=timeout_s)
    return port.seen(exchange, remote_job_id=remote_job_id, now=clock.now())


async def find_once(
    port: FindPort, getter: Getter, dispatch_id: DispatchId, *, timeout_s: float, clock: Clock
) -> Found:
    """Which job repeats the reference of a dispatch.

    `await find_once(finder, gets, dispatch_id, timeout_s=10, clock=seams.clock)`
    """
    exchange = await getter.get(port.find(dispatch_id), timeout_s=timeout_s)
    return port.found(exchange, dispatch_id=dispatch_id, now=clock.now())


async def list_once(
    port: ListPort, getter: Getter, *, after: datetime, before: datetime, timeout_s: float, clock: Clock
) -> Listed | None:
    """The account's jobs of a window, for a person to read; None where the service has no list.

    `await list_once(adapter, gets, after=begun_at, before=quiescent_at, timeout_s=10, clock=seams.clock)`
    """
    request = port.listed(after, before)
    if request is None:
        return None
    exchange = await getter.get(request, timeout_s=timeout_s)
    return port.candidates(exchange, now=clock.now())
