"""A worker that may have more in hand than the system has open files or ports for it says so before it leases anything, and works on."""

import subprocess
import sys

from cli.terminal import Terminal
from coatcheck.cli import descriptors

PLACES = 100_000
"""More than there are ports in the world."""


def test_what_the_system_has_too_little_of_is_said_at_the_start(provided: Terminal) -> None:
    limited = ["sh", "-c", 'ulimit -n 2000; exec "$@"', "sh", sys.executable, "-m", "coatcheck"]
    ended = subprocess.run(
        [*limited, "worker", "--until-idle"],
        env={**provided.environ, "COATCHECK_CONCURRENCY__OBSERVE": str(PLACES)},
        cwd=provided.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    files, ports, ready = ended.stderr.splitlines()[:3]
    assert files.startswith("warning: ")
    assert "open files may be needed and 2000 are allowed" in files
    assert f"warning: {PLACES} looks may be open at once and this machine has {descriptors.port_count()} ports" in ports
    assert ready.startswith("ready ")


def test_the_usual_places_need_no_word(provided: Terminal) -> None:
    assert "warning" not in provided.run("worker", "--until-idle").err
