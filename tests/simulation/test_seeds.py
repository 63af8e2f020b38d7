"""A thousand stories with every change, and thousands in the laboratory, each from its seed.

Whatever goes wrong, the promises hold, and once nothing does all that is owed comes about.

A seed that fails prints the command that plays it again. Put it into `regressions.txt` with a word about what it showed.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from coatcheck.seams import Point
from figures import Report, Scale
from simulation.run import Outcome, play
from simulation.troubles import Trouble

TESTS = Path(__file__).resolve().parent.parent
CHUNK = 25
CI_CHUNKS, LAB_CHUNKS = 36, 160
"""What a change can wait for, a thousand seeds together with those until every class of fault has fired; and what the laboratory has an hour for."""
REGRESSIONS = [
    int(line.split()[0]) for line in (TESTS / "simulation/regressions.txt").read_text().splitlines() if line[:1] != "#"
]
ALL_FIRED_WITHIN = 150
PASSED_HERE = {point for point in Point if point.value[0] not in "EC"}
"""Workers are told where they pass. The application enqueues and the person commands without being told: `test_enqueue_kills`, `test_command_kills`."""
FIRST = 1_000
"""Seeds of the chunks begin here; those below are for tests of their own."""


def assert_clean(outcome: Outcome) -> None:
    told = "\n".join(outcome.findings)
    assert not outcome.findings, f"{told}\nplay it again: cd tests && python -m simulation.replay --seed {outcome.seed}"


def report(figures: Report, outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        figures("simulation seeds", 1)
        figures("simulation simulated seconds", round(outcome.seconds))
        figures("simulation events", outcome.events)
        figures("simulation operations", outcome.operations)
        figures("simulation posts", outcome.posts)
        for trouble, count in outcome.fired.items():
            figures(f"simulation faults: {trouble.value}", count)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "chunk" in metafunc.fixturenames:
        metafunc.parametrize("chunk", range(LAB_CHUNKS if metafunc.config.getoption("--lab") else CI_CHUNKS))


def test_the_promises_hold_in_every_story_of_a_chunk_of_seeds(chunk: int, figures: Report) -> None:
    outcomes, began_s = [], time.process_time()
    for seed in range(FIRST + chunk * CHUNK, FIRST + (chunk + 1) * CHUNK):
        outcomes.append(play(seed))
        assert_clean(outcomes[-1])
    report(figures, outcomes)
    figures("simulation CPU seconds", round(time.process_time() - began_s))


@pytest.mark.timeout(600)
def test_every_class_of_fault_is_seen_to_fire_and_every_point_is_passed(figures: Report) -> None:
    fired, passed, outcomes = Counter[Trouble](), Counter[Point](), []
    for seed in range(ALL_FIRED_WITHIN):
        outcomes.append(play(seed))
        assert_clean(outcomes[-1])
        fired += outcomes[-1].fired
        passed += outcomes[-1].passed
        if len(fired) == len(Trouble) and len(passed) == len(PASSED_HERE):
            break
    report(figures, outcomes)
    assert [each.value for each in Trouble if not fired[each]] == []
    assert passed.keys() == PASSED_HERE


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_was_found_once_is_not_found_again(seed: int) -> None:
    assert_clean(play(seed))


@pytest.mark.parametrize("seed", [3, 7, 11, 19])
def test_a_seed_played_twice_is_the_same_story_event_by_event(seed: int) -> None:
    once, again = play(seed, keeps=True), play(seed, keeps=True)
    assert once.lines == again.lines
    assert once.digest == again.digest


@pytest.mark.timeout(600)
def test_another_process_with_other_hashes_of_words_plays_the_same_story(lab_scale: Scale) -> None:
    """What a set of words or a dictionary's address decides would show here."""
    for seed in range(5, 5 + lab_scale(ci=1, lab=10)):
        told = {_replayed(seed, hash_seed) for hash_seed in ("1", "2")}
        assert told == {f"hash {play(seed).digest}"}


def _replayed(seed: int, hash_seed: str) -> str:
    played = subprocess.run(
        [sys.executable, "-m", "simulation.replay", "--seed", str(seed), "--last", "1"],
        cwd=TESTS,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return next(word for word in played.stderr.splitlines() if word.startswith("seed")).rpartition(", ")[2]
