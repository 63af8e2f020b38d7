"""The page of the laboratory says what its last whole run counted, on a commit, without a failure, and no less than it must."""

import re
import subprocess

import pytest

from docs.lab_page import COUNTED, page, told
from docs.pages import DOCS, ROOT


def test_the_page_of_the_laboratory_is_the_one_that_its_figures_make() -> None:
    assert (DOCS / "lab.md").read_text(encoding="utf-8") == page(), "run `make docs`"


@pytest.mark.parametrize(("name", "least"), [pytest.param(name, least, id=name) for _, name, least in COUNTED])
def test_it_counted_as_far_as_it_must(name: str, least: int) -> None:
    assert told()["figures"][name] >= least


def test_nothing_failed_and_each_tree_was_a_commits() -> None:
    assert set(told()["tests"]) == {"passed"}
    assert {
        file for file, each in told()["files"].items() if not re.fullmatch(r"[0-9a-f]{12}", each["commit"])
    } == set()


def test_every_file_of_the_laboratory_has_a_record() -> None:
    asked = subprocess.run(["make", "-n", "lab"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = [ROOT / word for word in re.findall(r"(?<=\s)tests/\S+", asked)]
    files = {file for path in named for file in ([path] if path.suffix else path.rglob("test_*.py"))}
    assert len(files) > 50
    assert {str(file.relative_to(ROOT)) for file in files} - set(told()["files"]) == set()
