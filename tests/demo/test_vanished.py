"""A demo whose outputs were touched does not end well, and says where."""

import re
from pathlib import Path

from demo.stage import LONGEST_S, SMALL, Stage
from waiting import until


def delivered(stage: Stage) -> list[Path]:
    return [path for path in stage.demo_home.glob("outputs/*/op_*/*") if path.is_file()]


def test_a_delivered_file_that_vanishes_before_the_account_makes_the_demo_fail_and_people_see_which_line(
    stage: Stage,
) -> None:
    with stage.begun("--operations", str(SMALL), "--seed", "6") as process:
        until(lambda: delivered(stage), deadline_s=LONGEST_S)
        delivered(stage)[0].unlink()
        assert process.wait(LONGEST_S) == 1, stage.err
    marks = {
        line.split("  ")[1].strip(): line.split()[0] for line in stage.out.splitlines() if line.startswith((" ✓", " ✗"))
    }
    assert marks.pop("Delivered files are those the service made") == "✗"
    assert marks.pop("Nothing is lost, twice or altered by that") == "✗"
    assert set(marks.values()) == {"✓"}
    assert "2 of 15 lines do not hold." in stage.out
    looks = [
        line.rpartition("coatcheck ")[2].split()
        for line in stage.out.splitlines()
        if line.startswith("  COATCHECK_HOME=")
    ]
    assert [words[:2] for words in looks[:2]] == [["operations", "show"]] * 2
    assert [stage.coatcheck(*words).returncode for words in looks] == [0] * 5
    said = " ".join(stage.out.replace("│", " ").split())
    sums = re.search(r"(\d+) \+ (\d+) POSTs, 2 retries each, are up to (\d+) more POSTs", said)
    assert sums is not None
    assert 2 * (int(sums[1]) + int(sums[2])) == int(sums[3])
