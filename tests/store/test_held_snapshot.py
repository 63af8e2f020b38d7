"""A snapshot that somebody holds keeps every dead row alive; claims go on, take what is due and nothing twice, and grow no dearer than they must.

How much dearer is reported, not judged: it depends on the machine.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import postgres
from coatcheck.core.actions import Action
from coatcheck.queue.leases import Release
from figures import Report, Scale
from store.ground import Ground

MESSAGES = 300
ROOM = 20


@contextmanager
def snapshot_held(database: postgres.Database) -> Iterator[None]:
    """Somebody reads, and goes on reading."""
    with database.connect() as reader:
        reader.execute("begin isolation level repeatable read")
        reader.execute("select count(*) from coatcheck.outbox")
        yield
        reader.execute("rollback")


def claimed(ground: Ground, rounds: int) -> list[float]:
    """How long each claim took while everything is claimed and given back again and again."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        held = ground.claim(Action.DISPATCH, ROOM)
        took.append(time.perf_counter() - began)
        assert len({message.slot for message in held}) == ROOM
        ground.run(ground.leases.release([Release(message=each, delay_s=0) for each in held]))
    return sorted(took)


@pytest.mark.timeout(240)
def test_a_snapshot_held_during_load_stops_no_claim(ground: Ground, figures: Report, lab_scale: Scale) -> None:
    rounds = lab_scale(ci=50, lab=1000)
    ground.enqueue_many(MESSAGES)
    claimed(ground, 20)
    free = claimed(ground, rounds)
    with snapshot_held(ground.database):
        held = claimed(ground, rounds)
    percentile = int(rounds * 0.99) - 1
    figures("claim p99 held snapshot ratio", held[percentile] / free[percentile])
    figures("claim p99 without ms", free[percentile] * 1000)
    figures("claim p99 with held snapshot ms", held[percentile] * 1000)
