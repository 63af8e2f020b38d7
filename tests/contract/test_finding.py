"""Searches and lists over real sockets: what a lost reply named is found again, by its account alone, and nothing is ever created."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

import pytest

from coatcheck.config import Secret
from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.provider.http import Gets
from coatcheck.provider.looking import find_once, list_once, look_once
from coatcheck.provider.port import Absent, Echoed, Found, Listed, Listing, Look, Seen, Transient, Unechoed
from coatcheck.seams import Seams
from coatcheck.sim import ServiceSettings, ThreadedService, simulated_service
from contract.simulated import created
from provider.genaces import echo, genace
from provider.sending import DISPATCH, TLS

Answer = TypeVar("Answer")
LOST = {"create": "accept_then_drop"}


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=11, settings=ServiceSettings(style="echo")) as service:
        yield service


def asked(question: Callable[[Gets], Awaitable[Answer]]) -> Answer:
    async def ask() -> Answer:
        async with Gets(tls=TLS, seams=Seams.real()) as gets:
            return await question(gets)

    return asyncio.run(ask())


def lost(sim: ThreadedService) -> RemoteJobId:
    asyncio.run(created(echo(base_url=sim.base_url), LOST, limit_s=10))
    return RemoteJobId(sim.jobs()[-1]["id"])


def find(sim: ThreadedService, dispatch_id: DispatchId = DISPATCH, key: str = "secret-key") -> Found:
    adapter = echo(base_url=sim.base_url, api_key=Secret(key))
    return asked(lambda gets: find_once(adapter, gets, dispatch_id, timeout_s=10, clock=Seams.real().clock))


def look(sim: ThreadedService, job: RemoteJobId, key: str = "secret-key") -> Look:
    adapter = echo(base_url=sim.base_url, api_key=Secret(key))
    return asked(lambda gets: look_once(adapter, gets, job, timeout_s=10, clock=Seams.real().clock))


def listed(sim: ThreadedService, begins_s: float, list_path: str = "/api/v1/jobs") -> Listed | None:
    """The jobs of the minute that began so many seconds ago."""
    adapter = genace(base_url=sim.base_url, list_path=list_path)
    after = datetime.now(UTC) - timedelta(seconds=begins_s)
    before = after + timedelta(minutes=1)
    clock = Seams.real().clock
    return asked(lambda gets: list_once(adapter, gets, after=after, before=before, timeout_s=10, clock=clock))


def test_what_a_lost_reply_named_is_found_by_its_reference_and_by_its_own_account_only(sim: ThreadedService) -> None:
    job = lost(sim)
    found = find(sim)
    assert isinstance(found, Echoed)
    assert (found.candidate.remote_job_id, found.candidate.reference) == (job, str(DISPATCH))
    assert find(sim, DispatchId(UUID(int=8))) == find(sim, key="another-key") == Unechoed()
    assert (isinstance(look(sim, job), Seen), look(sim, job, key="another-key")) == (True, Absent())
    assert len(sim.posts) == 1


def test_candidates_are_those_of_the_window(sim: ThreadedService) -> None:
    job = lost(sim)
    near, far = listed(sim, 30), listed(sim, 3600)
    assert isinstance(near, Listing)
    assert [candidate.remote_job_id for candidate in near.candidates] == [job]
    assert far == Listing()
    assert listed(sim, 30, list_path="") is None


def test_a_service_without_a_list_finds_nothing_and_says_nothing_about_the_job() -> None:
    with simulated_service(seed=11) as plain:
        lost(plain)
        assert find(plain) == Transient(cause="status_404")


def test_a_service_that_is_down_says_nothing_about_the_job(sim: ThreadedService) -> None:
    lost(sim)
    sim.stop()
    assert find(sim) == Transient(cause="refused")
