"""On a terminal progress moves and logs are key=value; what others wrote is still never obeyed."""

import os
import re
import subprocess
import sys

import pytest

import postgres
from cli.terminal import COATCHECK, Terminal
from coatcheck.sim import ThreadedService

LOG = (
    "import logging; from coatcheck.cli import logs; logs.configure('info')\n"
    "logging.getLogger('coatcheck.x').warning('looked', extra={'said': 'a\\x1b[2J\\u202e'})\n"
)


def on_a_terminal(*command: str, environ: dict[str, str]) -> tuple[int, str]:
    """Run a command whose stdout and stderr are one terminal; its exit code and what appeared."""
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    return process.returncode, shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_migrate_shows_a_bar(terminal: Terminal, database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute("drop schema coatcheck cascade")
    code, shown = on_a_terminal(*COATCHECK, "migrate", "up", environ={**terminal.environ, "TERM": "xterm"})
    assert code == 0
    assert "migrations" in shown
    assert "━" in shown
    assert "schema version" in shown


def test_a_table_fits_the_width_and_loses_nothing(terminal: Terminal) -> None:
    operation_id = terminal.enqueue("k" * 60)["operation_id"]
    environ = {**terminal.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    code, shown = on_a_terminal(*COATCHECK, "operations", "show", operation_id, environ=environ)
    assert code == 0
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in shown.splitlines()) <= 100
    assert operation_id in shown
    assert "…" not in shown


@pytest.mark.parametrize("words", [["list"], ["show"]], ids=" ".join)
def test_no_id_is_broken_where_the_terminal_is_narrow(
    provided: Terminal, service: ThreadedService, words: list[str]
) -> None:
    operation_id = provided.enqueue("k1", tenant="a tenant with a rather long name")["operation_id"]
    assert provided.run("worker", "--until-idle").code == 0
    shown = provided.run("operations", "show", operation_id, "--json").object
    environ = {**provided.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    arguments = words if words == ["list"] else [*words, operation_id]
    code, seen = on_a_terminal(*COATCHECK, "operations", *arguments, environ=environ)
    assert code == 0
    assert operation_id in seen
    if words == ["show"]:
        assert shown["remote_job_id"] in seen
        assert shown["outputs"][0]["uri"] in seen
        assert "generation_requested" in seen
    else:
        assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in seen.splitlines()) <= 80


def test_a_message_is_a_record_where_its_table_would_not_fit(terminal: Terminal) -> None:
    operation_id = terminal.enqueue("k1", tenant="a tenant with a rather long name")["operation_id"]
    environ = {**terminal.environ, "TERM": "xterm", "NO_COLOR": "1"}
    narrow = on_a_terminal(*COATCHECK, "messages", "list", environ={**environ, "COLUMNS": "80"})
    wide = on_a_terminal(*COATCHECK, "messages", "list", environ={**environ, "COLUMNS": "200"})
    assert (narrow[0], wide[0]) == (0, 0)
    assert f"{operation_id}.0\r\n" in narrow[1]
    assert re.search(r"^action +dispatch\r$", narrow[1], re.MULTILINE)
    assert re.search(rf"^{operation_id}\.0 .*dispatch", wide[1], re.MULTILINE)


def test_off_a_terminal_no_line_is_wider_than_its_words(terminal: Terminal) -> None:
    terminal.enqueue("k1")
    for words in (["operations", "list"], ["stats"], ["doctor"]):
        lines = terminal.run(*words).out.splitlines()
        assert [line for line in lines if line != line.rstrip()] == []


def test_an_empty_list_says_so_to_people_only(terminal: Terminal) -> None:
    told = terminal.run("operations", "list")
    assert (told.out, told.err) == ("", "no operation matches\n")
    assert terminal.run("operations", "list", "--json").err == ""


def test_the_log_is_key_and_value_and_escaped(terminal: Terminal) -> None:
    code, shown = on_a_terminal(sys.executable, "-c", LOG, environ=dict(terminal.environ))
    assert code == 0
    assert "level='warning' event='looked'" in shown
    assert r"said='a\x1b[2J\u202e'" in shown
    assert "\x1b" not in shown
