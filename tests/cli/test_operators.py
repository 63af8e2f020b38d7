"""`migrate`, `providers`, `stats`, `doctor`, `sim`: what the person who runs coatcheck asks and decides."""

import json
import urllib.request

import pytest
from psycopg import sql

import postgres
from cli.terminal import Terminal
from coatcheck.sim import ThreadedService, simulated_service
from coatcheck.store.migrations import shipped
from waiting import until

STATS_FIELDS = {
    *(
        "queue_age_s",
        "action_ms",
        "remote_render_age_s",
        "lease_renewal_failures_count",
        "stale_count",
        "uncertain_count",
    ),
    *("waiting", "parked", "unclaimed_count", "unclaimed_providers", "queue_age_by_action_s", "due", "worker_count"),
    *("uncertain_age_s", "uncertain_held", "held", "orphan_count", "account_waits", "accounts"),
}


@pytest.fixture
def bare(terminal: Terminal, database: postgres.Database) -> Terminal:
    """A terminal on a database without the schema."""
    with database.connect() as connection:
        connection.execute("drop schema coatcheck cascade")
    return terminal


def test_migrate_shows_applies_and_repeats(bare: Terminal) -> None:
    before = bare.run("migrate", "status", "--json").object
    assert (before["version"], {each["state"] for each in before["migrations"]}) == (0, {"pending"})
    applied = bare.run("migrate", "up", "--json")
    assert [each["number"] for each in applied.object["applied"]] == [each.number for each in shipped()]
    assert applied.err.count("applied") == len(shipped())
    assert bare.run("migrate", "up", "--json").object == {"version": len(shipped()), "applied": []}
    after = bare.run("migrate", "status", "--json").object
    assert (after["version"], {each["state"] for each in after["migrations"]}) == (len(shipped()), {"applied"})
    assert "applied" in bare.run("migrate", "status").out


def test_a_pause_holds_dispatches_until_it_is_lifted(provided: Terminal, service: ThreadedService) -> None:
    paused = provided.run(
        "providers", "pause", "genace", "--reason", "bad \x1b[2Jkey", "--actor", "ada", "--json"
    ).object
    assert (paused["name"], paused["dispatch_pause_reason"], paused["dispatch_paused_by"]) == (
        "genace",
        "bad \x1b[2Jkey",
        "ada",
    )
    operation_id = provided.enqueue("k1")["operation_id"]
    assert provided.run("worker", "--until-idle").code == 0
    assert service.posts == ()
    (message,) = provided.run("operations", "show", operation_id, "--json").object["messages"]
    assert message["wait_reason"] == "pause"
    assert provided.run("stats", "--json").object["waiting"] == {"pause": 1}
    listed = provided.run("providers", "list")
    assert "bad" in listed.out
    assert "\x1b" not in listed.out
    told = provided.run("providers", "resume", "genace", "--reason", "new key", "--actor", "ada")
    assert (told.out, told.err) == ("resumed genace, account genace: new key (ada)\n", "")
    resumed = provided.run("providers", "resume", "genace", "--reason", "new key", "--json")
    assert resumed.object["dispatch_paused_at"] is None
    assert "new key" in resumed.err
    assert provided.run("providers", "list", "--json").object["dispatch_pause_reason"] is None
    assert provided.run("worker", "--until-idle").code == 0
    assert len(service.posts) == 1


def test_a_person_is_shown_what_an_account_keeps_back_and_why(provided: Terminal) -> None:
    """The reason may hold what a terminal would obey."""
    provided.enqueue("k1")
    assert provided.run("providers", "set", "genace", "--max-in-flight", "0", "--reason", "maintenance").code == 0
    assert provided.run("messages", "list", "--json").object["account_wait"] == "cap"
    assert "its account: cap" in provided.run("messages", "list").out
    found = provided.run("stats", "--json").object
    assert (found["account_waits"], found["accounts"][0]["dispatch_wait"]) == ({"cap": 1}, "cap")
    assert provided.run("providers", "pause", "genace", "--reason", "bad \x1b[2Jkey", "--actor", "ada").code == 0
    (line,) = [each for each in provided.run("top", "--once").out.splitlines() if "account  " in each]
    assert "0 of 0 in flight, 0 in doubt; 1 dispatches wait: pause; dispatch paused since 20" in line
    assert "\x1b" not in line
    checks = verdicts(provided, 0)
    assert checks["account genace in flight"]["verdict"] == "ok"
    assert checks["account genace dispatch"]["verdict"] == "warning"
    assert "by ada: bad" in checks["account genace dispatch"]["reading"]


