"""Composes one worker from the settings: connections, committers, handlers, and the background tasks around the loop.

Seven PostgreSQL connections at most: three for committers, one for reads, one for leases, one that listens, and one aside for what may have to
wait: replays, the watch over restores, and the worker's own account of itself.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from coatcheck.app.providers import adapter_of, finder_of, policy_of
from coatcheck.app.roles import ROLES
from coatcheck.config import Settings, Wake
from coatcheck.config.sizing import LeaseSums, check_leases
from coatcheck.core.actions import Action
from coatcheck.delivery.fetch import Deliverer
from coatcheck.delivery.file_sink import FileSink
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import Stopped
from coatcheck.provider.cancelling import Cancels
from coatcheck.provider.connecting import secure_context
from coatcheck.provider.http import Gets
from coatcheck.queue.leases import Acknowledge, Leases, Release, SetAside
from coatcheck.seams import Seams
from coatcheck.spool.folder import Folder
from coatcheck.spool.own import Spool
from coatcheck.store.budgets import LookReport, report_looks
from coatcheck.store.committer import Committer, Lane
from coatcheck.store.db import Database, opened
from coatcheck.store.door import ConcludeSave, DecideSave, DeliverSave, Door, MarkSave, SnapshotSave
from coatcheck.store.ends import installation_of
from coatcheck.store.incidents import Note, note
from coatcheck.store.pauses import register
from coatcheck.store.requests import DeliveriesOf, OperationOf, Reader
from coatcheck.store.resolution import Traces
from coatcheck.version import VERSION
from coatcheck.workers.accounts import Accounts
from coatcheck.workers.cancelling import Cancelling
from coatcheck.workers.deliver import Delivering, DeliveryHandler
from coatcheck.workers.desk import Desk
from coatcheck.workers.dispatch import Creating, Dispatcher
from coatcheck.workers.lessor import Capacity, Lessor
from coatcheck.workers.listener import Bedtime, listen
from coatcheck.workers.lookup import Finding, Lookup
from coatcheck.workers.loop import Handler, Scope, Worker, kept_going
from coatcheck.workers.notices import Notices
from coatcheck.workers.observe import Observer, Watching
from coatcheck.workers.reconcile import Reconciler
from coatcheck.workers.renewal import Renewer, settled
from coatcheck.workers.replaying import Replayer
from coatcheck.workers.report import Reporter
from coatcheck.workers.spooling import Spooling
from coatcheck.workers.tally import Tally
from coatcheck.workers.vigil import Vigil

logger = logging.getLogger(__name__)

Opening = Callable[..., AbstractAsyncContextManager[Database]]
"""As `opened`: takes the URL, the seams and the connection's name."""

_SAVING = (Action.DISPATCH, Action.RECONCILE)
"""Roles that save what dead workers of this host left in their spools."""
_REST_S = 0.05
"""How long the committer of looks may let company come. A paid id waits for nobody."""
_PROMPT_S = 5.0
"""How long what is done aside may hold up a worker's beginning or end: a commit waits for its standby without any limit."""

_ABANDONED_S = 24 * 3600.0
"""Age after which a temporary in the sink can only be a killed process's: far beyond the longest delivery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """The worker's connections, each with its purpose."""

    marks: Database
    money: Database
    looks: Database
    reads: Database
    leases: Database
    aside: Database


