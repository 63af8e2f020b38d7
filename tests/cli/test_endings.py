"""Every command ends with the code that tells the caller's next move, and under --json with one object that says it in words."""

import signal
import subprocess
from pathlib import Path

import pytest

import postgres
from cli.terminal import COATCHECK, SPECIFICATION, Ended, Terminal
from coatcheck.cli.program import COMMANDS
from coatcheck.store.migrations import LOCK_KEY
from waiting import until

UNKNOWN = "op_00000000000000000000000001"
READING = {
    "enqueue": ["enqueue", "--tenant", "t1", "--key", "k1", "-"],
    "operations list": ["operations", "list"],
    "operations show": ["operations", "show", UNKNOWN],
    "operations cancel": ["operations", "cancel", UNKNOWN, "--reason", "r"],
    "operations reobserve": ["operations", "reobserve", UNKNOWN, "--reason", "r"],
    "operations redeliver": ["operations", "redeliver", UNKNOWN, "--reason", "r"],
    "messages list": ["messages", "list"],
    "messages parked": ["messages", "parked"],
    "messages resume": ["messages", "resume", f"{UNKNOWN}.0", "--reason", "r"],
    "incidents list": ["incidents", "list"],
    "reconcile note": ["reconcile", "note", UNKNOWN, "--reason", "r"],
    "worker": ["worker", "--roles", "reconcile", "--until-idle"],
    "providers list": ["providers", "list"],
    "providers pause": ["providers", "pause", "genace", "--reason", "r"],
    "providers resume": ["providers", "resume", "genace", "--reason", "r"],
    "providers set": ["providers", "set", "genace", "--estimate", "1", "--reason", "r"],
    "reconcile list": ["reconcile", "list"],
    "reconcile show": ["reconcile", "show", UNKNOWN, "--offline"],
    "reconcile adopt": ["reconcile", "adopt", UNKNOWN, "j1", "--reason", "r"],
    "reconcile prove-absent": ["reconcile", "prove-absent", UNKNOWN, "--reason", "r"],
    "reconcile redispatch": ["reconcile", "redispatch", UNKNOWN, "--reason", "r", "--yes"],
    "reconcile write-off": ["reconcile", "write-off", UNKNOWN, "--reason", "r"],
    "orphans list": ["orphans", "list"],
    "orphans resolve": ["orphans", "resolve", "j1", "--account", "genace", "--reason", "r"],
    "allowance set": ["allowance", "set", "--tenant", "t1", "5"],
    "allowance show": ["allowance", "show"],
    "charges report": ["charges", "report"],
    "stats": ["stats"],
    "top": ["top", "--once"],
    "retention run": ["retention", "run", "--days", "0"],
    "audit": ["audit"],
}
"""Each command that needs the schema, with arguments that are right."""
CONNECTING = {
    **READING,
    "migrate up": ["migrate", "up"],
    "migrate status": ["migrate", "status"],
    "migrate check": ["migrate", "check"],
}


def run(terminal: Terminal, words: list[str], **environ: str) -> Ended:
    return terminal.run(*words, "--json", given=SPECIFICATION, **environ)


def test_every_command_that_connects_is_tried() -> None:
    assert set(COMMANDS) - set(CONNECTING) == {"bench", "demo", "sim", "doctor", "migrate sql"}


@pytest.mark.parametrize("words", COMMANDS)
def test_wrong_usage_is_refused_with_2(terminal: Terminal, words: str) -> None:
    ended = terminal.run(*words.split(), "--nonsense", "--json")
    assert (ended.code, ended.error["code"]) in {(2, "usage"), (2, "refused")}
    assert "--help" in ended.error["next"]


@pytest.mark.parametrize("words", [["nonsense"], ["operations", "nonsense"], ["migrate", "down"]])
def test_an_unknown_command_is_refused_with_2(terminal: Terminal, words: list[str]) -> None:
    ended = terminal.run(*words, "--json")
    assert (ended.code, ended.error["code"]) == (2, "usage")


