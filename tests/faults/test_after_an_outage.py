"""After an hour without workers thousands are due: the service sees no more requests than its budget, and a small tenant is done early."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.request import Request, urlopen

import pytest

from coatcheck.seams import NO_FAULTS
from coatcheck.sim.requests import Head
from coatcheck.sim.world import World
from coatcheck.store.budgets import Budget, change_budget
from faults.stage import Stage
from store.ground import Ground
from waiting import until

DISPATCHES_PER_S, LOOKS_PER_S = 30.0, 30.0
BACKLOGS = {"large": 3000, "middling": 60, "small": 8}
LOOKS = {"large": 240, "middling": 24, "small": 4}
FAILED = {"queued_s": 0, "processing_s": 0, "outcome": "failed"}
"""The course of a render that leaves nothing to deliver."""
CURVE_S = 12.0
LATE = 0.25
"""Requests are counted where they arrive: a busy machine brings some of them later than they were sent, and then others close behind."""
ENQUEUE = """
select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', %s::text, 'operation_key', 'k' || n, 'provider', 'genace',
  'specification_text', '{"prompt":"' || %s || n || '","sim":' || %s || '}'))
from generate_series(1, %s::integer) as n"""


class Arrivals:
    """When each request arrived at the service, in boot time."""

    def __init__(self) -> None:
        self.posts: list[float] = []
        self.looks: list[float] = []
        self._last: Head | None = None

    def note(self, head: Head) -> None:
        if head is not self._last:
            (self.looks if head.method == "GET" else self.posts).append(time.monotonic())
        self._last = head


@pytest.fixture
def arrivals(monkeypatch: pytest.MonkeyPatch) -> Arrivals:
    noted, admits = Arrivals(), World.admits

    def noting(world: World, head: Head) -> bool:
        noted.note(head)
        return admits(world, head)

    monkeypatch.setattr(World, "admits", noting)
    return noted


def busiest(instants: Sequence[float], window_s: float) -> int:
    """The most requests that came within any such window."""
    most = start = 0
    for end, instant in enumerate(instants):
        while instant - instants[start] >= window_s:
            start += 1
        most = max(most, end - start + 1)
    return most


def backlog(stage: Stage) -> None:
    """What an hour leaves: renders that are over by now, each of which is to be looked at, and operations that were never dispatched."""
    with Ground(stage.database) as ground:
        for tenant_id, count in LOOKS.items():
            for number in range(count):
                operation_id = ground.enqueue(f"look {number}", tenant_id=tenant_id)
                ground.accept(operation_id, posted(stage, f"{tenant_id} {number}"))
    for tenant_id, count in BACKLOGS.items():
        stage.rows(ENQUEUE, tenant_id, tenant_id, json.dumps(FAILED), count)
    stage.database.move_time(3600)


def posted(stage: Stage, words: str) -> str:
    """A job that was accepted before the outage."""
    headers = {"authorization": "Bearer key-for-tests", "content-type": "application/json"}
    body = json.dumps({"prompt": words, "sim": FAILED}).encode()
    request = Request(f"{stage.sim.base_url}/api/v1/jobs", data=body, headers=headers, method="POST")
    with urlopen(request) as reply:
        found: dict[str, Any] = json.load(reply)
    return str(found["job_id"])


DISPATCHED = "select count(*) as number from coatcheck.operations where tenant_id = %s and phase <> 'prepared'"
ORDER = """
select operations.tenant_id from coatcheck.dispatches join coatcheck.operations using (operation_id)
where operations.operation_key like 'k%%' order by dispatches.begun_at"""
LOOKED = """
select operations.tenant_id from coatcheck.history join coatcheck.operations using (operation_id)
where history.to_render_state = 'failed' and operations.operation_key like 'look%%' order by history.at"""


def rank_of_last(tenants: Sequence[dict[str, Any]], tenant_id: str) -> int:
    """How many of all had their turn when the tenant's last one had it."""
    return max(place for place, row in enumerate(tenants, start=1) if row["tenant_id"] == tenant_id)


@pytest.mark.timeout(120)
def test_after_an_outage_the_request_curve_keeps_to_its_budget_and_the_small_are_done_early(
    stage: Stage, arrivals: Arrivals
) -> None:
    backlog(stage)
    budget = Budget(dispatches_per_s=DISPATCHES_PER_S, looks_per_s=LOOKS_PER_S)
    asyncio.run(change_budget(stage.url, "genace", budget, faults=NO_FAULTS))
    arrivals.posts.clear()
    arrivals.looks.clear()
    workers = [stage.worker(until_idle=False) for _ in range(2)]
    until(lambda: arrivals.posts and arrivals.looks)
    until(lambda: arrivals.posts[-1] - arrivals.posts[0] > CURVE_S, deadline_s=60)
    until(
        lambda: all(
            stage.one(DISPATCHED, name)["number"] == BACKLOGS[name] + LOOKS[name] for name in ("small", "middling")
        ),
        deadline_s=60,
    )
    for worker in workers:
        worker.terminate()
    assert [worker.ended() for worker in workers] == [0, 0]
    figures: dict[tuple[str, object], float] = {}
    for name, instants, rate in (
        ("posts", arrivals.posts, DISPATCHES_PER_S),
        ("looks", arrivals.looks, LOOKS_PER_S),
    ):
        for window_s in (1.0, 5.0, 10.0):
            allowed = rate * window_s + max(1, rate / 10)
            most = busiest(instants, window_s)
            assert most <= allowed * (1 + LATE / window_s), (name, window_s, most)
            figures[name, window_s] = most
        # what is there to be used is used
        figures[name, "per second"] = len(instants) / (instants[-1] - instants[0])
        assert figures[name, "per second"] > rate / 3, figures
    order, looked = stage.rows(ORDER), stage.rows(LOOKED)
    figures |= {("rank", name): rank_of_last(order, name) for name in ("small", "middling")}
    figures |= {("look rank", name): rank_of_last(looked, name) for name in ("small", "middling")}
    print(figures)  # noqa: T201 - the curve's figures, seen with -s
    # three tenants in turn: whoever has few is done when each had as many
    assert figures["rank", "small"] <= 2 * 3 * BACKLOGS["small"]
    assert figures["rank", "middling"] <= 2 * 2 * BACKLOGS["middling"]
    assert figures["look rank", "small"] <= 2 * 3 * LOOKS["small"] + 20