def test_stats_are_one_object_with_every_measure(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    service.script([{"on": "create", "nth": 1, "kind": "accept_then_drop"}])
    for number in range(2):
        provided.enqueue(f"k{number}")
    database.move_time(100)
    before = provided.run("stats", "--json").object
    assert set(before) == STATS_FIELDS
    assert 100 <= before["queue_age_s"] < 200
    assert before["queue_age_by_action_s"] == {"dispatch": before["queue_age_s"]}
    assert (before["unclaimed_count"], before["uncertain_count"], before["action_ms"]) == (2, 0, {})
    assert before["unclaimed_providers"] == ["genace"]
    assert provided.run("worker", "--until-idle").code == 0
    after = provided.run("stats", "--json").object
    assert (after["queue_age_s"], after["remote_render_age_s"]) == (0, 0)
    assert (after["uncertain_count"], after["parked"]) == (1, {"uncertain": 1})
    assert after["action_ms"]["dispatch"]["count"] == 2
    assert 0 < after["action_ms"]["dispatch"]["mean"] <= after["action_ms"]["dispatch"]["max"]
    assert after["lease_renewal_failures_count"] == 0
    assert isinstance(after["stale_count"], dict)
    assert "uncertain_count" in provided.run("stats").out


def test_stats_tell_the_age_of_the_oldest_render_and_add_up_the_workers(
    terminal: Terminal, database: postgres.Database
) -> None:
    terminal.enqueue("k1")
    with database.connect() as connection:
        connection.execute(
            "update coatcheck.operations set phase = 'accepted', account = 'a', dispatch_id = operation_id, remote_job_id = 'j',"
            " accepted_at = coatcheck.due_now() - interval '90 s'"
        )
        connection.execute(
            "insert into coatcheck.workers (incarnation, version, roles, started_at, seen_at, stale, lease_renewal_failures_count, action_ms)"
            " select 'w' || n, '1', '{}', now(), now(), '{\"mark\": 2}', 3, '{\"observe\": {\"count\": 1, \"total_ms\": 10, \"max_ms\": 10}}'"
            " from generate_series(1, 2) as n"
        )
    found = terminal.run("stats", "--json").object
    assert 90 <= found["remote_render_age_s"] < 150
    assert (found["stale_count"], found["lease_renewal_failures_count"], found["worker_count"]) == ({"mark": 4}, 6, 2)
    assert found["action_ms"] == {"observe": {"count": 2, "mean": 10, "max": 10}}


def verdicts(terminal: Terminal, code: int, **environ: str) -> dict[str, dict[str, str]]:
    ended = terminal.run("doctor", "--json", given=b"", **environ)
    assert ended.code == code, ended.out + ended.err
    assert ended.object["ok"] is (code == 0)
    for check in ended.object["checks"]:
        assert set(check) == {"name", "verdict", "reading", "limit", "remedy"}
        assert (check["verdict"] == "ok") is (check["remedy"] == "")
    return {check["name"]: check for check in ended.object["checks"]}


def test_doctor_finds_a_sound_installation_sound(provided: Terminal) -> None:
    found = verdicts(provided, 0)
    assert found["schema"]["verdict"] == found["lease dispatch"]["verdict"] == found["sink"]["verdict"] == "ok"
    assert found["database"]["reading"].startswith("PostgreSQL ")
    assert "superuser" in found["role"]["reading"]
    assert found["role"]["verdict"] == "warning"
    assert not (provided.folder / "outputs").exists()
    assert provided.run("doctor").code == 0


def test_doctor_asks_each_service_for_a_job_that_cannot_be(provided: Terminal, service: ThreadedService) -> None:
    """One GET: any answer will do but one that refuses the key. Nothing is sent that could cost."""
    found = verdicts(provided, 0)
    assert found["provider genace"]["verdict"] == "ok"
    assert "answers" in found["provider genace"]["reading"]
    assert service.posts == ()
    with simulated_service(api_keys=frozenset({"another key"})) as strict:
        denied = verdicts(provided, 5, COATCHECK_PROVIDERS__GENACE__BASE_URL=strict.base_url)["provider genace"]
    assert (denied["verdict"], "401" in denied["reading"], "API_KEY" in denied["remedy"]) == ("failed", True, True)
    away = verdicts(provided, 5, COATCHECK_PROVIDERS__GENACE__BASE_URL="http://127.0.0.1:9")["provider genace"]
    assert (away["verdict"], "127.0.0.1" in away["reading"]) == ("failed", False)


def test_doctor_tells_a_session_that_keeps_an_old_snapshot_and_a_wrong_isolation(
    terminal: Terminal, database: postgres.Database
) -> None:
    """A transaction cannot be made ten minutes old at will, so the limit itself is tried where it is decided."""
    assert verdicts(terminal, 0)["isolation"]["reading"] == "read committed"
    with database.connect() as connection:
        connection.execute(
            sql.SQL("alter database {} set default_transaction_isolation = 'repeatable read'").format(
                sql.Identifier(database.name)
            )
        )
    wrong = verdicts(terminal, 5)["isolation"]
    assert (wrong["verdict"], wrong["reading"]) == ("failed", "repeatable read")


def test_doctor_tells_what_the_line_to_the_database_is(terminal: Terminal, database: postgres.Database) -> None:
    found = verdicts(terminal, 0)
    assert {found[name]["verdict"] for name in ("pooler", "tcp", "clock", "oldest snapshot")} == {"ok"}
    assert found["pooler"]["reading"] == "none"
    assert "agree" in found["clock"]["reading"] or " 0." in found["clock"]["reading"]


def test_doctor_says_nothing_about_leases_that_no_provider_determines(terminal: Terminal) -> None:
    found = verdicts(terminal, 0)
    assert found["lease dispatch"]["reading"] == "computed where workers run"


@pytest.mark.parametrize("command", [["doctor"], ["worker"]], ids=" ".join)
def test_a_sink_that_cannot_be_written_is_found_before_anything_is_paid(provided: Terminal, command: list[str]) -> None:
    """Not even root can make a folder there."""
    ended = provided.run(*command, "--json", COATCHECK_SINK="file:///proc/nope")
    if command == ["worker"]:
        assert (ended.code, ended.error["code"]) == (2, "setting_invalid")
        assert "COATCHECK_SINK" in ended.error["message"]
        assert "/proc/nope" in ended.error["message"]
    else:
        (sink,) = [check for check in ended.object["checks"] if check["name"] == "sink"]
        assert (ended.code, sink["verdict"]) == (5, "failed")
        assert sink["reading"].startswith("/proc/nope: ")


def test_doctor_names_what_cannot_work_with_5(provided: Terminal, database: postgres.Database) -> None:
    (provided.folder / "file").touch()
    broken = {"COATCHECK_LEASE__DELIVER_S": "1", "COATCHECK_SINK": f"file://{provided.folder}/file/outputs"}
    assert "Not a directory" in verdicts(provided, 5, **broken)["sink"]["reading"]
    found = verdicts(provided, 5, **broken)
    assert {name for name, check in found.items() if check["verdict"] == "failed"} == {"lease deliver", "sink"}
    with database.connect() as connection:
        connection.execute("delete from coatcheck.schema_migrations where number > 1")
    assert verdicts(provided, 5)["schema"]["verdict"] == "failed"
    away = verdicts(provided, 5, COATCHECK_DATABASE_URL="postgresql://ada:canary-password@127.0.0.1:1/x")
    assert away["database"]["verdict"] == "failed"
    assert "canary" not in json.dumps(away)


def test_doctor_accepts_a_role_of_least_privilege_and_sees_unclaimed_work(
    terminal: Terminal, database: postgres.Database
) -> None:
    terminal.enqueue("k1")
    database.move_time(61)
    role = f"worker_{database.name}"
    with database.connect() as connection:
        connection.execute(sql.SQL("create role {} login in role coatcheck_worker").format(sql.Identifier(role)))
    found = verdicts(terminal, 0, COATCHECK_DATABASE_URL=database.url.replace("//postgres@", f"//{role}@"))
    assert found["role"] == {**found["role"], "verdict": "ok", "reading": role}
    assert (found["unclaimed messages"]["verdict"], found["unclaimed messages"]["reading"]) == (
        "warning",
        '1, of "genace"',
    )
    assert found["providers"]["verdict"] == found["workers"]["verdict"] == "warning"


def test_sim_says_where_it_is_and_plays_its_script(terminal: Terminal) -> None:
    script = [{"on": "create", "nth": 1, "kind": "status", "status": 503}]
    (terminal.folder / "script.json").write_text(json.dumps(script))
    with terminal.started("sim", "--port", "0", "--seed", "3", "--script", "script.json") as running:
        until(lambda: running.out.read_text().endswith("\n"))
        base_url = json.loads(running.out.read_text())["base_url"]
        with urllib.request.urlopen(f"{base_url}/_sim/ledger") as reply:
            assert json.load(reply)["totals"]["posts"] == 0
        port = base_url.rsplit(":", 1)[1]
        taken = terminal.run("sim", "--port", port, "--json")
        assert (taken.code, taken.error["code"]) == (1, "failed")
        running.process.terminate()
        assert running.ended().code == 0
