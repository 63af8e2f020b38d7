"""What a command prints and how it ends is the same whether it was born in the nursery or has an interpreter that was started for it.

One of each kind is a fresh process here, so that what happens while modules are imported is tried, too: help, errors of usage, a broken
environment, a read, an enqueue, a worker. Terminals (`test_on_a_terminal.py`), missing extras (`tests/test_missing_extras.py`), readers that go
away and full disks (`test_endings.py`) are fresh processes always, as their streams or their modules are what is tried.
"""

import re

import pytest

from cli.terminal import SPECIFICATION, Ended, Terminal
from coatcheck.sim import ThreadedService

UNKNOWN = {"COATCHECK_SINKK": "file:///x"}


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (["--help"], {}),
        (["worker", "--help"], {}),
        (["--version"], {}),
        (["nonsense", "--json"], {}),
        (["operations", "list", "--limit", "many"], {}),
        (["operations", "list", "--json"], {}),
        (["operations", "list", "--json"], UNKNOWN),
        (["stats"], {"COATCHECK_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}),
        (["audit"], {}),
        (["worker"], {}),
    ],
    ids=str,
)
def test_both_print_the_same_and_end_alike(terminal: Terminal, words: list[str], environ: dict[str, str]) -> None:
    there = Terminal(folder=terminal.folder, environ={**terminal.environ, **environ})
    assert there.fresh.run(*words) == there.run(*words)


def story(terminal: Terminal, key: str) -> list[tuple[int, str, str]]:
    """An operation from the enqueue to its output."""
    ended: list[Ended] = [
        terminal.run("enqueue", "--tenant", key, "--key", key, "-", given=SPECIFICATION),
        terminal.run("worker", "--until-idle"),
        terminal.run("operations", "list", "--tenant", key),
    ]
    return [(each.code, _without_ids(each.out), _without_ids(each.err)) for each in ended]


def _without_ids(text: str) -> str:
    return re.sub(r"op_\w+|job_\w+|ready \S+|\d{4}-\S+ \S+Z", "-", text)


def test_a_whole_story_is_the_same(provided: Terminal, service: ThreadedService) -> None:
    # whoever enqueues before there ever was a worker is told so
    assert provided.run("worker", "--until-idle").code == 0
    assert story(provided.fresh, "t1") == [
        (code, out.replace("t2", "t1"), err) for code, out, err in story(provided, "t2")
    ]
    assert len(service.posts) == 2


def test_what_an_interpreter_reads_at_its_start_is_read(terminal: Terminal) -> None:
    """Under this variable an interpreter says at its end how long its imports took."""
    told = terminal.run("--version", PYTHONPROFILEIMPORTTIME="1").err
    assert "import time:" in told
