"""Whoever plays a seed again reads what its columns are, as many events as were asked for, and at the end what was found."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from simulation.replay import LEGEND, shown, verdict
from simulation.run import Outcome

TESTS = Path(__file__).parents[1]
LINES = ("1 a marked", "2 b ** cut", "3 a marked", "4 b ended")


@pytest.mark.parametrize(
    ("about", "last", "expected"),
    [
        ("", None, [LEGEND, *LINES]),
        ("", 2, [LEGEND, *LINES[2:]]),
        ("", 9, [LEGEND, *LINES]),
        ("", 0, []),
        ("marked", None, [LEGEND, LINES[0], LINES[2]]),
        ("marked", 1, [LEGEND, LINES[2]]),
        ("no such event", None, []),
    ],
)
def test_as_many_events_are_shown_as_were_asked_for(about: str, last: int | None, expected: list[str]) -> None:
    assert shown(LINES, about=about, last=last) == expected


def outcome(*findings: str) -> Outcome:
    return Outcome(
        seed=7,
        findings=findings,
        digest="ab12",
        events=4,
        steps=9,
        seconds=1.0,
        posts=1,
        operations=1,
        fired=Counter(),
        passed=Counter(),
        lines=LINES,
    )


def test_the_end_says_what_was_found_or_that_nothing_was() -> None:
    head = "seed 7: 4 events, 9 steps, hash ab12"
    assert verdict(outcome()) == [head, "nothing found"]
    assert verdict(outcome("sent twice")) == [head, "1 finding:", "sent twice"]
    assert verdict(outcome("sent twice", "lost")) == [head, "2 findings:", "sent twice", "lost"]


def test_a_seed_is_played_and_its_verdict_comes_last() -> None:
    asked = [sys.executable, "-m", "simulation.replay", "--seed", "5", "--last", "3"]
    ended = subprocess.run(asked, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = ended.stdout.splitlines()
    assert (ended.returncode, lines[0], lines[-1], len(lines)) == (0, LEGEND, "nothing found", 6), ended.stdout
