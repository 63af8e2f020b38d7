"""`allowance` and `providers set`: what a tenant may spend, from the first refusal to the top-up that lets a running worker go on."""

import json
from typing import Any

import psycopg
import pytest

import postgres
from cli.terminal import Terminal
from coatcheck.sim import ThreadedService
from waiting import until

FIELDS = {"tenant_id", "unit", "limit", "held", "charged", "left", "waiting", "updated_at", "set_by"}


def priced(key: str, price: float) -> bytes:
    return json.dumps({"prompt": key, "sim": {"price": price}}).encode()


def shown(terminal: Terminal, *words: str) -> list[dict[str, Any]]:
    ended = terminal.run("allowance", "show", "--json", *words)
    assert ended.code == 0, ended.err
    return ended.objects


def allow(terminal: Terminal, *words: str) -> dict[str, Any]:
    ended = terminal.run("allowance", "set", "--json", *words)
    assert ended.code == 0, ended.err
    return ended.object


def test_ten_at_five_each_lets_two_of_three_out_and_a_top_up_the_third(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    assert set(allow(provided, "--tenant", "t1", "10", "--actor", "ada")) == FIELDS
    for number in range(3):
        key = f"k{number}"
        provided.enqueue(key, "--estimate", "5", given=priced(key, 5))
    ended = provided.run("worker", "--until-idle")
    assert ended.code == 0, ended.err
    assert len(service.posts) == 2
    (row,) = shown(provided)
    assert {**row, "updated_at": "-"} == {
        "tenant_id": "t1",
        "unit": "credits",
        "limit": 10,
        "held": 0,
        "charged": 10,
        "left": 0,
        "waiting": 1,
        "updated_at": "-",
        "set_by": "ada",
    }
    assert provided.run("stats", "--json").object["waiting"] == {"allowance": 1}
    with database.connect() as connection:
        tries = connection.execute("select wait_reason, wait_count from coatcheck.outbox").fetchall()
    assert tries == [("allowance", 2)]
    with provided.started("worker", "--roles", "dispatch") as running:
        running.said("ready")
        assert allow(provided, "--tenant", "t1", "15")["waiting"] == 0
        until(lambda: len(service.posts) == 3)
    assert provided.run("operations", "list", "--phase", "prepared", "--json").out == ""


def test_a_render_that_costs_less_than_it_held_leaves_room_that_is_found_without_a_person(
    provided: Terminal, service: ThreadedService
) -> None:
    allow(provided, "--tenant", "t1", "5")
    for number in range(2):
        provided.enqueue(f"k{number}", "--estimate", "5", given=priced(f"k{number}", 0))
    assert provided.run("worker", "--until-idle").code == 0
    assert len(service.posts) == 2
    assert [row["left"] for row in shown(provided)] == [5]


def test_none_lifts_the_limit_and_goes_on_counting(provided: Terminal, service: ThreadedService) -> None:
    allow(provided, "--tenant", "t1", "0")
    provided.enqueue("k", "--estimate", "0.1", given=priced("k", 0.1))
    assert provided.run("worker", "--until-idle").code == 0
    assert (len(service.posts), shown(provided)[0]["waiting"]) == (0, 1)
    lifted = provided.run("allowance", "set", "--tenant", "t1", "none", "--actor", "ada")
    assert lifted.out == "t1: no limit (ada); 0 held and 0 charged in credits\n"
    assert provided.run("worker", "--until-idle").code == 0
    (row,) = shown(provided)
    assert (row["limit"], row["left"], row["charged"]) == (None, None, 0.1)
    assert "no limit" in provided.run("allowance", "show").out


def test_amounts_come_back_digit_by_digit(terminal: Terminal) -> None:
    exact = "123456789012345678.123456789012"
    assert allow(terminal, "--tenant", "t1", exact, "--unit", "tokens")["limit"] == exact
    told = terminal.run("allowance", "set", "--tenant", "t \x1b[2J", "10.50", "--actor", "ada")
    assert told.out == "t \\x1b[2J: 10.50 credits (ada); 0 held and 0 charged in credits, 10.50 left\n"
    table = terminal.run("allowance", "show").out
    assert exact in table
    assert "10.50" in table
    assert "\x1b" not in table
    assert [row["tenant_id"] for row in shown(terminal, "--unit", "tokens")] == ["t1"]
    assert [row["unit"] for row in shown(terminal, "--tenant", "t1")] == ["tokens"]
    assert shown(terminal, "--tenant", "t9") == []
    assert "no allowance matches" in terminal.run("allowance", "show", "--tenant", "t9").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tenant", "t1", "-5"], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", "NaN"], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", "Infinity"], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", "1e3"], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", "1,5"], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", ""], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", "\u0665"], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", "1" * 19], "AMOUNT: expected a decimal amount"),
        (["--tenant", "t1", "0." + "1" * 13], "AMOUNT: expected a decimal amount"),
        (["--tenant", "", "5"], "--tenant: expected 1 to 255 bytes without NUL, got 0 bytes"),
        (["--tenant", "é" * 128, "5"], "--tenant: expected 1 to 255 bytes without NUL, got 256 bytes"),
        (["--tenant", "t1", "5", "--unit", ""], "--unit: expected 1 to 32 bytes that print"),
        (["--tenant", "t1", "5", "--unit", " credits"], "--unit: expected 1 to 32 bytes that print"),
        (["--tenant", "t1", "5", "--unit", "a\nb"], "--unit: expected 1 to 32 bytes that print"),
        (["--tenant", "t1", "5", "--unit", "u" * 33], "--unit: expected 1 to 32 bytes that print"),
        (["--tenant", "t1", "5", "--actor", " "], "--actor: expected some words"),
        (["5"], "--tenant"),
        (["--tenant", "t1"], "AMOUNT"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_with_its_reason_and_changes_nothing(
    terminal: Terminal, words: list[str], said: str
) -> None:
    ended = terminal.run("allowance", "set", *words, "--json")
    assert (ended.code, ended.error["code"] in ("refused", "usage")) == (2, True)
    assert said in ended.error["message"]
    assert ended.error["next"]
    assert shown(terminal) == []


def test_a_provider_has_an_estimate_for_operations_that_name_none(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    allow(provided, "--tenant", "t1", "10")
    spec = priced("k", 4)
    refused = provided.run("enqueue", "--tenant", "t1", "--key", "k", "-", "--json", given=spec)
    assert (refused.code, refused.error["code"]) == (2, "refused")
    assert (
        "the tenant has an allowance in credits, and the provider has no default estimate" in refused.error["message"]
    )
    change = ("providers", "set", "genace", "--reason", "new prices", "--actor", "ada")
    changed = provided.run(*change, "--estimate", "4", "--json")
    assert (changed.object["default_estimate"], changed.object["unit"]) == (4, "credits")
    assert "new prices (ada)" in changed.err
    provided.enqueue("k", given=spec)
    assert provided.run("worker", "--until-idle").code == 0
    assert (len(service.posts), shown(provided)[0]["charged"]) == (1, 4)
    told = provided.run(*change, "--estimate", "0.50", "--unit", "tokens")
    sentence = "genace is expected to cost 0.50 tokens, paused after 20 doubts in a row: new prices (ada)\n"
    assert told.out == sentence
    listed = provided.run("providers", "list")
    assert "0.50" in listed.out
    assert "tokens" in listed.out
    assert provided.run(*change, "--estimate", "none", "--json").object["default_estimate"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["genace", "--estimate", "-1"], 2, "--estimate: expected a decimal amount"),
        (["genace", "--estimate", "4", "--unit", ""], 2, "--unit: expected 1 to 32 bytes"),
        (["genace"], 2, "providers set: expected something to set, got nothing"),
        (["genace", "--unit", "tokens"], 2, "--estimate: expected an amount, got none"),
        (["nobody", "--estimate", "4"], 3, "no provider named 'nobody' is known"),
    ],
)
def test_an_estimate_that_makes_no_sense_is_refused(provided: Terminal, words: list[str], code: int, said: str) -> None:
    ended = provided.run("providers", "set", *words, "--reason", "r", "--json")
    assert ended.code == code
    assert said in ended.error["message"]
    assert provided.run("providers", "list", "--json").out == ""


def test_a_first_limit_waits_for_no_more_than_its_lock(terminal: Terminal, database: postgres.Database) -> None:
    with psycopg.connect(database.url) as other:
        other.execute("lock table coatcheck.dispatches in row exclusive mode")
        ended = terminal.run("allowance", "set", "--tenant", "t1", "5", "--json")
    assert (ended.code, ended.error["code"]) == (6, "unavailable")
    assert "within 5 s" in ended.error["message"]
    assert shown(terminal) == []
