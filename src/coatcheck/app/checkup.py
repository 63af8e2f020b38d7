"""Whether this installation can work: each check with its reading, its limit and the remedy. Checks leave nothing behind and never repair."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from coatcheck.app.account_checks import account_checks
from coatcheck.app.around import line_checks, provider_check
from coatcheck.app.check import Check, Verdict
from coatcheck.app.connections import connections_of, room_check
from coatcheck.app.story.wording import quoted
from coatcheck.config import Settings
from coatcheck.config.sizing import LeaseSum, lease_arithmetic
from coatcheck.delivery.trial import trouble_of
from coatcheck.errors import CommitUnknown, SchemaMismatch, SettingInvalid, Unavailable
from coatcheck.seams import Seams
from coatcheck.spool.folder import Folder
from coatcheck.spool.folder import trouble_of as trouble_of_spool
from coatcheck.spool.survey import surveyed
from coatcheck.store import schema
from coatcheck.store.blocking import connected
from coatcheck.store.connection_room import read_room
from coatcheck.store.db import Database
from coatcheck.store.migrations import required_version
from coatcheck.store.server import Server, inspect
from coatcheck.store.stats import UNCLAIMED_S, Stats, read_stats
from coatcheck.store.surroundings import look_around

NEWEST_SERVER = 18


def settings_checks(settings: Settings, seams: Seams) -> Iterator[Check]:
    """What this machine tells: leases, providers, sink and spool."""
    for each in lease_arithmetic(settings).all:
        yield _lease(each, is_assumed=not settings.providers)
    if not settings.providers:
        yield Check(
            name="providers",
            verdict=Verdict.WARNING,
            reading="none configured",
            limit="at least one where workers run",
            remedy="set COATCHECK_PROVIDERS__GENACE__BASE_URL and COATCHECK_PROVIDERS__GENACE__API_KEY",
        )
    yield _sink(settings.sink_path, seams)
    yield _spool(settings.home, seams)


async def provider_checks(settings: Settings, seams: Seams) -> list[Check]:
    """What the services tell, all asked at once."""
    return await asyncio.gather(*(provider_check(each, seams) for each in settings.providers.values()))


async def database_checks(settings: Settings, url: str, database: Database, seams: Seams) -> list[Check]:
    """What the database tells, from the server up to the work that lies in it; it ends at the first thing that hides the rest."""
    try:
        server = await inspect(database)
    except (Unavailable, CommitUnknown, SettingInvalid) as error:
        return [_failed("database", error.message, "PostgreSQL within reach", error.next)]
    found = [_server(server), *_embedded(url, settings), _role(server, is_embedded=settings.database_url is None)]
    try:
        with connected(url, "doctor") as connection:
            version = schema.check_schema(connection)
    except SchemaMismatch as error:
        return [*found, _failed("schema", error.message, f"version {required_version()}", error.next)]
    limit = f"version {required_version()}, or a later one that allows it"
    found.append(Check(name="schema", verdict=Verdict.OK, reading=f"version {version}", limit=limit))
    around = await look_around(url, seams.clock)
    found += line_checks(around, settings.wake)
    found.append(room_check(await read_room(database), connections_of(settings), is_pooled=around.is_pooled))
    stats = await read_stats(database)
    return [*found, *_work(stats), *account_checks(stats.accounts)]


def _lease(each: LeaseSum, *, is_assumed: bool) -> Check:
    """Without a provider the sum lacks what a provider takes, so it says nothing about the leases of a worker."""
    label = f"COATCHECK_LEASE__{each.role.upper()}_S"
    name = f"lease {each.role}"
    reading, limit = f"{each.lease_s:g} s", f"at least {each.text}"
    if is_assumed and each.configured_s is None:
        return Check(
            name=name, verdict=Verdict.OK, reading="computed where workers run", limit="a provider is configured"
        )
    if is_assumed:
        limit += ", and what the provider takes"
    if each.fits:
        return Check(name=name, verdict=Verdict.OK, reading=reading, limit=limit)
    return _failed(name, reading, limit, f"raise {label} to {each.needed_s:g} or more, or remove it")


def _sink(folder: Path, seams: Seams) -> Check:
    """Tried out, by the account that runs the check; workers make the folder themselves."""
    limit = "a folder in which this account can make, write, link and remove"
    trouble = trouble_of(folder, seams=seams, keep_folders=False)
    if trouble is None:
        return Check(name="sink", verdict=Verdict.OK, reading=f"{folder} was tried out", limit=limit)
    remedy = "give the workers' account the folder, or set COATCHECK_SINK to another"
    return _failed("sink", f"{folder}: {trouble}", limit, remedy)


def _spool(home: Path, seams: Seams) -> Check:
    """Replies that were paid for and that no database was seen to take."""
    limit = "a folder of this account alone, in which nothing waits"
    folder = Folder(home).path
    trouble = trouble_of_spool(home, keep_folder=False)
    if trouble is not None:
        return _failed(
            "spool", f"{folder}: {trouble}", limit, f"give the workers' account {folder}, or set COATCHECK_HOME"
        )
    try:
        found = surveyed(home)
    except OSError as error:
        remedy = "run this as the account of the workers"
        return _failed("spool", f"{folder}: {error.strerror}", limit, remedy)
    if found.line_count:
        age_s = (seams.clock.now() - found.oldest_at).total_seconds() if found.oldest_at else 0.0
        reading = f"{folder}: {found.line_count} replies wait in {found.file_count} files, the oldest for {max(0.0, age_s):.0f} s"
        return _failed(
            "spool", reading, limit, "run `coatcheck worker` on this host with the database that they belong to"
        )
    if found.damaged:
        remedy = "reconcile what is uncertain, then move them elsewhere; docs/operating.md tells how"
        return _failed("spool", f"{folder}: damaged: {', '.join(found.damaged)}", limit, remedy)
    return Check(name="spool", verdict=Verdict.OK, reading=f"{folder} was tried out", limit=limit)


def _server(server: Server) -> Check:
    limit = f"{schema.OLDEST_SERVER} to {NEWEST_SERVER}, taking writes"
    reading = f"PostgreSQL {server.version}{', read only' if server.is_read_only else ''}"
    if server.major_version < schema.OLDEST_SERVER:
        return _failed("database", reading, limit, "upgrade the server")
    if server.is_read_only:
        return _failed("database", reading, limit, "connect to the primary")
    if server.major_version > NEWEST_SERVER:
        remedy = "newer than what this version of coatcheck was tested on: look for a newer coatcheck"
        return Check(name="database", verdict=Verdict.WARNING, reading=reading, limit=limit, remedy=remedy)
    return Check(name="database", verdict=Verdict.OK, reading=reading, limit=limit)


def _embedded(url: str, settings: Settings) -> Iterator[Check]:
    """The embedded server's address, which a program's own connection needs; it has no password."""
    if settings.database_url is None:
        limit = "there while a command, a worker or a library uses it"
        yield Check(name="embedded server", verdict=Verdict.OK, reading=url, limit=limit)


def _role(server: Server, *, is_embedded: bool) -> Check:
    powers = [
        word
        for word, has in (
            ("superuser", server.is_superuser),
            ("bypasses row-level security", server.bypasses_row_security),
            ("owns the tables", server.is_owner),
        )
        if has
    ]
    limit = "no superuser, no BYPASSRLS, not the owner"
    reading = f"{server.role}{': ' + ', '.join(powers) if powers else ''}"
    if not powers or is_embedded:
        return Check(
            name="role",
            verdict=Verdict.OK,
            reading=reading,
            limit="any, as the server is embedded" if is_embedded else limit,
        )
    remedy = "connect workers as a member of coatcheck_worker and the application as one of coatcheck_app"
    return Check(name="role", verdict=Verdict.WARNING, reading=reading, limit=limit, remedy=remedy)


def _work(stats: Stats) -> Iterator[Check]:
    is_claimed = stats.unclaimed_count == 0
    of = f", of {', '.join(map(quoted, stats.unclaimed_providers))}" if stats.unclaimed_providers else ""
    yield Check(
        name="unclaimed messages",
        verdict=Verdict.OK if is_claimed else Verdict.WARNING,
        reading=f"{stats.unclaimed_count}{of}",
        limit=f"none due for more than {UNCLAIMED_S:g} s",
        remedy=""
        if is_claimed
        else "run a worker that has the provider, the account and the roles of these messages, or cancel their operations",
    )
    is_staffed = stats.worker_count > 0
    yield Check(
        name="workers",
        verdict=Verdict.OK if is_staffed else Verdict.WARNING,
        reading=f"{stats.worker_count} seen lately",
        limit="at least one",
        remedy="" if is_staffed else "run `coatcheck worker`",
    )


def _failed(name: str, reading: str, limit: str, remedy: str) -> Check:
    return Check(name=name, verdict=Verdict.FAILED, reading=reading, limit=limit, remedy=remedy)