@pytest.mark.parametrize("words", CONNECTING.values(), ids=CONNECTING)
def test_an_unreachable_database_is_6(terminal: Terminal, words: list[str]) -> None:
    ended = run(terminal, words, COATCHECK_DATABASE_URL="postgresql://ada:canary-password@127.0.0.1:1/db")
    assert (ended.code, ended.error["code"]) == (6, "unavailable")
    assert "canary-password" not in ended.err


@pytest.mark.parametrize("words", READING.values(), ids=READING)
def test_a_database_without_the_schema_is_6(terminal: Terminal, database: postgres.Database, words: list[str]) -> None:
    with database.connect() as connection:
        connection.execute("drop schema coatcheck cascade")
    ended = run(terminal, words)
    assert (ended.code, ended.error["code"]) == (6, "schema_behind")
    assert "migrate up" in ended.error["next"]


def test_an_unknown_setting_is_refused_with_2(terminal: Terminal) -> None:
    ended = run(terminal, ["operations", "list"], COATCHECK_SINKK="file:///x")
    assert (ended.code, ended.error["code"]) == (2, "setting_unknown")
    assert "COATCHECK_SINK" in ended.error["next"]


def test_a_malformed_database_address_is_refused_with_2_and_not_shown(terminal: Terminal) -> None:
    ended = run(terminal, ["stats"], COATCHECK_DATABASE_URL="postgresql://ada:canary-password@[::1/db")
    assert (ended.code, ended.error["code"]) == (2, "setting_invalid")
    assert "canary" not in ended.err


