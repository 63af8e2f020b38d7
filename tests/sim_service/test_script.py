"""Scripts: what they match, how often they strike, and how they are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from coatcheck.errors import Refused
from coatcheck.sim import Kind, Script, ThreadedService
from coatcheck.sim.catalogue import TRAITS
from coatcheck.sim.faults import PARAMETERS
from sim_service.raw_client import exchange, finished_job, get, look, output_of, post, request_bytes

REFUSED: list[tuple[Any, str, str]] = [
    ([{"kind": "cut"}], "rule 1: `on` is missing", "create, look"),
    ([{"on": "create", "kind": "cut"}, {"on": "create", "kind": "cutt"}], "rule 2: ", "accept_then_drop, "),
    ([{"on": "create"}], "rule 1: expected a kind that can strike create, got nothing", "known kinds: "),
    ([{"on": "look", "kind": "accept_then_drop"}], "can strike look", "closed_window"),
    ([{"on": "create", "kind": "cut", "seconds": 3}], "rule 1 (cut): unknown name 'seconds'", "at, end, created"),
    ([{"on": "create", "kind": "cut", "at": "40"}], "at must be an integer, got '40'", "correct"),
    ([{"on": "create", "kind": "cut", "end": "reset"}], "one of fin, rst", "correct"),
    ([{"on": "create", "kind": "status", "status": True}], "status must be an integer", "correct"),
    ([{"on": "create", "kind": "malformed", "form": "odd"}], "form must be one of html", "correct"),
    ([{"on": "create", "kind": "cut", "nht": 1}], "unknown name 'nht'", "nth"),
    ([{"on": "create", "kind": "cut", "job": "job_1"}], "no job exists before", "prompt or nth"),
    ([{"on": "look", "kind": "cut", "output": 1}], "`output` needs on: output", "leave"),
    ([{"on": "create", "kind": "early_reply", "prompt": "x"}], "acts before the body is read", "nth"),
    ([{"on": "job", "outcome": "won"}], "outcome must be one of succeeded", "correct"),
    ({"rules": {}}, "rules: expected a list", "["),
    ({"rule": []}, "unknown name 'rule'", "rules, mix, service"),
    ({"mix": {"cut": 0.6, "status": 0.6}}, "add up to at most 1, got 1.2", "lower"),
    ({"mix": {"cut": 0.6, "drop_before_body": 0.1}}, "mix entry 2: drop_before_body acts before", "nth"),
    ({"mix": [{"on": "create", "kind": "cut", "p": 0.1, "nth": 2}]}, "got matchers", "rule"),
    ({"mix": {"cut": "often"}}, "p must be a finite number", "correct"),
    ("cut", "script: expected an object, got 'cut'", "{"),
]


@pytest.mark.parametrize(("data", "message", "remedy"), REFUSED, ids=[message for _, message, _ in REFUSED])
def test_a_wrong_script_is_refused_with_its_place_and_what_exists(data: Any, message: str, remedy: str) -> None:
    with pytest.raises(Refused) as refused:
        Script.parse(data)
    assert message in refused.value.message
    assert remedy in refused.value.next


@pytest.mark.parametrize("service", [{"job_path": "/x"}, {"create_path": "x"}, {"prize": 3}, {"queued_s": [2, 1]}])
def test_impossible_settings_are_refused(sim: ThreadedService, service: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="service: "):
        sim.script({"service": service})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"rules": [', encoding="utf-8")
    for name in ("half.json", "none.json"):
        with pytest.raises(Refused, match=name):
            Script.load(tmp_path / name)


def test_every_parameter_of_the_catalogue_has_a_check_and_a_default_that_passes_it() -> None:
    for kind, trait in TRAITS.items():
        for role in trait.roles:
            Script.parse([{"on": role, "kind": kind, **trait.parameters}])
    assert set(PARAMETERS) == {name for trait in TRAITS.values() for name in trait.parameters}
    assert set(TRAITS) == set(Kind)


def test_rules_are_posted_added_and_replaced_over_http_and_a_wrong_one_changes_nothing(sim: ThreadedService) -> None:
    def script(data: object) -> tuple[int, Any]:
        seen = exchange(
            sim.base_url, request_bytes("POST", "/_sim/script", json.dumps(data).encode(), Authorization="")
        )
        return seen.status, seen.json()

    assert script([{"on": "create", "kind": "status", "status": 501}])[0] == 200
    assert script({"rules": [{"on": "create", "kind": "status", "status": 502}]})[0] == 200
    assert post(sim, {}).status == 501
    status, reply = script({"replace": True, "rules": [{"on": "create", "kind": "nonsense"}]})
    assert (status, "nonsense" in reply["error"]["message"], "known kinds" in reply["error"]["next"]) == (
        400,
        True,
        True,
    )
    assert post(sim, {}).status == 501
    assert script({"replace": True, "rules": []}) == (200, {"rules": 0, "mix": 0, "replaced": True})
    assert post(sim, {}).status == 201
    assert sim.totals()["posts"] == 3


def test_a_rule_strikes_the_nth_request_that_fits_and_as_many_as_it_says(sim: ThreadedService) -> None:
    sim.script([{"on": "create", "kind": "status", "nth": 2, "times": 2, "prompt": "red"}])
    prompts = ["red", "blue", "dark red", "red", "red"]
    assert [post(sim, {"prompt": prompt}).status for prompt in prompts] == [201, 201, 500, 500, 201]


def test_rules_match_one_job_or_one_output(sim: ThreadedService) -> None:
    first, second = (finished_job(sim, outputs=2) for _ in range(2))
    sim.script(
        [{"on": "look", "kind": "status", "job": first}, {"on": "output", "kind": "status", "output": 1, "times": 1}]
    )
    assert [look(sim, job).status for job in (first, second)] == [500, 200]
    url = output_of(sim, second)
    assert get(sim, url).status == 200
    other = look(sim, second).json()["outputs"][1]["url"]
    assert [get(sim, other).status for _ in range(2)] == [500, 200]


def test_a_job_rule_decides_how_jobs_go_and_the_specification_has_the_last_word(sim: ThreadedService) -> None:
    sim.script([{"on": "job", "prompt": "nude", "outcome": "moderated", "queued_s": 0, "processing_s": 0, "price": 9}])
    assert post(sim, {"prompt": "a nude"}).json()["status"] == "moderated"
    assert post(sim, {"prompt": "a nude", "sim": {"outcome": "failed"}}).json()["status"] == "failed"
    assert sim.totals()["billed"] == 18


def test_a_specification_scripts_its_own_job(sim: ThreadedService) -> None:
    wishes = {
        "create": {"kind": "throttled", "times": 1},
        "look": [{"kind": "status", "status": 404, "times": 2}, {"kind": "wrong_id", "nth": 3}],
        "output": ["expired"],
        "queued_s": 0,
        "processing_s": 0,
    }
    assert post(sim, {"sim": wishes}).status == 429
    job_id = post(sim, {"sim": wishes}).json()["job_id"]
    looks = [look(sim, job_id) for _ in range(4)]
    assert [seen.status for seen in looks] == [404, 404, 200, 200]
    assert [seen.json()["id"] == job_id for seen in looks[2:]] == [False, True]
    assert get(sim, output_of(sim, job_id)).status == 403
    assert look(sim, finished_job(sim)).status == 200


def test_the_mix_strikes_in_about_its_proportions(sim: ThreadedService) -> None:
    sim.script({"mix": [{"on": "create", "kind": "status", "status": code, "p": 0.2} for code in (500, 503)]})
    statuses = [post(sim, {"prompt": str(number)}).status for number in range(200)]
    assert all(20 <= statuses.count(code) <= 60 for code in (500, 503))
    assert statuses.count(201) == 200 - statuses.count(500) - statuses.count(503)
