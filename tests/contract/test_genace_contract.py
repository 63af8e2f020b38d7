"""One contract, two sources, for every kind of service: simulated and reached by the real client, and recorded in files."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest

from coatcheck.core.evidence import Exchange
from coatcheck.core.operation import RemoteJobId
from coatcheck.provider.port import Adapter
from coatcheck.sim import ServiceSettings, ThreadedService, simulated_service
from contract.recordings import FOLDER, recorded
from contract.scenarios import SCENARIOS, Verdict
from contract.simulated import exchanged
from provider.genaces import echo, genace
from provider.sending import DISPATCH, NOW

KINDS: Mapping[str, Callable[[str], Adapter]] = {
    "genace": lambda base_url: genace(base_url=base_url),
    "echo": lambda base_url: echo(base_url=base_url),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sim(kind: str) -> Iterator[ThreadedService]:
    with simulated_service(seed=11, settings=ServiceSettings(style=kind)) as service:
        yield service


def verdict(adapter: Adapter, name: str, exchange: Exchange, job: RemoteJobId) -> Verdict:
    if SCENARIOS[name].on == "look":
        return adapter.seen(exchange, remote_job_id=job, now=NOW)
    return adapter.reply(exchange, dispatch_id=DISPATCH, now=NOW)


def check(kind: str, name: str, exchange: Exchange, job: RemoteJobId) -> None:
    scenario = SCENARIOS[name]
    found = verdict(KINDS[kind]("https://api.example.com"), name, exchange, job)
    assert isinstance(found, scenario.means), found
    assert scenario.holds(found, job), found


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_simulated_service_keeps_the_contract(sim: ThreadedService, kind: str, name: str) -> None:
    exchange, job = asyncio.run(exchanged(sim, SCENARIOS[name], KINDS[kind]))
    check(kind, name, exchange, job)
    assert len(sim.posts) == (SCENARIOS[name].on != "nowhere")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_recorded_replies_keep_the_contract(kind: str, name: str) -> None:
    check(kind, name, *recorded(name))


def test_every_recording_belongs_to_a_scenario() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == set(SCENARIOS)