@asynccontextmanager
async def worker_of(
    settings: Settings, url: str, *, seams: Seams, roles: Sequence[Action] = ROLES, opening: Opening = opened
) -> AsyncIterator[tuple[Worker, str]]:
    """A worker that is ready to run, and its incarnation. Raises `LeaseTooShort` and `Unavailable` before anything is leased.

    `opening` makes its connections, each by its name: PostgreSQL's, unless a simulation hands in others.
    """
    sums = check_leases(settings)
    incarnation = seams.ids.incarnation()
    async with AsyncExitStack() as stack:
        lines = await _lines(stack, opening, url, seams)
        vigil = Vigil(lines.aside, worker=incarnation, promotion_is_safe=settings.promotion_is_safe, seams=seams)
        # before the configured names are made known: what is new where nobody compared yet is paused
        await _prompt([await _begun(stack, seams, vigil.look, vigil.run)])
        trust = Accounts()
        await _made_known(stack, settings, lines, seams, trust)
        sink = await _sink(settings, roles, seams)
        tls = secure_context()
        gets = await stack.enter_async_context(Gets(tls=tls, seams=seams))
        cancels = await stack.enter_async_context(Cancels(tls=tls, seams=seams))
        leases = Leases(lines.leases, incarnation)
        tally = Tally()
        renewer = Renewer(leases, seams, tally)
        lessor = Lessor(
            leases, lines.leases, _capacities(settings, sums, roles), seams, lookups=_lookups(settings, roles)
        )
        spool = await _spool(stack, settings, lines, incarnation)
        desk = _desk(lines, incarnation, seams, lessor, renewer, spool, tally, trust)
        reporter = Reporter(lines.aside, worker=incarnation, version=VERSION, roles=roles, tally=tally, seams=seams)
        beginnings = [await _begun(stack, seams, reporter.report, reporter.run)]
        if not set(_SAVING).isdisjoint(roles):
            replayer = Replayer(spool, desk, lines.aside)
            beginnings.append(await _begun(stack, seams, replayer.replay, replayer.run))
        await _prompt(beginnings)
        notified = settings.wake is Wake.NOTIFY
        if notified:
            await _in_background(stack, kept_going(partial(listen, url, lessor.hear, seams), seams))
        worker = Worker(
            desk=desk,
            lessor=lessor,
            renewer=renewer,
            handlers=_handlers(settings, sums, desk, gets, cancels, sink, tls),
            scope=_scope(settings, roles),
            leases=leases,
            bedtime=Bedtime(leases, seams) if notified else None,
        )
        try:
            yield worker, incarnation
        finally:
            await _end(desk, worker, reporter)


async def _lines(stack: AsyncExitStack, opening: Opening, url: str, seams: Seams) -> _Lines:
    """The connections, each opened with its first statement and closed with the worker."""
    names = _Lines.__slots__
    return _Lines(**{name: await stack.enter_async_context(opening(url, seams=seams, name=name)) for name in names})


async def _sink(settings: Settings, roles: Sequence[Action], seams: Seams) -> FileSink:
    """The sink, without what killed processes left. One that refuses keeps no worker from starting: each delivery finds out for itself."""
    sink = FileSink(settings.sink_path, seams=seams)
    if Action.DELIVER in roles:
        try:
            await sink.sweep(_ABANDONED_S)
        except Stopped as stopped:
            logger.warning("the sink was not swept", extra={"cause": stopped.outcome.detail})
    return sink


async def _made_known(stack: AsyncExitStack, settings: Settings, lines: _Lines, seams: Seams, trust: Accounts) -> None:
    """The configured names are in the database, and the log tells what is paused of their accounts, which ends the trust in them."""
    await register(lines.leases, settings)
    accounts = {provider.account for provider in settings.providers.values()}
    await _in_background(stack, kept_going(Notices(lines.aside, accounts, seams, trust).run, seams))


async def _spool(stack: AsyncExitStack, settings: Settings, lines: _Lines, incarnation: str) -> Spool:
    """This worker's own spool, for replies to the installation that the database is."""
    spool = Spool(Folder(settings.home), await installation_of(lines.leases), incarnation)
    stack.callback(spool.close)
    return spool


async def _end(desk: Desk, worker: Worker, reporter: Reporter) -> None:
    """Write what waits; a worker that was stopped at once reports no more."""
    await desk.close()
    if not worker.is_stopped:
        await _report_the_end(reporter)


async def _report_the_end(reporter: Reporter) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_PROMPT_S):
            await reporter.report(stopped=True)


