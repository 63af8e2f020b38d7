"""One contract, two sources: the simulated service reached by the real client, and replies recorded in files."""

import asyncio
from collections.abc import Iterator

import pytest

from coatcheck.core.evidence import Exchange
from coatcheck.core.operation import RemoteJobId
from coatcheck.sim import ThreadedService, simulated_service
from contract.recordings import FOLDER, recorded
from contract.scenarios import SCENARIOS, Verdict
from contract.simulated import exchanged
from provider.genaces import genace
from provider.sending import DISPATCH, NOW


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=11) as service:
        yield service


def verdict(name: str, exchange: Exchange, job: RemoteJobId) -> Verdict:
    if SCENARIOS[name].on == "look":
        return genace().seen(exchange, remote_job_id=job, now=NOW)
    return genace().reply(exchange, dispatch_id=DISPATCH, now=NOW)


def check(name: str, exchange: Exchange, job: RemoteJobId) -> None:
    scenario = SCENARIOS[name]
    found = verdict(name, exchange, job)
    assert isinstance(found, scenario.means), found
    assert scenario.holds(found, job), found


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_simulated_service_keeps_the_contract(sim: ThreadedService, name: str) -> None:
    exchange, job = asyncio.run(exchanged(sim, SCENARIOS[name]))
    check(name, exchange, job)
    assert len(sim.posts) == (SCENARIOS[name].on != "nowhere")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_recorded_replies_keep_the_contract(name: str) -> None:
    check(name, *recorded(name))


def test_every_recording_belongs_to_a_scenario() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == set(SCENARIOS)
