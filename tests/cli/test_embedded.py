"""Without an address every command uses the embedded PostgreSQL of the home, shares it with those beside it, and leaves no process."""

import subprocess
import sys
from pathlib import Path

import psycopg

from cli.terminal import SPECIFICATION, Terminal, plain_environ
from coatcheck.sim import ThreadedService

GENACE = "COATCHECK_PROVIDERS__GENACE__"


def test_commands_in_a_row_and_a_worker_beside_them_share_it(tmp_path: Path, service: ThreadedService) -> None:
    own = {
        "COATCHECK_HOME": str(tmp_path / "home"),
        f"{GENACE}BASE_URL": service.base_url,
        f"{GENACE}API_KEY": "key",
        f"{GENACE}LOOK_MIN_S": "0.05",
        f"{GENACE}WAIT_S": "1",
    }
    terminal = Terminal(folder=tmp_path, environ={**plain_environ(), **own})
    assert terminal.run("operations", "list", "--json").error["code"] == "schema_behind"
    assert terminal.run("migrate", "up").code == 0
    first = terminal.enqueue("k1")
    with terminal.started("worker") as running:
        running.said("ready ")
        assert _servers(tmp_path) != []
        second = terminal.enqueue("k2", given=SPECIFICATION)
        checked = terminal.run("doctor", "--json")
        (address,) = [each["reading"] for each in checked.object["checks"] if each["name"] == "embedded server"]
        with psycopg.connect(address) as connection:
            assert connection.execute("select count(*) from coatcheck.operations").fetchone() == (2,)
        assert checked.code == 0
        running.process.terminate()
        assert running.ended().code == 0
    assert terminal.run("worker", "--until-idle").code == 0
    listed = terminal.run("operations", "list", "--json").objects
    assert [each["operation_id"] for each in listed] == [first["operation_id"], second["operation_id"]]
    assert {each["delivery_state"] for each in listed} == {"delivered"}
    assert _servers(tmp_path) == []


def test_a_library_that_is_never_closed_leaves_no_server(tmp_path: Path) -> None:
    terminal = Terminal(folder=tmp_path, environ={**plain_environ(), "COATCHECK_HOME": str(tmp_path / "home")})
    assert terminal.run("migrate", "up").code == 0
    program = (
        "import asyncio; from coatcheck import Coatcheck\n"
        "async def story():\n"
        "    print(await Coatcheck().for_tenant('t1').list())\n"
        "asyncio.run(story())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=dict(terminal.environ), cwd=tmp_path, capture_output=True, check=True
    )
    assert ended.stdout == b"[]\n"
    assert _servers(tmp_path) == []


def _servers(home: Path) -> list[int]:
    """Processes that have something of this home's server in their command line."""
    pointer = home / "home" / "postgres" / "place"
    root = pointer.read_text() if pointer.exists() else str(home / "home" / "postgres")
    return [int(each.parent.name) for each in Path("/proc").glob("[0-9]*/cmdline") if root.encode() in _content(each)]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile
        return b""
