"""On a terminal progress moves and logs are key=value; what others wrote is still never obeyed."""

import os
import re
import subprocess
import sys

import postgres
from cli.terminal import COATCHECK, Terminal

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


def test_the_log_is_key_and_value_and_escaped(terminal: Terminal) -> None:
    code, shown = on_a_terminal(sys.executable, "-c", LOG, environ=dict(terminal.environ))
    assert code == 0
    assert "level='warning' event='looked'" in shown
    assert r"said='a\x1b[2J\u202e'" in shown
    assert "\x1b" not in shown