async def _in_background(stack: AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    task = asyncio.ensure_future(work)
    task.add_done_callback(_missed)
    stack.push_async_callback(settled, task)


def _missed(task: asyncio.Future[None]) -> None:
    """What goes on beside the work is not waited for by anybody, so its unforeseen end is said at once."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        logger.critical("background work ended", extra={"error": type(error).__name__})


async def _begun(
    stack: AsyncExitStack, seams: Seams, first: Callable[[], Awaitable[None]], then: Callable[[], Awaitable[None]]
) -> asyncio.Future[None]:
    """The end of `first`, which has begun; `then` goes on from there in the background."""
    beginning = asyncio.ensure_future(first())

    async def course() -> None:
        await beginning
        await kept_going(then, seams)

    await _in_background(stack, course())
    return beginning


async def _prompt(beginnings: Sequence[asyncio.Future[None]]) -> None:
    """Wait for what is to be done before anything is claimed, unless it takes long. Raises what one of them raised."""
    done, _ = await asyncio.wait(beginnings, timeout=_PROMPT_S)
    for beginning in done:
        beginning.result()


def _desk(
    lines: _Lines,
    incarnation: str,
    seams: Seams,
    lessor: Lessor,
    renewer: Renewer,
    spool: Spool,
    tally: Tally,
    trust: Accounts,
) -> Desk:
    marks = _marks(lines.marks, incarnation, seams)
    money = _money(lines.money, incarnation, seams, marks.away)
    return Desk(
        worker=incarnation,
        seams=seams,
        marks=marks,
        money=money,
        looks=_looks(lines.looks, incarnation, seams),
        reads=_reads(lines.reads, seams),
        wake=lessor.wake,
        renew=renewer.renew,
        spooling=Spooling(spool, money.away, seams),
        tally=tally,
        trust=trust,
    )


def _marks(database: Database, incarnation: str, seams: Seams) -> Committer:
    """Writes what begins a POST."""
    door, traces = Door(database, incarnation), Traces(database, incarnation)
    return Committer({MarkSave: Lane(write=door.mark, key=_operation_of_step, resolve=traces.marks)}, seams=seams)


def _money(database: Database, incarnation: str, seams: Seams, away: asyncio.Event) -> Committer:
    """Writes what a paid id depends on. That the database is `away` it also learns from the marks."""
    door, traces = Door(database, incarnation), Traces(database, incarnation)
    lanes = {
        ConcludeSave: Lane(write=door.conclude, key=_operation_of_step, resolve=traces.conclusions),
        DecideSave: Lane(write=door.decide, key=_operation_of_step, resolve=traces.decisions),
    }
    return Committer(lanes, seams=seams, away=away)


def _looks(database: Database, incarnation: str, seams: Seams) -> Committer:
    """Writes everything else."""
    door, traces = Door(database, incarnation), Traces(database, incarnation)
    ends = Leases(database, incarnation)
    lanes = {
        SnapshotSave: Lane(write=door.snapshot, key=_operation_of_step, resolve=traces.snapshots),
        DeliverSave: Lane(write=door.deliver, key=_operation_of_step, resolve=traces.deliveries),
        Release: Lane(write=ends.release, key=_slot),
        Acknowledge: Lane(write=ends.acknowledge, key=_slot),
        SetAside: Lane(write=ends.park, key=_slot),
        LookReport: Lane(write=partial(report_looks, database), key=_slot_of_look),
        Note: Lane(write=partial(note, database), key=lambda each: (each.operation_id, each.incident.kind)),
    }
    return Committer(lanes, seams=seams, rest_s=_REST_S)


def _reads(database: Database, seams: Seams) -> Committer:
    """Loads."""
    reader = Reader(database)
    lanes: dict[type, Lane] = {
        OperationOf: Lane(write=reader.operations, key=_operation),
        DeliveriesOf: Lane(write=reader.deliveries, key=_operation),
    }
    return Committer(lanes, seams=seams)


def _operation_of_step(save: MarkSave | ConcludeSave | SnapshotSave | DeliverSave | DecideSave) -> object:
    return save.step.operation_id


def _operation(read: OperationOf | DeliveriesOf) -> object:
    return read.operation_id


def _slot_of_look(report: LookReport) -> object:
    return report.operation_id


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


def _lookups(settings: Settings, roles: Sequence[Action]) -> Mapping[str, str]:
    """Where doubt may be looked up, by name and account; a worker whose service repeats nothing leaves it to a person."""
    return {name: each.account for name, each in settings.providers.items() if Action.RECONCILE in roles}


def _scope(settings: Settings, roles: Sequence[Action]) -> Scope:
    return Scope(
        actions=roles,
        providers=list(settings.providers),
        accounts=[provider.account for provider in settings.providers.values()],
    )


def _handlers(
    settings: Settings, sums: LeaseSums, desk: Desk, gets: Gets, cancels: Cancels, sink: FileSink, tls: ssl.SSLContext
) -> Mapping[Action, Handler]:
    creating, watching, delivering, finding = {}, {}, {}, {}
    for name, provider in settings.providers.items():
        adapter = adapter_of(provider)
        creating[name] = Creating(port=adapter, settings=provider, lease_s=sums.dispatch.lease_s, tls=tls)
        cancelling = Cancelling(port=adapter, settings=provider, line=cancels) if provider.cancel_path else None
        watching[name] = Watching(port=adapter, settings=provider, gets=gets, cancelling=cancelling)
        if (finder := finder_of(provider)) is not None:
            finding[name] = Finding(port=finder, settings=provider, gets=gets)
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
        Action.RECONCILE: Reconciler(desk, Lookup(desk, finding)),
    }
