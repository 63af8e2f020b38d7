"""The requests alone are measured only where they are those of the workflow, one POST for each operation and looks until it is done."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench.peers import alone
from bench.peers.alone import ALONE, Requests, measured_alone
from bench.peers.contestants import Contestant
from bench.peers.program import Task
from bench.peers.stage import Stage

from coatcheck.errors import Failed

OPERATIONS = 5
PLANTED = replace(ALONE[0], name="planted", requirements="none", program=Path(__file__).with_name("planted_alone.py"))


def measured(stage: Stage, contestant: Contestant, fault: str = "") -> Requests:
    set_up = {"concurrency": 2, "fault": fault}
    database = f"{contestant.name} {fault}"
    task = Task(contestant=contestant, python=sys.executable, set_up=set_up, operations=OPERATIONS, database=database)
    return measured_alone(stage, task)


@pytest.mark.parametrize("contestant", [*ALONE, PLANTED], ids=lambda each: each.name)
def test_requests_that_are_right_are_measured(stage: Stage, contestant: Contestant) -> None:
    found = measured(stage, contestant)
    assert found.operations == OPERATIONS
    assert found.per_second > 0
    assert found.service_cpu_us >= 0
    assert found.client_cpu_us >= 0
    assert found.name == contestant.name


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("sent twice", "planted: expected one POST for each of 5 operations, got 10 for 5"),
        ("looked once", "expected planted to be done"),
        ("looked thrice", "planted: expected 2 looks at each of 5 operations, got 15 in all"),
        ("died", "it died"),
    ],
)
def test_requests_that_are_wrong_are_told(stage: Stage, monkeypatch: pytest.MonkeyPatch, fault: str, told: str) -> None:
    monkeypatch.setattr(alone, "PATIENCE_S", 3.0 if fault == "looked once" else 60.0)
    with pytest.raises(Failed, match=told):
        measured(stage, PLANTED, fault)
