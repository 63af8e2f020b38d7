"""A sink that refuses costs deliveries and nothing else: its worker starts, sends and looks all the same."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import postgres
from coatcheck.sim import simulated_service
from faults.stage import QUICK, Stage


@pytest.fixture
def stage(database: postgres.Database, tmp_path: Path) -> Iterator[Stage]:
    with simulated_service(seed=7) as sim, Stage(database, sim, tmp_path) as made:
        yield made


def test_a_worker_starts_although_its_sink_cannot_be_swept(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A file lies where the folder should be: the render is paid and known, and its delivery is set aside for a person."""
    (order,) = stage.enqueue(QUICK)
    stage.sink.touch()
    with caplog.at_level(logging.WARNING):
        stage.work(COATCHECK_DELIVER_TRIES="1")
    assert [vars(each)["cause"] for each in caplog.records if each.getMessage() == "the sink was not swept"] != []
    found = stage.operation(order)
    assert (found["phase"], found["render_state"], found["delivery_state"]) == ("accepted", "succeeded", "failed")
    assert stage.posts(order) == 1
