"""Every fault of the GET of a job. The table below must name every kind, or a test fails."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from coatcheck.sim import Kind, Role, ThreadedService
from coatcheck.sim.catalogue import TRAITS, kinds_for
from sim_service.raw_client import Seen, finished_job, look, post

Check = Callable[[Seen, Seen], bool]


def changed(seen: Seen, normal: Seen) -> bool:
    return seen.status == 200 and seen.body != normal.body


def only(name: str, value: object) -> Check:
    """The snapshot differs in this one place."""
    return lambda seen, normal: seen.json() == {**normal.json(), name: value}


def declared(name: str) -> Check:
    def check(seen: Seen, normal: Seen) -> bool:
        (wrong,), (right,) = seen.json()["outputs"], normal.json()["outputs"]
        return wrong[name] != right[name] and {**wrong, name: None} == {**right, name: None}

    return check


# kind, parameters, end, what must be true of the bytes
CASES: list[tuple[Kind, dict[str, Any], str, Check]] = [
    (Kind.DROP, {}, "fin", lambda seen, _: seen.data == b""),
    (Kind.DROP, {"end": "rst"}, "rst", lambda seen, _: seen.data == b""),
    (Kind.CUT, {"at": 60, "end": "rst"}, "rst", lambda seen, normal: seen.data == normal.data[:60]),
    (Kind.CUT, {"at": -2}, "fin", lambda seen, normal: seen.data == normal.data[:-2]),
    (Kind.STALL, {"seconds": 0.1}, "fin", lambda seen, normal: seen.data == normal.data),
    (Kind.SLOW, {"interval_s": 0.0001, "chunk_bytes": 3}, "fin", lambda seen, normal: seen.data == normal.data),
    (Kind.INFORMATIONAL, {}, "fin", lambda seen, normal: seen.data.endswith(normal.data) and seen.data.count(b"HTTP/1.1") == 4),
    (Kind.CHUNKED, {"chunk_bytes": 10_000}, "fin", lambda seen, normal: normal.body in seen.body),
    (Kind.GZIP, {}, "fin", lambda seen, normal: gzip.decompress(seen.body) == normal.body),
    (Kind.NO_LENGTH, {}, "fin", lambda seen, normal: seen.body == normal.body and not seen.header("content-length")),
    (Kind.WRONG_LENGTH, {"delta": -5}, "fin", lambda seen, normal: seen.header("content-length") == str(len(normal.body) - 5)),
    (Kind.GARBAGE_STATUS_LINE, {}, "fin", lambda seen, _: seen.data.startswith(b"BANANA")),
    (Kind.HUGE_HEADERS, {}, "fin", lambda seen, normal: seen.body == normal.body and len(seen.head) > 1_048_576),
    *[(Kind.STATUS, {"status": code}, "fin", lambda seen, _: b"error" in seen.body) for code in (401, 403, 404, 408, 500)],
    (Kind.STATUS, {"status": 502, "form": "html"}, "fin", lambda seen, _: seen.body.startswith(b"<html>")),
    (Kind.STATUS, {"status": 204, "form": "empty"}, "fin", lambda seen, _: seen.status == 204 and seen.body == b""),
    (Kind.THROTTLED, {"retry_after": 3}, "fin", lambda seen, _: seen.header("retry-after") == "3"),
    (Kind.REDIRECT, {"status": 302}, "fin", lambda seen, _: "wait=0&hop=1" in str(seen.header("location"))),
    *[(Kind.MALFORMED, {"form": form}, "fin", changed) for form in TRAITS[Kind.MALFORMED].forms],
    *[(Kind.CLOSED_WINDOW, {"status": code}, "fin", lambda seen, _: seen.body == b"") for code in (202, 204, 304, 408)],
    (Kind.WRONG_ID, {}, "fin", lambda seen, normal: changed(seen, normal) and seen.json()["status"] == "succeeded"),
    (Kind.WRONG_ID, {"other_id": "job_x"}, "fin", only("id", "job_x")),
    (Kind.REGRESSION, {"word": "processing"}, "fin", lambda seen, _: seen.json()["status"] == "processing"),
    (Kind.UNKNOWN_WORD, {"word": "aborted"}, "fin", lambda seen, _: seen.json()["status"] == "aborted"),
    (Kind.NO_OUTPUTS, {}, "fin", only("outputs", [])),
    (Kind.NO_OUTPUTS, {"form": "null"}, "fin", only("outputs", None)),
    (Kind.NO_OUTPUTS, {"form": "missing"}, "fin", lambda seen, _: "outputs" not in seen.json()),
    (Kind.NO_OUTPUTS, {"form": "blank_url"}, "fin", only("outputs", [{"url": ""}])),
    *[(Kind.DECLARE_WRONG, {"form": form}, "fin", declared(form)) for form in TRAITS[Kind.DECLARE_WRONG].forms],
]  # fmt: skip


def test_no_kind_of_the_look_is_missing_from_the_table() -> None:
    assert {case[0] for case in CASES} == set(kinds_for(Role.LOOK))


@pytest.mark.parametrize(
    ("kind", "parameters", "end", "holds"), CASES, ids=[f"{case[0]}-{json.dumps(case[1])}" for case in CASES]
)
def test_a_fault_strikes_one_look_to_the_byte_and_the_next_is_whole_again(
    sim: ThreadedService, kind: Kind, parameters: dict[str, Any], end: str, holds: Check
) -> None:
    job_id = finished_job(sim)
    normal = look(sim, job_id)
    sim.script([{"on": "look", "nth": 1, "kind": kind, **parameters}])
    seen = look(sim, job_id)
    assert seen.end == end
    assert holds(seen, normal)
    if "status" in parameters:
        assert seen.status == parameters["status"]
    assert look(sim, job_id) == normal
    assert sim.jobs()[0]["looks"] == 3


def test_a_regression_waits_until_the_final_state_was_told(sim: ThreadedService) -> None:
    sim.script([{"on": "look", "kind": "regression", "times": 1}])
    job_id = post(sim, {"sim": {"queued_s": 0.0, "processing_s": 0.15}}).json()["job_id"]
    told = [look(sim, job_id, wait=5).json()["status"] for _ in range(3)]
    assert told == ["succeeded", "queued", "succeeded"]


def test_the_first_looks_of_every_job_can_be_404(sim: ThreadedService) -> None:
    sim.script([{"on": "look", "kind": "status", "status": 404, "times": 2, "per": "job"}])
    jobs = [finished_job(sim) for _ in range(2)]
    assert [[look(sim, job).status for _ in range(3)] for job in jobs] == [[404, 404, 200]] * 2


def test_a_closed_window_is_held_to_its_end(sim: ThreadedService) -> None:
    sim.script([{"on": "look", "kind": "closed_window"}])
    job_id = post(sim, {"sim": {"queued_s": 0.01, "processing_s": 0.01}}).json()["job_id"]
    assert look(sim, job_id, wait=30, quiet_s=0.2).end == "silent"
    assert look(sim, job_id, wait=0.1).status == 204
