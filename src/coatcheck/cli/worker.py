"""`worker`: runs until it is told to stop. SIGTERM and the first interrupt drain it; the second one stops it, which may leave doubt."""

import asyncio
import logging
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from coatcheck.app.health import health
from coatcheck.app.place import database_of
from coatcheck.app.workplace import ROLES, worker_of
from coatcheck.cli import logs
from coatcheck.cli.descriptors import raise_limit
from coatcheck.cli.ends import INTERRUPTED
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import say
from coatcheck.config import Settings, load_settings
from coatcheck.config.sizing import check_leases
from coatcheck.core.actions import Action
from coatcheck.delivery.trial import trouble_of
from coatcheck.errors import Refused, SettingInvalid
from coatcheck.seams import Seams
from coatcheck.spool.folder import Folder
from coatcheck.spool.folder import trouble_of as trouble_of_spool
from coatcheck.store import schema
from coatcheck.store.blocking import connected
from coatcheck.workers.loop import Worker

logger = logging.getLogger(__name__)

_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the worker answers machines."""

    host: str
    port: int


def worker(
    *,
    roles: Annotated[str, Parameter(help="Which actions, between commas.")] = ",".join(ROLES),
    until_idle: Annotated[
        bool, Parameter(negative="", help="End when nothing is left but what waits for a person or for accounting.")
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Parameter(help="What is logged on stderr.")
    ] = "info",
    health_port: Annotated[
        int | None, Parameter(help="Serve /healthz, /readyz and /metrics there; 0 takes a free port and says which.")
    ] = None,
    health_host: Annotated[
        str, Parameter(help="The address of that port; anybody who reaches it can read.")
    ] = "127.0.0.1",
    _as_json: AsJson = False,
) -> int:
    """Dispatch, observe, deliver and reconcile. Says `ready` with the worker's name on stderr once it leases."""
    _check_port(health_port)
    chosen = _roles(roles)
    settings, seams = load_settings(), Seams.real()
    check_leases(settings)
    _check_providers(settings, chosen)
    if Action.DELIVER in chosen:
        _check_sink(settings, seams)
    if Action.DISPATCH in chosen:
        _check_spool(settings)
    logs.configure(log_level)
    _check_descriptors(settings)
    with database_of(settings, seams) as url:
        with connected(url, "worker") as connection:
            schema.check_schema(connection)
        place = None if health_port is None else _Place(host=health_host, port=health_port)
        return asyncio.run(_run(settings, url, seams, chosen, until_idle=until_idle, place=place))


def _check_port(port: int | None) -> None:
    if port is not None and not 0 <= port <= _LAST_PORT:
        raise Refused(f"--health-port: expected 0 to {_LAST_PORT}, got {port}", next="0 takes any that is free")


def _check_sink(settings: Settings, seams: Seams) -> None:
    """A worker that could not keep an output would find out only after the render was paid."""
    trouble = trouble_of(settings.sink_path, seams=seams, keep_folders=True)
    if trouble is not None:
        raise SettingInvalid(
            f"COATCHECK_SINK: expected a folder that this account can write, got {settings.sink_path} ({trouble})",
            next="give this account the folder, or set COATCHECK_SINK=file:///another/folder",
        )


def _check_spool(settings: Settings) -> None:
    """A worker without one would lose what was paid for when it dies while the database is away."""
    trouble = trouble_of_spool(settings.home, keep_folder=True)
    if trouble is not None:
        raise SettingInvalid(
            f"COATCHECK_HOME: expected a folder in which this account alone can keep its spool, got {Folder(settings.home).path} ({trouble})",
            next="give this account the folder, or set COATCHECK_HOME to another on a disk that outlives the process",
        )


def _check_descriptors(settings: Settings) -> None:
    places = settings.concurrency
    needed, limit = raise_limit(places.dispatch + places.observe + places.deliver)
    if needed > limit:
        say(
            f"warning: {needed} open files may be needed and {limit} are allowed: raise the limit or lower COATCHECK_CONCURRENCY__OBSERVE"
        )


async def _run(
    settings: Settings, url: str, seams: Seams, roles: list[Action], *, until_idle: bool, place: _Place | None
) -> int:
    async with AsyncExitStack() as stack:
        running, incarnation = await stack.enter_async_context(worker_of(settings, url, seams=seams, roles=roles))
        if place is not None:
            asked = health(running, incarnation, url, host=place.host, port=place.port, seams=seams)
            port = await stack.enter_async_context(asked)
            logger.info("health", extra={"host": place.host, "port": port})
        course = asyncio.ensure_future(running.run(until_idle=until_idle))
        _obey_signals(running)
        say(f"ready {incarnation}")
        await asyncio.wait([course])
        if not course.cancelled():
            course.result()
    return INTERRUPTED if running.is_stopped else 0


def _obey_signals(running: Worker) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        say("stopping at once")
        running.stop()
        # whoever interrupts once more wants the process gone, whatever it still waits for
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def drain() -> None:
        say("draining: dispatches that have begun are finished, the rest is given back")
        running.drain()

    def interrupt() -> None:
        drain()
        loop.add_signal_handler(signal.SIGINT, stop)

    loop.add_signal_handler(signal.SIGTERM, drain)
    loop.add_signal_handler(signal.SIGINT, interrupt)


def _roles(text: str) -> list[Action]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in ROLES]
    if unknown or not words:
        raise Refused(
            f"--roles: expected some of {', '.join(ROLES)} between commas, got {text!a}",
            next="leave --roles out to run them all",
        )
    return [role for role in ROLES if role in words]


def _check_providers(settings: Settings, roles: list[Action]) -> None:
    """A worker without a provider would look busy and do nothing; only doubt can be concluded for any provider."""
    if roles == [Action.RECONCILE]:
        return
    if not settings.providers:
        raise SettingInvalid(
            "expected at least one configured provider, got none",
            next="set COATCHECK_PROVIDERS__GENACE__BASE_URL and COATCHECK_PROVIDERS__GENACE__API_KEY",
        )
    for provider in settings.providers.values():
        provider.endpoint()
