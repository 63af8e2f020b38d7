"""Composes one worker from the settings: connections, committers, handlers, and the background tasks around the loop.

Five PostgreSQL connections at most: two for committers, one for reads, one for leases, one that listens.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from coatcheck.app.providers import adapter_of, policy_of
from coatcheck.config import Settings, Wake
from coatcheck.config.sizing import LeaseSums, check_leases
from coatcheck.core.actions import Action
from coatcheck.delivery.fetch import Deliverer
from coatcheck.delivery.file_sink import FileSink
from coatcheck.delivery.limits import Limits
from coatcheck.provider.connecting import secure_context
from coatcheck.provider.http import Gets
from coatcheck.queue.leases import Acknowledge, Leases, Release, SetAside
from coatcheck.seams import Seams
from coatcheck.store.committer import Committer, Lane
from coatcheck.store.db import Database, opened
from coatcheck.store.door import ConcludeSave, DecideSave, DeliverSave, Door, MarkSave, Saved, SnapshotSave, Status
from coatcheck.store.incidents import Note, note
from coatcheck.store.pauses import register
from coatcheck.store.requests import DeliveriesOf, OperationOf, Reader
from coatcheck.version import VERSION
from coatcheck.workers.deliver import Delivering, DeliveryHandler
from coatcheck.workers.desk import Desk
from coatcheck.workers.dispatch import Creating, Dispatcher
from coatcheck.workers.lessor import Capacity, Lessor
from coatcheck.workers.listener import Bedtime, listen
from coatcheck.workers.loop import Handler, Scope, Worker
from coatcheck.workers.observe import Observer, Watching
from coatcheck.workers.reconcile import Reconciler
from coatcheck.workers.renewal import Renewer, settled
from coatcheck.workers.report import Reporter

ROLES = (Action.DISPATCH, Action.OBSERVE, Action.DELIVER, Action.RECONCILE)
_REST_S = 0.05
"""How long the committer of looks may let company come. A paid id waits for nobody."""
CONNECTIONS = 5
"""PostgreSQL connections of one worker process."""


_ABANDONED_S = 24 * 3600.0
"""Age after which a temporary in the sink can only be a killed process's: far beyond the longest delivery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """The worker's connections, each with its purpose."""

    money: Database
    looks: Database
    reads: Database
    leases: Database


@asynccontextmanager
async def worker_of(
    settings: Settings, url: str, *, seams: Seams, roles: Sequence[Action] = ROLES
) -> AsyncIterator[tuple[Worker, str]]:
    """A worker that is ready to run, and its incarnation. Raises `LeaseTooShort` and `Unavailable` before anything is leased."""
    sums = check_leases(settings)
    incarnation = seams.ids.incarnation()
    async with AsyncExitStack() as stack:
        lines = _Lines(
            **{name: await stack.enter_async_context(opened(url, seams=seams, name=name)) for name in _Lines.__slots__}
        )
        await register(lines.leases, settings)
        sink = FileSink(settings.sink_path, seams=seams)
        if Action.DELIVER in roles:
            await sink.sweep(_ABANDONED_S)
        tls = secure_context()
        gets = await stack.enter_async_context(Gets(tls=tls, seams=seams))
        leases = Leases(lines.leases, incarnation)
        desk = _desk(lines, incarnation, seams)
        renewer = Renewer(leases, seams, desk.tally, desk.lost)
        desk.renew = renewer.renew
        lessor = Lessor(leases, lines.leases, _capacities(settings, sums, roles), seams)
        desk.wake = lessor.wake
        reporter = Reporter(
            lines.reads, worker=incarnation, version=VERSION, roles=roles, tally=desk.tally, seams=seams
        )
        await reporter.report()
        await _in_background(stack, reporter.run())
        if settings.wake is Wake.NOTIFY:
            await _in_background(stack, listen(url, lessor.wake, seams))
        worker = Worker(
            desk=desk,
            lessor=lessor,
            renewer=renewer,
            handlers=_handlers(settings, sums, desk, gets, sink, tls),
            scope=_scope(settings, roles),
            database=lines.leases,
            bedtime=Bedtime(lines.leases, seams) if settings.wake is Wake.NOTIFY else None,
        )
        try:
            yield worker, incarnation
        finally:
            for committer in (desk.money, desk.looks, desk.reads):
                await committer.close()
            await reporter.report(stopped=True)


async def _in_background(stack: AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    stack.push_async_callback(settled, asyncio.ensure_future(work))


def _desk(lines: _Lines, incarnation: str, seams: Seams) -> Desk:
    money, looks, reader = Door(lines.money, incarnation), Door(lines.looks, incarnation), Reader(lines.reads)
    ends = Leases(lines.looks, incarnation)
    return Desk(
        worker=incarnation,
        seams=seams,
        money=Committer(
            {
                # a mark whose commit nobody saw is never written again: no POST may follow it
                MarkSave: Lane(
                    write=money.mark, key=_operation_of_step, on_unknown=lambda _: Saved(status=Status.UNKNOWN)
                ),
                ConcludeSave: Lane(write=money.conclude, key=_operation_of_step),
                DecideSave: Lane(write=money.decide, key=_operation_of_step),
            },
            seams=seams,
        ),
        looks=Committer(
            {
                SnapshotSave: Lane(write=looks.snapshot, key=_operation_of_step),
                DeliverSave: Lane(write=looks.deliver, key=_operation_of_step),
                DecideSave: Lane(write=looks.decide, key=_operation_of_step),
                Release: Lane(write=ends.release, key=_slot),
                Acknowledge: Lane(write=ends.acknowledge, key=_slot),
                SetAside: Lane(write=ends.park, key=_slot),
                Note: Lane(write=partial(note, lines.looks), key=lambda each: (each.operation_id, each.incident.kind)),
            },
            seams=seams,
            rest_s=_REST_S,
        ),
        reads=Committer(
            {
                OperationOf: Lane(write=reader.operations, key=_operation),
                DeliveriesOf: Lane(write=reader.deliveries, key=_operation),
            },
            seams=seams,
        ),
    )


def _operation_of_step(save: MarkSave | ConcludeSave | SnapshotSave | DeliverSave | DecideSave) -> object:
    return save.step.operation_id


def _operation(read: OperationOf | DeliveriesOf) -> object:
    return read.operation_id


def _slot(end: Release | Acknowledge | SetAside) -> object:
    return end.message.slot


def _capacities(settings: Settings, sums: LeaseSums, roles: Sequence[Action]) -> Mapping[Action, Capacity]:
    accounts = {name: provider.account for name, provider in settings.providers.items()}
    everything = {
        Action.DISPATCH: (settings.concurrency.dispatch, sums.dispatch.lease_s),
        Action.OBSERVE: (settings.concurrency.observe, sums.observe.lease_s),
        Action.DELIVER: (settings.concurrency.deliver, sums.deliver.lease_s),
    }
    return {
        action: Capacity(places=places, lease_s=lease_s, accounts=accounts)
        for action, (places, lease_s) in everything.items()
        if action in roles
    }


def _scope(settings: Settings, roles: Sequence[Action]) -> Scope:
    return Scope(
        actions=[action for action in roles if action is not Action.RECONCILE],
        providers=list(settings.providers),
        accounts=[provider.account for provider in settings.providers.values()],
    )


def _handlers(
    settings: Settings, sums: LeaseSums, desk: Desk, gets: Gets, sink: FileSink, tls: ssl.SSLContext
) -> Mapping[Action, Handler]:
    creating, watching, delivering = {}, {}, {}
    for name, provider in settings.providers.items():
        adapter = adapter_of(provider)
        creating[name] = Creating(port=adapter, settings=provider, lease_s=sums.dispatch.lease_s, tls=tls)
        watching[name] = Watching(port=adapter, settings=provider, gets=gets)
        deliverer = Deliverer(
            sink=sink,
            policy=policy_of(provider, settings.output_hosts),
            limits=Limits(max_bytes=settings.output_max_bytes),
            seams=desk.seams,
            tls=tls,
        )
        delivering[name] = Delivering(deliverer=deliverer, tries=settings.deliver_tries)
    return {
        Action.DISPATCH: Dispatcher(desk, creating),
        Action.OBSERVE: Observer(desk, watching),
        Action.DELIVER: DeliveryHandler(desk, delivering),
        Action.RECONCILE: Reconciler(desk),
    }
