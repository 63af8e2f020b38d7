"""The page on the command line knows every command, every option, every exit code and every error code that there is."""

import re
from pathlib import Path

import pytest
from cyclopts import App

from coatcheck import errors
from coatcheck.cli.ends import FINDINGS, INTERRUPTED
from coatcheck.cli.program import COMMANDS, app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()
SECTIONS = dict(re.findall(r"^## `coatcheck ([^`]+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ENDS = dict(re.findall(r"^\| (\d+) \|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE))
EVERYWHERE = {"--json", "--help", "-h", "--version"}


def classes(root: type[errors.CoatcheckError]) -> set[type[errors.CoatcheckError]]:
    return {root}.union(*(classes(each) for each in root.__subclasses__()))


def options(words: str) -> set[str]:
    found: App = app()
    for word in words.split():
        found = found[word]
    arguments = found.assemble_argument_collection()
    return {name for each in arguments for name in each.names if name.startswith("-")}


def test_every_command_has_its_section_and_no_other() -> None:
    assert list(SECTIONS) != []
    assert set(SECTIONS) == set(COMMANDS)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_is_explained_and_none_is_invented(words: str) -> None:
    there = options(words)
    assert "--json" in there
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", SECTIONS[words])) - EVERYWHERE == there - EVERYWHERE


def test_every_error_code_stands_at_its_exit_code() -> None:
    documented = {code: int(number) for number, codes in ENDS.items() for code in re.findall(r"`(\w+)`", codes)}
    promised = {each.code: each.exit_code for each in classes(errors.CoatcheckError)}
    assert documented == {**promised, "usage": 2, "interrupted": INTERRUPTED}
    assert {int(number) for number in ENDS} == {0, *promised.values(), FINDINGS, INTERRUPTED}
