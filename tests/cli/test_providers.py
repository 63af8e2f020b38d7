"""`providers list|set|pause|resume`: what an account may be asked for, and what a person who types it wrongly is told."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest

import postgres
from cli.terminal import COATCHECK, Terminal
from cli.test_on_a_terminal import on_a_terminal
from coatcheck.cli.limits import count_or_none, measure, rate_or_none, seconds_or_none
from coatcheck.errors import Refused

SET = ("providers", "set", "genace", "--reason", "their limits", "--actor", "ada")
FIELDS = {
    *("name", "account", "kind", "default_estimate", "unit"),
    *("max_in_flight", "in_flight_count", "dispatches_per_s", "looks_per_s", "look_floor_s"),
    *("dispatch_shut_until", "look_shut_until", "doubt_limit", "doubt_count"),
    *("dispatch_paused_at", "dispatch_pause_reason", "dispatch_paused_by"),
    *("dispatch_resumed_at", "dispatch_resume_reason", "dispatch_resumed_by"),
    *("observation_paused_at", "observation_pause_reason", "observation_paused_by", "observation_probe_at"),
    *("observation_resumed_at", "observation_resume_reason", "observation_resumed_by", "failed_look_count"),
}


def listed(terminal: Terminal) -> list[dict[str, Any]]:
    ended = terminal.run("providers", "list", "--json")
    assert ended.code == 0, ended.err
    return ended.objects


def budget(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("max_in_flight", "dispatches_per_s", "looks_per_s", "look_floor_s", "doubt_limit")
    return tuple(row[name] for name in names)


def test_what_is_set_is_told_what_is_not_stays_and_none_lifts_it(provided: Terminal) -> None:
    words = ("--max-in-flight", "8", "--dispatches-per-s", "0.5", "--looks-per-s", "1000000", "--look-floor-s", "0")
    told = provided.run(*SET, *words, "--doubt-limit", "3")
    assert told.out == (
        "genace is without an estimate, at most 8 in flight, at most 0.5 dispatches a second,"
        " at most 1000000 looks a second, at least 0 s between looks at a job, paused after 3 doubts in a row:"
        " their limits (ada)\n"
    )
    (row,) = listed(provided)
    assert set(row) == FIELDS
    assert (budget(row), row["in_flight_count"]) == ((8, 0.5, 1000000, 0, 3), 0)
    changed = provided.run(*SET, "--looks-per-s", "none", "--doubt-limit", "none", "--json").object
    assert budget(changed) == (8, 0.5, None, 0, None)
    lifted = provided.run(*SET, *(word if index % 2 == 0 else "none" for index, word in enumerate(words)), "--json")
    assert budget(lifted.object) == (None, None, None, None, None)
    assert "their limits (ada)" in lifted.err


COUNT, RATE, SECONDS = partial(count_or_none, least=0), rate_or_none, seconds_or_none
WRONG = [
    (
        COUNT,
        ["-1", "1.5", "1e3", "", " 8", "8\n", "1000001", "9" * 5000, "0" * 20 + "7", "\u0663", "all", "NONE", "+1"],
    ),
    (partial(count_or_none, least=1), ["0", "-1", "2147483648"]),
    (RATE, ["0", "0.0009", "-1", "nan", "inf", "1_0", "1e3", "0x10", "1,5", ".5", "5.", "\u0665", "1000000.1"]),
    (SECONDS, ["-0.1", "1m", "1e-3", "9" * 400, "Infinity"]),
]


@pytest.mark.parametrize(("limit", "text"), [(limit, text) for limit, wrong in WRONG for text in wrong])
def test_what_is_no_limit_is_refused_in_one_short_line(limit: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(
        Refused, match=r"^--x: expected a (whole )?number from [0-9.]+ to 1000000 or none, got '"
    ) as told:
        limit("--x", text)
    assert len(str(told.value)) < 150
    assert str(told.value).isascii()


def test_what_is_a_limit_is_read_and_told_as_it_was_typed() -> None:
    for text in ("0.001", "0.5", "3.25", "8", "123456.75", "1000000"):
        assert measure(RATE("--x", text)) == text
    assert (measure(SECONDS("--x", "0.000001")), COUNT("--x", "007"), COUNT("--x", "none")) == ("0.000001", 7, None)


def test_a_wrong_limit_is_told_and_nothing_is_set(provided: Terminal) -> None:
    wrong = [
        (["--max-in-flight", "-1", "--looks-per-s", "5"], "--max-in-flight: expected a whole number from 0 to 1000000"),
        (["--doubt-limit", "0"], "--doubt-limit: expected a whole number from 1 to 1000000 or none, got '0'"),
        (["--dispatches-per-s", "\x1b[2J"], "--dispatches-per-s: expected a number from 0.001 to 1000000 or none"),
        (["--looks-per-s", "fast"], "--looks-per-s: expected a number from 0.001 to 1000000 or none, got 'fast'"),
        (["--look-floor-s", "-2"], "--look-floor-s: expected a number from 0 to 1000000 or none, got '-2'"),
        ([], "expected something to set, got nothing"),
    ]
    for words, said in wrong:
        ended = provided.run(*SET, *words, "--json")
        assert (ended.code, ended.error["code"], said in ended.error["message"]) == (2, "refused", True), ended.err
        assert ended.error["next"]
        assert "\x1b" not in ended.err
    assert listed(provided) == []


def test_a_provider_that_nobody_knows_is_3(provided: Terminal) -> None:
    for verb, *more in (["set", "--looks-per-s", "5"], ["pause", "--what", "observation"]):
        ended = provided.run("providers", verb, "nobody", *more, "--reason", "r", "--json")
        assert (ended.code, ended.error["code"]) == (3, "not_found")
        assert "providers list" in ended.error["next"]


def test_what_can_be_paused_is_one_of_two(provided: Terminal) -> None:
    ended = provided.run("providers", "pause", "genace", "--what", "delivery", "--reason", "r", "--json")
    assert (ended.code, ended.error["code"]) == (2, "usage")
    assert "observation" in ended.error["message"] + ended.error["next"]
    assert listed(provided) == []


def test_setting_waits_for_no_more_than_five_seconds_for_who_holds_a_lock(
    provided: Terminal, database: postgres.Database
) -> None:
    assert provided.run(*SET, "--estimate", "1").code == 0
    with psycopg.connect(database.url) as other:
        other.execute("select from coatcheck.accounts for update")
        ended = provided.run(*SET, "--max-in-flight", "5", "--estimate", "2", "--json")
    assert (ended.code, ended.error["code"]) == (6, "unavailable")
    assert "within 5 s" in ended.error["message"]
    assert "try again" in ended.error["next"]
    (row,) = listed(provided)
    assert (*budget(row), row["default_estimate"]) == (None, None, None, None, 20, 1)


def test_a_pause_of_looks_is_apart_from_one_of_dispatches_and_each_tells_who_and_why(provided: Terminal) -> None:
    both = ("--reason", "their maintenance", "--actor", "ada")
    looks = ("genace", "--what", "observation")
    told = provided.run("providers", "pause", *looks, *both)
    assert told.out == "paused observation of genace, account genace: their maintenance (ada)\n"
    (row,) = listed(provided)
    assert (row["observation_pause_reason"], row["observation_paused_by"]) == ("their maintenance", "ada")
    assert (row["dispatch_paused_at"], row["observation_probe_at"]) == (None, None)
    assert provided.run("providers", "pause", "genace", *both, "--json").object["dispatch_paused_by"] == "ada"
    resumed = provided.run("providers", "resume", *looks, "--reason", "done", "--actor", "bob", "--json")
    assert resumed.object["observation_paused_at"] is None
    assert (resumed.object["observation_resume_reason"], resumed.object["observation_resumed_by"]) == ("done", "bob")
    assert resumed.object["dispatch_pause_reason"] == "their maintenance"
    assert "resumed observation of genace: done (bob)" in resumed.err


def test_a_person_reads_budgets_and_pauses_within_a_hundred_columns(
    provided: Terminal, database: postgres.Database
) -> None:
    limits = ("--max-in-flight", "8", "--dispatches-per-s", "2", "--looks-per-s", "20")
    assert provided.run(*SET, "--estimate", "2", *limits).code == 0
    assert provided.run("providers", "pause", "genace", "--reason", "bad \x1b[2Jkey", "--actor", "ada").code == 0
    with database.connect() as connection:
        connection.execute(
            "update coatcheck.accounts set observation_paused_at = now(), observation_paused_by = 'coatcheck',"
            " observation_pause_reason = '10 looks in a row failed, the last one with: status_503',"
            " observation_probe_at = now() + interval '5 s', dispatch_shut_until = now() + interval '1 h'"
        )
    told = provided.run("providers", "list").out
    assert re.search(r"^genace +genace +2 credits +0 of 8 +2 +20 +0 of 20$", told, re.MULTILINE)
    assert re.search(r"genace: dispatch paused since \S+ \S+Z by ada: bad \\x1b\[2Jkey$", told, re.MULTILINE)
    assert re.search(r"observation paused since .* by coatcheck, tried with one look at .*Z: 10 looks in a row", told)
    assert re.search(r"genace: no dispatches before \S+ \S+Z, as the service asked$", told, re.MULTILINE)
    environ = {**provided.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    code, shown = on_a_terminal(*COATCHECK, "providers", "list", environ=environ)
    lines = re.sub(r"\x1b\[\d*m", "", shown).splitlines()
    assert (code, max(map(len, lines)) <= 100) == (0, True), shown
    assert any("dispatches/s" in line and "doubts" in line for line in lines)
    assert any(line.strip().endswith("status_503") for line in lines)
