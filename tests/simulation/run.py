"""The run of one seed: faults, then healing, then what must have come about, and what must never have.

found = play(7)
assert not found.findings
"""

import asyncio
import contextlib
import gc
import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from coatcheck.seams import Point
from coatcheck.store.operations import find
from simulation.checker import findings, read_by_others, sent_by_others, spooled, unsettled
from simulation.host import Host
from simulation.limits import allow_all, allow_some, limit
from simulation.loop import EndedError, passing
from simulation.people import TENANTS
from simulation.troubles import Mix, Trouble
from simulation.world import World

FAULTS_S = 28.0
"""How long things go wrong."""
HEALED_S = 400.0
"""Within how long after that all that is owed has come about."""


QUIET_S = 5.0
"""How long one more worker runs when nothing is owed any more."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run showed. `digest` is the hash of all its events."""

    seed: int
    findings: tuple[str, ...]
    digest: str
    events: int
    steps: int
    seconds: float
    posts: int
    operations: int
    fired: Counter[Trouble]
    passed: Counter[Point]
    lines: tuple[str, ...]


def play(seed: int, *, keeps: bool = False, mix: Mix | None = None) -> Outcome:
    """Play it, with the faults of `mix` where one is given. With `keeps` every event is kept as a line."""
    world = World(seed, keeps=keeps, mix=mix)
    found: list[str] = []
    with world.in_place(), _collected_once():
        try:
            world.loop.run_until_complete(_story(world, found))
        except EndedError as end:
            found.append(f"the run did not end: {end}")
        finally:
            found += [f"surprise: {each}" for each in world.loop.surprises]
            found += sent_by_others(world.passed.strangers)
            outcome = _outcome(world, found)
            world.end()
    return outcome


@contextlib.contextmanager
def _collected_once() -> Iterator[None]:
    """What is garbage goes at the end: when it goes, and what is said then of forgotten tasks, must not hang on the machine's memory."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect(0)


def _outcome(world: World, found: list[str]) -> Outcome:
    return Outcome(
        seed=world.seed,
        findings=tuple(found),
        digest=world.journal.digest,
        events=world.journal.count,
        steps=world.loop.steps,
        seconds=world.loop.time(),
        posts=len(world.service.ledger.posts),
        operations=len(world.memory.tables.operations.rows),
        fired=world.journal.fired,
        passed=world.passed.counts,
        lines=tuple(world.journal.lines),
    )


async def _story(world: World, found: list[str]) -> None:
    world.journal.say(f"mix: {world.mix.told}")
    allow_some(world.memory, world.chance_of("allowances"))
    lives = await world.begin()
    enqueuing = asyncio.create_task(world.application.work())
    await _faults(world)
    await enqueuing
    await _heal(world)
    found += await _settle(world)
    for host in world.hosts:
        await host.close()
    await asyncio.gather(*lives)
    await _last_worker(world)
    await world.service.stop()
    world.journal.say(f"tables {_digest(world)}")
    found += [f"surprise: {each}" for host in world.hosts for each in host.surprises]
    found += [
        each
        async for each in read_by_others(world.memory.tables.operations, TENANTS, partial(find, world.person.database))
    ]
    found += spooled(world.settings.home)
    found += findings(world.memory.snapshot(), world.service.ledger.posts, world.service.jobs, world.settings.sink_path)


async def _last_worker(world: World) -> None:
    """Whoever starts next on this host replays what the ones before left on its disk."""
    last = world.one_more()
    life = asyncio.create_task(last.keep_running())
    await passing(QUIET_S)
    await last.close()
    await life


def _digest(world: World) -> str:
    """A hash of all tables, whose folder's name is the only word in them that is another in every run."""
    told = [(name, [(*row, *map(str, row.values())) for row in rows]) for name, rows in world.memory.snapshot().items()]
    return hashlib.sha256(repr(told).replace(str(world.folder), "").encode()).hexdigest()


async def _faults(world: World) -> None:
    """Second by second, until it is enough."""
    chance = world.chance_of("director")
    ends_at = world.loop.time() + FAULTS_S
    await passing(3.0)
    limit(world.memory, chance)
    while world.loop.time() < ends_at:
        await passing(chance.uniform(0.5, 1.5))
        for host in world.hosts:
            _strike(world, chance, host)
        await _strike_all(world, chance)


def _strike(world: World, chance: random.Random, host: Host) -> None:
    for trouble in (Trouble.KILL, Trouble.STOP, Trouble.DRAIN):
        if chance.random() < world.mix.rate(trouble) and host.process is not None:
            world.journal.strike(trouble, host.process.name)
            match trouble:
                case Trouble.KILL:
                    host.kill()
                case Trouble.STOP:
                    host.stop(chance.choice((0.5, 3.0, 15.0, 22.0)))
                case _:
                    host.drain()


async def _strike_all(world: World, chance: random.Random) -> None:
    if chance.random() < world.mix.rate(Trouble.DATABASE_AWAY):
        world.database.away_until = world.loop.time() + chance.choice((0.5, 3.0, 10.0, 25.0))
    if chance.random() < world.mix.rate(Trouble.SERVICE_AWAY):
        world.journal.strike(Trouble.SERVICE_AWAY)
        await world.service.stop()
        await passing(chance.choice((0.2, 2.0, 8.0)))
        await world.service.start()
    if chance.random() < world.mix.rate(Trouble.CANCELLED):
        await world.person.cancel_something()
    if chance.random() < world.mix.rate(Trouble.DECIDED):
        await world.person.decide_something()
        await world.person.resume_account()


async def _heal(world: World) -> None:
    """All faults are off. Of the processes some are begun anew, and what was stopped goes on."""
    chance = world.chance_of("healer")
    world.journal.say("healing")
    world.mix.heal()
    world.database.away_until = 0.0
    allow_all(world.memory)
    world.person.begin_anew()
    world.service.script({"rules": [], "mix": []}, replace=True)
    for host in world.hosts:
        if host.process is not None:
            world.loop.go_on(host.process)
            if chance.random() < 0.6:
                host.kill()


async def _settle(world: World) -> list[str]:
    """People do their part until nothing is owed, or the time is over."""
    ends_at = world.loop.time() + HEALED_S
    tables = world.memory.tables
    while left := list(unsettled(tables.operations, tables.outbox, tables.deliveries)):
        if world.loop.time() > ends_at:
            return [f"liveness: {each}" for each in left]
        await passing(1.0)
        await world.person.resume_paused()
        await world.person.decide_something()
    return []
