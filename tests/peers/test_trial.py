"""A contestant is measured only where every operation is right: each fault that could make it look fast is planted, and told."""

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from bench.peers import contestants, floor, trial
from bench.peers.contestants import PROGRAMS, Contestant
from bench.peers.program import Task
from bench.peers.stage import Stage

from coatcheck.errors import Failed

OPERATIONS = 3
PLANTED = Contestant(
    name="planted",
    requirements="none",
    package="none",
    program=Path(__file__).with_name("planted_main.py"),
    set_ups=[{"concurrency": 1, "fault": ""}],
    done="select count(*) from renders where is_done",
    saved="select count(distinct remote_job_id) from renders",
)


def ran(stage: Stage, fault: str, *, counting: bool = False) -> trial.Trial:
    set_up = {"concurrency": 1, "fault": fault}
    database = f"planted {fault} {counting}"
    task = Task(contestant=PLANTED, python=sys.executable, set_up=set_up, operations=OPERATIONS, database=database)
    return trial.ran(stage, task, counting=counting)


def test_a_contestant_that_is_right_is_measured(stage: Stage) -> None:
    found = ran(stage, "")
    assert found.problem == ""
    assert found.per_second > 0
    assert found.wal_bytes > 0
    assert found.peak_mib > 1


def test_statements_and_commits_are_counted_to_the_one(stage: Stage) -> None:
    found = ran(stage, "", counting=True)
    assert found.statements == 2
    # and one for the connection, which looks up its user and its database
    assert OPERATIONS * found.commits == pytest.approx(2 * OPERATIONS, abs=2)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("sent twice", "expected one POST for each of 3 operations, got 6 for 3"),
        ("unsaved", "expected 3 successes and ids, got 3 and 0"),
        ("not done", "expected 3 successes and ids, got 0 and 3"),
        ("died", "its worker ended: it died"),
        ("unfilled", "the queue was not filled: nothing was filled"),
    ],
)
def test_a_contestant_that_is_wrong_is_told_and_not_measured(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, fault: str, told: str
) -> None:
    monkeypatch.setattr(trial, "PATIENCE_S", 60.0 if fault in ("sent twice", "died", "unfilled") else 6.0)
    found = ran(stage, fault)
    assert found.problem == told
    assert found.per_second == 0


def test_pgbench_takes_a_batch_through_its_life_with_the_projects_own_statements(stage: Stage) -> None:
    found = floor.measured(stage, floor.BATCH, "floor")
    assert found.operations == floor.BATCH
    # seven statements, the query that gathers, and what connecting twice takes
    assert 8 <= found.commits * floor.BATCH <= 24


def test_a_floor_whose_operations_do_not_succeed_is_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list(floor._steps())[:-1]
    monkeypatch.setattr(floor, "_steps", lambda: iter(steps))
    with pytest.raises(Failed, match="expected pgbench to bring 100 to success, got 0"):
        floor.measured(stage, floor.BATCH, "no floor")


@pytest.mark.parametrize("name", sorted({one.requirements for one in contestants.CONTESTANTS}))
def test_every_lock_names_versions_and_hashes_and_no_registry(name: str) -> None:
    lines = (PROGRAMS.with_name("requirements") / f"{name}.lock").read_text().splitlines()
    assert lines
    for line, following in pairwise(lines):
        assert line.startswith("    --hash=sha256:") or ("==" in line and following.startswith("    --hash=sha256:"))


def test_every_contestant_has_set_ups_of_its_own_to_choose_from() -> None:
    for one in contestants.CONTESTANTS:
        assert len({tuple(sorted(set_up.items())) for set_up in one.set_ups}) >= 4
        assert one.program.is_file()
        assert replace(one, name="other").is_ours is one.name.startswith("coatcheck")
