"""`worker`: runs until it is told to stop. SIGTERM and the first interrupt drain it; the second one stops it, which may leave doubt."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import Parameter

from coatcheck.app.connections import check_room, connections_of, needed_in_words
from coatcheck.app.place import database_of
from coatcheck.app.roles import ROLES
from coatcheck.cli import logs
from coatcheck.cli.collecting import collect_seldom
from coatcheck.cli.course import Course
from coatcheck.cli.descriptors import port_count, raise_limit
from coatcheck.cli.lifeline import is_line
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import say
from coatcheck.cli.processes import Processes
from coatcheck.config import Settings, load_settings
from coatcheck.config.sizing import check_leases
from coatcheck.core.actions import Action
from coatcheck.delivery.trial import trouble_of
from coatcheck.errors import Refused, SettingInvalid
from coatcheck.seams import Seams, new_loop
from coatcheck.spool.folder import Folder
from coatcheck.spool.folder import trouble_of as trouble_of_spool
from coatcheck.store import schema
from coatcheck.store.blocking import connected, look_for_room

_LAST_PORT = 65_535
_MOST_PROCESSES = 256
"""More on one host is a slip of the keyboard."""


def worker(
    *,
    roles: Annotated[str, Parameter(help="Which actions, between commas.")] = ",".join(ROLES),
    until_idle: Annotated[
        bool, Parameter(negative="", help="End when nothing is left but what waits for a person or for accounting.")
    ] = False,
    processes: Annotated[
        int, Parameter(help="So many worker processes, kept by a parent that starts who died anew.")
    ] = 1,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Parameter(help="What is logged on stderr.")
    ] = "info",
    health_port: Annotated[
        int | None,
        Parameter(
            help="Serve /healthz, /readyz and /metrics there; 0 takes a free port and says which. "
            "Of several processes the first takes it, the others those after it."
        ),
    ] = None,
    health_host: Annotated[
        str, Parameter(help="The address of that port; anybody who reaches it can read.")
    ] = "127.0.0.1",
    number: Annotated[int | None, Parameter(show=False)] = None,
    as_json: AsJson = False,
) -> int:
    """Dispatch, observe, deliver and reconcile. Says `ready` with the worker's name on stderr once it leases."""
    _check_processes(processes, health_port, number)
    chosen = _roles(roles)
    settings, seams = load_settings(), Seams.real()
    _check(settings, seams, chosen)
    logs.configure(log_level, number)
    if number is None:
        _check_descriptors(settings)
    course = Course(
        roles=chosen, until_idle=until_idle, health_host=health_host, health_port=health_port, number=number
    )
    with database_of(settings, seams) as url:
        _check_database(url, settings, course, processes)
        if processes == 1:
            from coatcheck.cli.running import run  # noqa: PLC0415 - the parent of several stays small

            collect_seldom()
            with asyncio.Runner(loop_factory=new_loop) as runner:
                return runner.run(run(settings, url, seams, course))
        commands = [_command(course, each, log_level, as_json=as_json) for each in range(1, processes + 1)]
        return asyncio.run(Processes(commands, until_idle=until_idle, seams=seams).run())


def _check_processes(processes: int, port: int | None, number: int | None) -> None:
    if not 1 <= processes <= _MOST_PROCESSES:
        raise Refused(
            f"--processes: expected 1 to {_MOST_PROCESSES}, got {processes}",
            next="one for each processor is a good beginning",
        )
    if number is not None and (processes > 1 or not is_line(sys.stdin)):
        got = f"--processes {processes}" if processes > 1 else "a stdin that is no pipe"
        raise Refused(
            f"--number: expected a process that its parent tells on stdin what to do, got {got}",
            next="leave --number out; `coatcheck worker --processes N` gives it to each of its processes",
        )
    last = _LAST_PORT - processes + 1
    if port is not None and not 0 <= port <= last:
        each = f" for {processes} processes, which take one after the other," if processes > 1 else ","
        raise Refused(f"--health-port: expected 0 to {last}{each} got {port}", next="0 takes any that is free")


def _check(settings: Settings, seams: Seams, roles: Sequence[Action]) -> None:
    """What this machine tells. Raises what would keep a worker from its work."""
    check_leases(settings)
    _check_providers(settings, roles)
    if Action.DELIVER in roles:
        _check_sink(settings, seams)
    if Action.DISPATCH in roles:
        _check_spool(settings)


def _check_database(url: str, settings: Settings, course: Course, processes: int) -> None:
    """What the server tells. Whether there are connections enough is looked at once, for all processes."""
    with connected(url, "worker") as connection:
        schema.check_schema(connection)
        if course.number is not None:
            return
        room, is_pooled = look_for_room(connection)
    each_count = connections_of(settings, has_health=course.health_port is not None)
    if not is_pooled:
        warning = check_room(room, processes=processes, each_count=each_count)
    elif processes > 1:
        needed = needed_in_words(processes, each_count)
        warning = f"a pooler stands before the server, so nobody checked that there is room for {needed}"
    else:
        warning = None
    if warning is not None:
        say(f"warning: {warning}")


def _command(course: Course, number: int, log_level: str, *, as_json: bool) -> list[str]:
    """The command of one process: the same in everything but its number and its port."""
    words = [sys.executable, "-P", "-m", "coatcheck", "worker", "--number", str(number)]
    words += ["--roles", ",".join(course.roles), "--log-level", log_level]
    if course.health_port is not None:
        port = course.health_port and course.health_port + number - 1
        words += ["--health-host", course.health_host, "--health-port", str(port)]
    return [*words, *(["--until-idle"] if course.until_idle else []), *(["--json"] if as_json else [])]


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
    ports = port_count()
    if ports is not None and places.observe > ports:
        say(
            f"warning: {places.observe} looks may be open at once and this machine has {ports} ports for one service's address:"
            " widen net.ipv4.ip_local_port_range or lower COATCHECK_CONCURRENCY__OBSERVE"
        )


def _roles(text: str) -> list[Action]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in ROLES]
    if unknown or not words:
        raise Refused(
            f"--roles: expected some of {', '.join(ROLES)} between commas, got {text!a}",
            next="leave --roles out to run them all",
        )
    return [role for role in ROLES if role in words]


def _check_providers(settings: Settings, roles: Sequence[Action]) -> None:
    """A worker without a provider would look busy and do nothing; only doubt can be concluded for any provider."""
    if list(roles) == [Action.RECONCILE]:
        return
    if not settings.providers:
        raise SettingInvalid(
            "expected at least one configured provider, got none",
            next="set COATCHECK_PROVIDERS__GENACE__BASE_URL and COATCHECK_PROVIDERS__GENACE__API_KEY",
        )
    for provider in settings.providers.values():
        provider.endpoint()
