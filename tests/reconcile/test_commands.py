"""`reconcile` and `orphans` as they are typed: what is told, how each command ends, and that what is refused changes nothing."""

import json
import threading
from collections.abc import Mapping

from cli.terminal import Ended, Terminal
from faults.stage import QUICK
from reconcile.scene import Scene

WHY = ("--reason", "seen in the ledger", "--actor", "eve")
NOWHERE = {"COATCHECK_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}


def refused(
    scene: Scene, code: int, *words: str, given: bytes = b"", environ: Mapping[str, str] = {}
) -> dict[str, str]:
    """The error object of a command that changes nothing."""
    before, posts = scene.dump(), len(scene.sim.posts)
    ended = scene.terminal().run(*words, "--json", given=given, **environ)
    assert ended.code == code, ended.err
    assert scene.dump() == before
    assert len(scene.sim.posts) == posts
    return ended.error


def test_a_person_on_call_lists_looks_and_adopts(scene: Scene) -> None:
    operation = scene.killed()
    terminal = scene.terminal()
    listed = terminal.run("reconcile", "list", "--json").object
    assert (listed["operation_id"], listed["held"], listed["unit"]) == (operation, 5, "credits")
    assert listed["decisions"] == ["adopt", "prove-absent", "redispatch", "write-off"]
    people = terminal.run("reconcile", "list")
    assert operation in people.out
    assert people.err == "1 to be decided; at risk: 5 credits\n"
    shown = terminal.run("reconcile", "show", operation, "--json").object
    assert {"story", "candidates", "possible", "service", "begun_at", "quiescent_at"} <= set(shown)
    assert f"coatcheck reconcile adopt {operation} JOB" in terminal.run("reconcile", "show", operation, "--offline").out
    job = scene.job_of(operation)
    error = refused(scene, 2, "reconcile", "adopt", operation, "job_invented", *WHY)
    assert error["code"] == "remote_job_unknown"
    made = terminal.run("reconcile", "adopt", operation, job, *WHY)
    assert made.code == 0, made.err
    assert made.out.startswith(f"{operation}: adopted {job}; accepted at revision ")
    assert terminal.run("worker", "--until-idle").code == 0
    after = terminal.run("operations", "show", operation, "--json").object
    assert (after["phase"], after["delivery_state"], after["remote_job_id"]) == ("accepted", "delivered", job)
    assert "nothing is in doubt" in terminal.run("reconcile", "list").err
    assert scene.posts_of(operation) == 1
    audited = terminal.run("audit", "--json")
    assert (audited.code, audited.out) == (0, "")


def test_money_that_nobody_estimated_is_listed_as_unknown_and_not_as_nothing(scene: Scene) -> None:
    terminal = scene.terminal()
    operation = scene.in_doubt(estimate=None)
    assert terminal.run("reconcile", "list", "--json").object["held"] is None
    people = terminal.run("reconcile", "list")
    assert (people.err, "unknown" in people.out, " credits" in people.out) == (
        "1 to be decided; at risk: unknown, no estimate\n",
        True,
        False,
    )
    assert "How much money is at risk is not known" in terminal.run("reconcile", "show", operation, "--offline").out
    scene.in_doubt()
    known = "2 to be decided; at risk: 5 credits, and of 1 unknown, no estimate\n"
    assert terminal.run("reconcile", "list").err == known


def test_an_estimate_of_nothing_is_known(scene: Scene) -> None:
    operation = scene.in_doubt(estimate=0)
    assert scene.terminal().run("reconcile", "list", "--json").object["held"] == 0
    assert scene.terminal().run("reconcile", "list").err == "1 to be decided; at risk: nothing that is held\n"
    told = scene.terminal().run("reconcile", "show", operation, "--offline").out
    assert "0 credits are at risk" in told


def test_each_refusal_has_its_code_and_its_exit_and_changes_nothing(slow_scene: Scene) -> None:
    scene = slow_scene
    theirs, operation = scene.in_doubt("bob"), scene.in_doubt("ada")
    job, prepared = scene.job_of(operation), scene.asked()
    seen = scene.standing(operation)["revision"]
    for code, name, words in (
        (2, "overlap", ("adopt", operation, job)),
        (2, "remote_job_invalid", ("adopt", operation, "a\tb")),
        (1, "wrong_phase", ("adopt", prepared, job)),
        (3, "not_found", ("adopt", "op_00000000000000000000000001", job)),
        (2, "refused", ("adopt", operation)),
        (1, "not_quiescent", ("prove-absent", operation)),
        (1, "not_quiescent", ("redispatch", operation)),
        (4, "stale", ("write-off", operation, "--revision", str(seen - 1))),
        (2, "refused", ("write-off", operation, theirs, "--revision", str(seen))),
        (2, "refused", ("write-off", operation, operation)),
        (2, "refused", ("write-off",)),
        (2, "refused", ("write-off", operation, "--from", "-")),
        (2, "refused", ("write-off", "--from", "-", "--revision", "1")),
        (2, "refused", ("write-off", "--from", "nowhere.txt")),
        (3, "not_found", ("show", "nonsense")),
    ):
        why = () if words[0] == "show" else WHY
        assert refused(scene, code, "reconcile", *words, *why)["code"] == name, words
    assert refused(scene, 2, "reconcile", "write-off", operation, "--reason", " ")["code"] == "refused"
    assert refused(scene, 2, "reconcile", "write-off", operation)["code"] == "usage"
    assert refused(scene, 6, "reconcile", "write-off", operation, *WHY, environ=NOWHERE)["code"] == "unavailable"
    scene.sim.stop()
    assert refused(scene, 6, "reconcile", "adopt", operation, job, "--force", *WHY)["code"] == "unavailable"
    scene.sim.start()
    forced = scene.terminal().run("reconcile", "adopt", operation, job, "--force", *WHY, "--json")
    assert forced.object["overlaps"] == [theirs]
    assert f"adopted by force; other tenants' dispatches were open at the same time: {theirs}" in forced.err
    scene.decides(lambda eve: eve.write_off(theirs, reason="over"))


def test_a_redispatch_states_its_cost_until_somebody_says_yes(scene: Scene) -> None:
    operation = scene.quiet()
    error = refused(scene, 2, "reconcile", "redispatch", operation, *WHY)
    assert error["code"] == "unconfirmed"
    assert "(5 credits) counts as spent, and one more POST costs about 5 credits" in error["message"]
    assert "--yes" in error["next"]
    terminal = scene.terminal(COATCHECK_REDISPATCH_BY_TWO="true")
    asked = terminal.run("reconcile", "redispatch", operation, "--yes", *WHY, "--json")
    assert (asked.code, asked.object["result"], asked.object["phase"]) == (0, "requested", "uncertain")
    again = terminal.run("reconcile", "redispatch", operation, "--yes", *WHY, "--json")
    assert (again.code, again.error["code"]) == (2, "second_person")
    done = terminal.run("reconcile", "redispatch", operation, "--yes", "--reason", "agreed", "--actor", "max", "--json")
    assert (done.object["result"], done.object["spent"], done.object["estimate"]) == ("done", 5, 5)
    scene.work()
    assert (scene.posts_of(operation), scene.money()) == (2, (0, 10))
    audited = terminal.run("audit", "--json")
    assert (audited.code, audited.out) == (0, "")


def test_two_terminals_at_once_one_decides_and_the_other_exits_4(scene: Scene) -> None:
    operation = scene.quiet(created=False)
    terminal = scene.terminal()
    ended: dict[str, Ended] = {}

    def decide(actor: str) -> None:
        words = ("reconcile", "prove-absent", operation, "--reason", "not there", "--actor", actor, "--json")
        ended[actor] = terminal.run(*words)

    threads = [threading.Thread(target=decide, args=[actor]) for actor in ("eve", "max")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(each.code for each in ended.values()) == [0, 4]
    (winner,) = [actor for actor, each in ended.items() if each.code == 0]
    (loser,) = [each for each in ended.values() if each.code == 4]
    assert loser.error["code"] == "stale"
    assert f'by "{winner}"' in loser.error["message"]
    assert scene.happened(operation) == ["proven_absent"]
    scene.work()
    assert scene.posts_of(operation) == 2


def doubts(scene: Scene, count: int) -> list[str]:
    job = {**QUICK, "create": {"kind": "accept_then_drop", "times": 1}}
    asked = [scene.asked(job=job) for _ in range(count)]
    scene.work()
    scene.database.move_time(1)
    return asked


def test_a_file_is_decided_line_by_line_and_each_line_is_told(scene: Scene) -> None:
    first, second, third = doubts(scene, 3)
    prepared = scene.asked()
    lines = [
        f"{first} {scene.job_of(first)}",
        json.dumps({"operation_id": second, "remote_job_id": scene.job_of(second), "reason": "its own"}),
        "",
        f"{third} job_invented",
        json.dumps({"operation_id": prepared, "remote_job_id": "job-1"}),
    ]
    (scene.folder / "decisions.txt").write_text("\r\n".join(lines), encoding="utf-8-sig")
    ended = scene.terminal().run("reconcile", "adopt", "--from", "decisions.txt", *WHY, "--json")
    assert ended.code == 1
    assert [(each["operation_id"], each["result"], each.get("code"), each["phase"]) for each in ended.objects] == [
        (first, "done", None, "accepted"),
        (second, "done", None, "accepted"),
        (third, "refused", "remote_job_unknown", "uncertain"),
        (prepared, "refused", "wrong_phase", "prepared"),
    ]
    assert all(each["revision"] == scene.standing(each["operation_id"])["revision"] for each in ended.objects)
    assert ended.err == "2 decided, 2 refused\n"
    reasons = scene.rows("select reason from coatcheck.history where event = 'adopted' order by reason")
    assert [each["reason"] for each in reasons] == ["its own", "seen in the ledger"]


def test_failures_of_one_kind_give_their_exit_code_and_none_gives_0(scene: Scene) -> None:
    first, second = doubts(scene, 2)
    terminal = scene.terminal()
    done = terminal.run("reconcile", "write-off", first, second, *WHY)
    assert (done.code, done.err) == (0, "2 decided, 0 refused\n")
    assert [line.split(": ")[1].split(";")[0] for line in done.out.splitlines()] == ["written_off", "written_off"]
    again = terminal.run("reconcile", "write-off", "--from", "-", *WHY, given=f"{first}\n{second}\n".encode())
    assert (again.code, again.err) == (4, "0 decided, 2 refused\n")
    assert again.out.count("refused (stale)") == 2


def test_the_cost_of_several_redispatches_is_added_up(scene: Scene) -> None:
    first, second = doubts(scene, 2)
    prepared = scene.asked()
    error = refused(scene, 2, "reconcile", "redispatch", first, second, prepared, *WHY)
    assert error["code"] == "unconfirmed"
    assert (
        "10 credits of former dispatches count as spent, and 2 more POSTs will cost about 10 credits"
        in error["message"]
    )
    assert "1 more would be refused" in error["message"]


WRONG_LINES = (
    b"nonsense",
    b"{first} job",
    b"{first}",
    b'{"operation_id": "{second}", "remote_job_id": "j"}',
    b'{"operation_id": "{second}", "price": 5}',
    b'{"operation_id": "{second}", "revision": true}',
    b'{"operation_id": "{second}", "revision": -1}',
    b'{"operation_id": "{second}", "reason": " "}',
    b'{"operation_id": "{second}", "operation_id": "{second}"}',
    b'{"operation_id": "{second}"',
    b'{"operation_id": 7}',
    b"\xff",
)


def test_a_line_that_is_wrong_decides_nothing_of_the_whole_file(scene: Scene) -> None:
    first, second = doubts(scene, 2)
    for line in WRONG_LINES:
        given = line.replace(b"{first}", first.encode()).replace(b"{second}", second.encode())
        error = refused(scene, 2, "reconcile", "write-off", "--from", "-", *WHY, given=first.encode() + b"\n" + given)
        assert error["code"] == "refused"
        assert error["message"].startswith("line 2: ")
        assert "expected " in error["message"]
    for line in (first.encode(), b'{"operation_id": "%s"}' % second.encode(), f"{first} a\tb".encode()):
        error = refused(scene, 2, "reconcile", "adopt", "--from", "-", *WHY, given=line)
        assert error["message"].startswith("line 1: expected ")


def test_an_empty_file_is_no_decision(scene: Scene) -> None:
    assert "got nothing" in refused(scene, 2, "reconcile", "write-off", "--from", "-", *WHY, given=b"\n \n")["message"]


def test_orphans_are_listed_and_resolved(scene: Scene) -> None:
    terminal: Terminal = scene.terminal()
    assert terminal.run("orphans", "list").err == "no orphan\n"
    operation = scene.quiet()
    scene.decides(lambda eve: eve.write_off(operation, reason="lost", released=True))
    scene.rows(
        "with made as (insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)"
        " select account, %s, operation_id, dispatch_id, 'orphan', now() from coatcheck.operations returning remote_job_id)"
        " update coatcheck.dispatches set remote_job_id = made.remote_job_id from made returning number",
        scene.job_of(operation),
    )
    listed = terminal.run("orphans", "list", "--json").object
    assert (listed["remote_job_id"], listed["cost"], listed["basis"]) == (scene.job_of(operation), 0, "assumed")
    assert operation in terminal.run("orphans", "list").out
    words = ("orphans", "resolve", scene.job_of(operation), "--account", "genace", *WHY)
    assert refused(scene, 3, "orphans", "resolve", "job_invented", "--account", "genace", *WHY)["code"] == "not_found"
    assert refused(scene, 2, *words, "--charged", "-1")["code"] == "refused"
    done = terminal.run(*words, "--charged", "4.5", "--json").object
    assert (done["charged"], done["resolved_by"], done["phase"]) == (4.5, "eve", "abandoned")
    assert refused(scene, 4, *words)["code"] == "stale"
    assert terminal.run("orphans", "list", "--json").out == ""
    assert terminal.run("orphans", "list", "--all", "--json").object["resolution"] == "seen in the ledger"
    assert scene.one("select held, charged::float8 as charged from coatcheck.allowances where tenant_id = 'ada'") == {
        "held": 0,
        "charged": 4.5,
    }
