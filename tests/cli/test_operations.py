"""`operations list|show`: the contract's fields, keyset order, filters, and nothing that a terminal would obey."""

import pytest

import postgres
from cli.terminal import Terminal
from coatcheck.sim import ThreadedService

DISPATCH_FIELDS = {
    *("dispatch_id", "number", "authorisation", "authorised_by", "outcome", "stage", "http_status", "remote_job_id"),
    *("held", "charged", "begun_at", "ended_at", "cause", "bytes_sent", "bytes_received", "quiescent_at", "worker"),
}
MESSAGE_FIELDS = {
    "message_id",
    "lane",
    "action",
    "visible_at",
    "lease_count",
    "wait_reason",
    "parked_at",
    "park_reason",
}
HOSTILE = "\x1b[2J\x1b]0;owned\x07\nFORGED \u202egnp.exe\u2066 [bold red]x[/]"
TOLD = ("\x1b", "\x07", "\u202e", "\u2066", "\nFORGED")


def test_a_list_is_one_object_per_line_in_the_order_of_making(terminal: Terminal) -> None:
    made = [terminal.enqueue(f"k{number}", tenant=f"t{number % 2}")["operation_id"] for number in range(5)]
    listed = terminal.run("operations", "list", "--json")
    assert [each["operation_id"] for each in listed.objects] == sorted(made) == made
    few = terminal.run("operations", "list", "--json", "--limit", "2", "--tenant", "t0").objects
    assert [each["operation_id"] for each in few] == [made[0], made[2]]
    assert terminal.run("operations", "list", "--json", "--limit", "0").objects == []
    assert terminal.run("operations", "list", "--json", "--tenant", "nobody").objects == []
    waiting = terminal.run("messages", "list", "--json", "--limit", "3").objects
    assert [each["operation_id"] for each in waiting] == made[:3]


def test_a_long_list_comes_whole_and_in_order(terminal: Terminal, database: postgres.Database) -> None:
    """Over several pages of the store and several screens."""
    with database.connect() as connection:
        connection.execute(
            "select coatcheck.enqueue_v1(jsonb_build_object('v', 1, 'tenant_id', 't', 'operation_key', 'k' || n, 'provider', 'genace',"
            " 'specification_text', '{}')) from generate_series(1, 1203) as n"
        )
    listed = [each["operation_id"] for each in terminal.run("operations", "list", "--json").objects]
    assert len(set(listed)) == 1203
    assert listed == sorted(listed)
    shown = terminal.run("operations", "list").out
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("op_")] == listed


def test_a_phase_picks_its_operations(terminal: Terminal, database: postgres.Database) -> None:
    cancelled = terminal.enqueue("k1")["operation_id"]
    terminal.enqueue("k2")
    with database.connect() as connection:
        connection.execute("update coatcheck.operations set phase = 'cancelled' where operation_key = 'k1'")
    listed = terminal.run("operations", "list", "--json", "--phase", "cancelled").objects
    assert [each["operation_id"] for each in listed] == [cancelled]


def test_show_tells_the_whole_life(provided: Terminal, service: ThreadedService) -> None:
    operation_id = provided.enqueue("k1", "--estimate", "5")["operation_id"]
    assert provided.run("worker", "--until-idle").code == 0
    shown = provided.run("operations", "show", operation_id, "--json").object
    assert (shown["phase"], shown["render_state"], shown["delivery_state"]) == ("accepted", "succeeded", "delivered")
    (output,) = shown["outputs"]
    assert set(output) == {"index", "state", "uri", "sha256", "bytes", "content_type"}
    assert (output["index"], output["state"], output["content_type"]) == (0, "delivered", "image/png")
    (dispatch,) = shown["dispatches"]
    assert set(dispatch) >= DISPATCH_FIELDS
    assert (dispatch["number"], dispatch["outcome"], dispatch["stage"]) == (1, "accepted", "body_received")
    assert (dispatch["held"], dispatch["charged"]) == (5, 5)
    assert dispatch["remote_job_id"] == shown["remote_job_id"] == service.posts[0].created
    assert [each["revision"] for each in shown["history"]] == list(range(shown["revision"] + 1))
    assert shown["history"][0]["event"] == "generation_requested"
    assert (shown["messages"], shown["incidents"]) == ([], [])
    words = provided.run("operations", "show", operation_id)
    assert operation_id in words.out
    assert "generation_requested" in words.out


def test_messages_have_the_name_of_operation_and_lane(terminal: Terminal) -> None:
    operation_id = terminal.enqueue("k1")["operation_id"]
    (message,) = terminal.run("operations", "show", operation_id, "--json").object["messages"]
    assert set(message) >= MESSAGE_FIELDS
    assert message["message_id"] == f"{operation_id}.0"
    assert (message["action"], message["lease_count"], message["parked_at"]) == ("dispatch", 0, None)


@pytest.mark.parametrize("words", [["operations", "list"], ["operations", "show"]], ids=" ".join)
def test_hostile_text_does_not_reach_the_terminal(
    terminal: Terminal, database: postgres.Database, words: list[str]
) -> None:
    operation_id = terminal.enqueue(HOSTILE, tenant=HOSTILE)["operation_id"]
    with database.connect() as connection:
        connection.execute("update coatcheck.operations set remote_status = operation_key")
        connection.execute(
            "insert into coatcheck.incidents (operation_id, kind, boundary, detail, first_at, last_at)"
            " select operation_id, operation_key, 'theirs', operation_key, created_at, created_at from coatcheck.operations"
        )
    arguments = words if words[-1] == "list" else [*words, operation_id]
    for ended in (terminal.run(*arguments), terminal.run(*arguments, "--json")):
        assert ended.code == 0
        assert not [each for each in TOLD if each in ended.out]
    assert terminal.run(*arguments, "--json").object["operation_key"] == HOSTILE
    assert "[bold red]" in terminal.run(*arguments).out
