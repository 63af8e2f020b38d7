"""A guard that can be removed unseen is no guard: each mutant is killed by the tests that watch it, and the product as it is passes them all.

`make mutants` tries all; with every change a few are tried, another few with each commit.
"""

from pathlib import Path

import pytest

from figures import Report
from mutants.mutant import Mutant, copied, mutated, tried
from mutants.table import MUTANTS


def test_there_are_enough_of_them_and_each_breaks_something_else() -> None:
    assert (
        len({mutant.broken for mutant in MUTANTS}) == len({(each.path, each.old, each.new) for each in MUTANTS}) >= 25
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.broken)
def test_the_piece_that_a_mutant_takes_out_is_there_once(mutant: Mutant, tmp_path: Path) -> None:
    assert (mutated(mutant, tmp_path) / "coatcheck" / mutant.path).is_file()


def test_a_piece_that_is_gone_is_said(tmp_path: Path) -> None:
    gone = Mutant(broken="a promise", path="store/db.py", old="no such piece", new="", killers=())
    with pytest.raises(ValueError, match=r"'a promise' once in store/db\.py, found it 0 times"):
        mutated(gone, tmp_path)


@pytest.mark.timeout(300)
def test_the_product_survives_what_kills_its_mutants(chosen: list[Mutant], tmp_path: Path, pg: str) -> None:
    """Were the killers to fail on a copy that nothing was taken out of, they would prove nothing."""
    killers = dict.fromkeys(killer for mutant in chosen for killer in mutant.killers)
    trial = tried(copied(tmp_path), tuple(killers), f"--pg={pg}")
    assert trial.returncode == 0, trial.said


@pytest.mark.timeout(300)
def test_a_mutant_is_killed(mutant_tried: Mutant, tmp_path: Path, pg: str, figures: Report) -> None:
    trial = tried(mutated(mutant_tried, tmp_path), mutant_tried.killers, f"--pg={pg}")
    assert trial.killed, f"nobody noticed that it no longer holds: {mutant_tried.broken}\n{trial.said}"
    figures("mutants killed", 1)