@pytest.mark.parametrize(
    "words",
    [
        ["operations", "list", "--phase", "\x1b[2Jaccepted"],
        ["operations", "list", "--limit", "-1"],
        ["operations", "list", "--limit", "many"],
        ["messages", "list", "--limit", "-1"],
        ["messages", "parked", "--limit", "-1"],
        ["incidents", "list", "--limit", "-1"],
        ["reconcile", "list", "--limit", "-1"],
        ["orphans", "list", "--limit", "-1"],
        ["enqueue", "--tenant", "", "--key", "k", "-"],
        ["enqueue", "--tenant", "t", "--key", "k", "no-such-file"],
        ["enqueue", "--tenant", "t", "--key", "k", "-", "--estimate", "1e400"],
        ["enqueue", "--tenant", "t", "--key", "k", "-", "--provider", "../x"],
        ["worker", "--roles", "dance"],
        ["worker", "--log-level", "loud"],
        ["providers", "pause", "genace", "--reason", " "],
        ["providers", "resume", "genace"],
        ["sim", "--port", "70000"],
        ["sim", "--script", "no-such-file"],
        ["bench", "no-such-measurement"],
        ["bench", "--operations", "1"],
        ["bench", "--rows", "10", "--rows", "5000"],
        ["bench", "--operations", "0"],
        ["bench", "--renders", "0"],
        ["bench", "--renders", "1000000000"],
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode(),
)
def test_wrong_values_are_refused_with_2(terminal: Terminal, words: list[str]) -> None:
    ended = run(terminal, words)
    assert ended.code == 2
    assert ended.error["message"]
    assert "\x1b" not in ended.err
    assert "\x1b[2J" not in terminal.run(*words, given=SPECIFICATION).err


@pytest.mark.parametrize("given", [b"", b"{", b'{"a": NaN}', b'"text"', b'{"a": 1, "a": 2}', b"\xff", b'{"a": 1e999}'])
def test_a_specification_that_has_no_canonical_form_is_refused_with_2(terminal: Terminal, given: bytes) -> None:
    ended = terminal.run("enqueue", "--tenant", "t", "--key", "k", "-", "--json", given=given)
    assert (ended.code, ended.error["code"]) == (2, "specification_invalid")


def test_a_key_with_another_specification_is_refused_with_2(terminal: Terminal) -> None:
    terminal.enqueue("k1")
    ended = terminal.run("enqueue", "--tenant", "t1", "--key", "k1", "-", "--json", given=b'{"prompt": "blue"}')
    assert (ended.code, ended.error["code"]) == (2, "key_reused")


def test_an_unknown_a_foreign_and_a_malformed_operation_are_3_and_alike(terminal: Terminal) -> None:
    mine = terminal.enqueue("k1", tenant="t1")["operation_id"]
    shown = [
        terminal.run("operations", "show", operation, "--tenant", "t2", "--json")
        for operation in (UNKNOWN, mine, "op_", "nonsense", "\x1b[2J", "op_é", mine.upper(), "0" * 5000)
    ]
    assert {(ended.code, ended.out, ended.err) for ended in shown} == {(3, "", shown[0].err)}
    assert shown[0].error["code"] == "not_found"
    assert terminal.run("operations", "show", mine, "--tenant", "t1", "--json").code == 0


def test_an_unknown_provider_is_3(terminal: Terminal) -> None:
    for verb in ("pause", "resume"):
        ended = terminal.run("providers", verb, "nobody", "--reason", "r", "--json")
        assert (ended.code, ended.error["code"]) == (3, "not_found")


def test_a_lease_that_does_not_fit_is_refused_with_2_and_its_sum(provided: Terminal) -> None:
    ended = run(provided, ["worker"], COATCHECK_LEASE__DISPATCH_S="10")
    assert (ended.code, ended.error["code"]) == (2, "lease_too_short")
    assert "5 (connection, SEND_S) + 60 (the POST, TIMEOUT_S)" in ended.error["message"]
    assert "= 73 s" in ended.error["message"]


def test_a_worker_without_a_provider_is_refused_with_2(terminal: Terminal) -> None:
    ended = run(terminal, ["worker"])
    assert (ended.code, ended.error["code"]) == (2, "setting_invalid")
    assert "BASE_URL" in ended.error["next"]


def test_a_worker_without_a_key_is_refused_with_2(provided: Terminal) -> None:
    environ = {name: value for name, value in provided.environ.items() if not name.endswith("API_KEY")}
    ended = run(Terminal(folder=provided.folder, environ=environ), ["worker"])
    assert (ended.code, ended.error["code"]) == (2, "setting_invalid")


def test_an_interrupt_is_130(terminal: Terminal, database: postgres.Database) -> None:
    """Here of a migration that waits for another runner."""
    waiting = (
        "select count(*) from pg_stat_activity where application_name = 'coatcheck migrate' and wait_event_type = 'Lock'"
        " and datname = current_database()"
    )
    with database.connect() as connection:
        connection.execute("select pg_advisory_lock(%s)", (LOCK_KEY,))
        with terminal.started("migrate", "up", "--json") as running:
            until(lambda: connection.execute(waiting).fetchone() == (1,))
            running.process.send_signal(signal.SIGINT)
            ended = running.ended()
    assert (ended.code, ended.error["code"]) == (130, "interrupted")


def test_without_json_an_error_is_told_in_words(terminal: Terminal) -> None:
    ended = terminal.run("operations", "show", UNKNOWN)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("coatcheck: expected the id of an operation")


@pytest.mark.parametrize("words", [["operations", "list", "--json"], ["operations", "list"], ["stats"]])
def test_a_reader_that_has_seen_enough_is_no_error(terminal: Terminal, words: list[str]) -> None:
    terminal.enqueue("k1")
    words = [*COATCHECK, *words]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(terminal.environ)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_full_disk_is_1_and_said(terminal: Terminal) -> None:
    terminal.enqueue("k1")
    with Path("/dev/full").open("wb") as full:
        words = [*COATCHECK, "operations", "list", "--json"]
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=dict(terminal.environ), check=False)
    assert ended.returncode == 1
    assert b"No space left on device" in ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("words", [["--help"], ["operations", "--help"], ["worker", "--help"], []])
def test_help_is_data_and_0(terminal: Terminal, words: list[str]) -> None:
    ended = terminal.run(*words)
    assert ended.code == 0
    assert ended.out.startswith("Usage: coatcheck")
    assert ended.err == ""


def test_the_version_is_data_and_0(terminal: Terminal) -> None:
    ended = terminal.run("--version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("coatcheck ")
