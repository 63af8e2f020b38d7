"""The style `echo`: jobs repeat what their POST asked to be repeated, and an account finds its own jobs, by reference or by time."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from coatcheck.errors import Refused
from coatcheck.sim import Script, ServiceSettings, ThreadedService, simulated_service
from sim_service.raw_client import KEY, Seen, exchange, get, look, post, request_bytes

PATH = "/api/v1/jobs"


@pytest.fixture
def echo() -> Iterator[ThreadedService]:
    with simulated_service(seed=7, settings=ServiceSettings(style="echo")) as service:
        yield service


def created(sim: ThreadedService, reference: str | None = None, key: str = KEY) -> str:
    headers = {} if reference is None else {"X-Client-Reference": reference}
    body = b'{"sim":{"outcome":"stuck"}}'
    made = exchange(sim.base_url, request_bytes("POST", PATH, body, Authorization=f"Bearer {key}", **headers))
    return str(made.json()["job_id"])


def listed(sim: ThreadedService, key: str = KEY, **asked: str) -> Seen:
    path = f"{PATH}?{urlencode(asked)}" if asked else PATH
    return exchange(sim.base_url, request_bytes("GET", path, Authorization=f"Bearer {key}"))


def ids(seen: Seen) -> list[str]:
    return [job["id"] for job in seen.json()["jobs"]]


def test_a_job_repeats_the_reference_of_its_post_and_is_found_by_it(echo: ThreadedService) -> None:
    mine, other, none = created(echo, "ref-1"), created(echo, "ref-2"), created(echo)
    assert [look(echo, job).json().get("client_reference") for job in (mine, other, none)] == ["ref-1", "ref-2", None]
    (found,) = listed(echo, client_reference="ref-1").json()["jobs"]
    assert found == {name: look(echo, mine).json()[name] for name in ("id", "status", "created_at", "client_reference")}
    assert ids(listed(echo, client_reference="ref-3")) == []
    assert [post.headers.get("x-client-reference") for post in echo.posts] == ["ref-1", "ref-2", None]


def test_a_list_names_the_newest_first_and_only_those_of_the_account_that_asks(echo: ThreadedService) -> None:
    jobs = [created(echo, f"ref-{number}") for number in range(3)]
    foreign = created(echo, "ref-0", key="another-key")
    assert ids(listed(echo)) == jobs[::-1]
    assert ids(listed(echo, key="another-key", client_reference="ref-0")) == [foreign]
    assert look(echo, foreign).status == 404
    assert exchange(echo.base_url, request_bytes("GET", PATH, Authorization="")).status == 401


def test_a_list_keeps_to_its_window_and_refuses_instants_without_an_offset(echo: ThreadedService) -> None:
    job = created(echo)
    at = datetime.fromisoformat(look(echo, job).json()["created_at"])
    second = timedelta(seconds=1)
    assert ids(listed(echo, created_after=at.isoformat(), created_before=at.isoformat())) == [job]
    assert ids(listed(echo, created_after=(at + second).isoformat())) == []
    assert ids(listed(echo, created_before=(at - second).isoformat())) == []
    assert {listed(echo, created_after=wrong).status for wrong in ("2026-01-01T00:00:00", "soon", "")} == {422}


def test_a_long_list_is_cut_and_says_so(echo: ThreadedService) -> None:
    jobs = [created(echo) for _ in range(101)]
    seen = listed(echo)
    assert (ids(seen), seen.json()["has_more"]) == (jobs[:0:-1], True)


def test_lists_can_be_struck_and_are_counted(echo: ThreadedService) -> None:
    mine, other = created(echo, "ref-1"), created(echo, "ref-2")
    echo.script([{"on": "list", "nth": number, **rule} for number, rule in enumerate(STRIKES, 1)])
    assert listed(echo, client_reference="ref-1").status == 503
    assert listed(echo, client_reference="ref-1").json()["jobs"][0]["client_reference"] == "ref-9"
    assert ids(listed(echo, client_reference="ref-1")) == [other, mine]
    assert get(echo, "/_sim/ledger").json()["lists"] == {"count": 3}


STRIKES: Sequence[dict[str, Any]] = (
    {"kind": "status", "status": 503},
    {"kind": "wrong_reference", "other_reference": "ref-9"},
    {"kind": "unfiltered"},
)


@pytest.mark.parametrize("matcher", [{"prompt": "red"}, {"job": "job_x"}, {"per": "job"}])
def test_a_rule_about_a_list_names_no_job(matcher: dict[str, str]) -> None:
    with pytest.raises(Refused, match="a list is about no single job"):
        Script.parse([{"on": "list", "kind": "drop", **matcher}])


def test_the_usual_style_repeats_nothing_and_has_no_list(sim: ThreadedService) -> None:
    assert "client_reference" not in look(sim, created(sim, "ref-1")).json()
    assert listed(sim, client_reference="ref-1").status == 404
    post(sim, {})
    assert sim.jobs()[0]["reference"] is None


@pytest.mark.parametrize("odd", ["x" * 201, "r\xe9f"])
def test_a_reference_that_cannot_be_repeated_is_left_out(echo: ThreadedService, odd: str) -> None:
    headers = f"POST {PATH} HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer {KEY}\r\nX-Client-Reference: {odd}\r\n"
    exchange(echo.base_url, f"{headers}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode("latin-1"))
    assert [job["reference"] for job in echo.jobs()] == [None]
