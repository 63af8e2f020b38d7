"""Every fault of the GET of a file. The table below must name every kind, or a test fails."""

import gzip
import hashlib
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from coatcheck.seams import Clock, Seams
from coatcheck.sim import Kind, Role, ThreadedService, simulated_service
from coatcheck.sim.catalogue import TRAITS, kinds_for
from sim_service.raw_client import Seen, connect, finished_job, get, listen, look, output_of, request_bytes

Check = Callable[[Seen, Seen], bool]


class MovedClock(Clock):
    """Stands still until a test moves it."""

    at = 1000.0

    def boottime(self) -> float:
        return self.at


def replaced(seen: Seen, normal: Seen) -> bool:
    return seen.body != normal.body and seen.header("content-type") == normal.header("content-type")


# kind, parameters, end, what must be true of the bytes
CASES: list[tuple[Kind, dict[str, Any], str, Check]] = [
    (Kind.DROP, {"end": "rst"}, "rst", lambda seen, _: seen.data == b""),
    (Kind.CUT, {"at": 1500}, "fin", lambda seen, normal: seen.data == normal.data[:1500]),
    (Kind.CUT, {"at": -1, "end": "rst"}, "rst", lambda seen, normal: seen.data == normal.data[:-1]),
    (Kind.STALL, {"seconds": 0.06}, "fin", lambda seen, normal: seen.data == normal.data),
    (Kind.SLOW, {"chunk_bytes": 500}, "fin", lambda seen, normal: seen.data == normal.data),
    (Kind.INFORMATIONAL, {"statuses": [102]}, "fin", lambda seen, normal: seen.data == b"HTTP/1.1 102 Processing\r\n\r\n" + normal.data),
    (Kind.CHUNKED, {"chunk_bytes": 10_000}, "fin", lambda seen, normal: normal.body in seen.body),
    (Kind.GZIP, {}, "fin", lambda seen, normal: gzip.decompress(seen.body) == normal.body),
    (Kind.NO_LENGTH, {}, "fin", lambda seen, normal: seen.body == normal.body and not seen.header("content-length")),
    (Kind.WRONG_LENGTH, {"delta": 9}, "fin", lambda seen, normal: seen.header("content-length") == str(len(normal.body) + 9)),
    (Kind.GARBAGE_STATUS_LINE, {}, "fin", lambda seen, _: seen.data.startswith(b"BANANA")),
    (Kind.HUGE_HEADERS, {}, "fin", lambda seen, normal: seen.body == normal.body and len(seen.head) > 1_048_576),
    (Kind.STATUS, {"status": 503}, "fin", lambda seen, _: seen.status == 503),
    (Kind.THROTTLED, {}, "fin", lambda seen, _: seen.status == 429),
    (Kind.REDIRECT, {"to": "http://169.254.169.254/latest"}, "fin", lambda seen, _: seen.header("location") == "http://169.254.169.254/latest"),
    *[(Kind.REPLACED, {"form": form}, "fin", replaced) for form in TRAITS[Kind.REPLACED].forms],
    (Kind.LARGE, {"size_bytes": 200_000}, "fin", lambda seen, _: len(seen.body) == 200_000),
]  # fmt: skip
TOLD_APART = {Kind.EXPIRED, Kind.ENDLESS}


def test_no_kind_of_the_file_is_missing_from_the_table() -> None:
    assert {case[0] for case in CASES} | TOLD_APART == set(kinds_for(Role.OUTPUT))


@pytest.mark.parametrize(
    ("kind", "parameters", "end", "holds"), CASES, ids=[f"{case[0]}-{json.dumps(case[1])}" for case in CASES]
)
def test_a_fault_strikes_one_download_to_the_byte_and_the_next_is_whole_again(
    sim: ThreadedService, kind: Kind, parameters: dict[str, Any], end: str, holds: Check
) -> None:
    url = output_of(sim, finished_job(sim))
    normal = get(sim, url)
    sim.script([{"on": "output", "nth": 1, "kind": kind, **parameters}])
    seen = get(sim, url)
    assert seen.end == end
    assert holds(seen, normal)
    assert get(sim, url) == normal
    assert sim.jobs()[0]["downloads"] == 3


@pytest.mark.parametrize("status", [403, 404, 410])
def test_an_expired_url_stays_expired_until_a_look_brings_a_fresh_one(sim: ThreadedService, status: int) -> None:
    job_id = finished_job(sim)
    old = output_of(sim, job_id)
    sim.script([{"on": "output", "nth": 1, "kind": "expired", "status": status}])
    assert [get(sim, old).status for _ in range(3)] == [status] * 3
    fresh = output_of(sim, job_id)
    assert fresh != old
    assert [get(sim, fresh).status, get(sim, old).status] == [200, status]


def test_an_expired_url_can_stay_expired_for_ever(sim: ThreadedService) -> None:
    job_id = finished_job(sim)
    sim.script([{"on": "output", "kind": "expired"}])
    assert [get(sim, output_of(sim, job_id)).status for _ in range(4)] == [403] * 4


def test_urls_expire_by_the_clock_where_they_have_a_life() -> None:
    clock = MovedClock()
    with simulated_service(seams=Seams(clock=clock)) as sim:
        sim.script({"service": {"url_life_s": 600}})
        job_id = finished_job(sim)
        old = output_of(sim, job_id)
        assert get(sim, old).status == 200
        clock.at += 600
        assert get(sim, old).status == 403
        assert get(sim, output_of(sim, job_id)).status == 200


def test_a_chain_of_redirects_leads_through_this_service_to_where_it_was_told(sim: ThreadedService) -> None:
    url = output_of(sim, finished_job(sim))
    sim.script([{"on": "output", "kind": "redirect", "hops": 3, "to": "http://127.0.0.2:1/secret"}])
    places = []
    while url.startswith(("/", sim.base_url)):
        url = str(get(sim, url).header("location"))
        places.append(url)
    assert [place.startswith("/outputs/") for place in places] == [True, True, False]
    assert places[-1] == "http://127.0.0.2:1/secret"


def test_a_file_can_be_endless(sim: ThreadedService) -> None:
    url = output_of(sim, finished_job(sim))
    sim.script([{"on": "output", "kind": "endless"}])
    seen = get(sim, url, limit=20_000_000)
    assert (len(seen.data) >= 20_000_000, seen.header("content-length")) == (True, None)


def test_200_mb_arrive_whole_with_bounded_memory_and_nobody_waits_for_them(sim: ThreadedService) -> None:
    job_id = finished_job(sim, outputs=[{"type": "video/mp4", "bytes": 200_000_000}])
    (declared,) = look(sim, job_id).json()["outputs"]
    digest, size, magic = hashlib.sha256(), 0, b""
    tracemalloc.start()
    with connect(sim.base_url) as connection:
        connection.sendall(request_bytes("GET", declared["url"].removeprefix(sim.base_url)))
        head, _, piece = listen(connection, limit=1).data.partition(b"\r\n\r\n")
        other = look(sim, job_id)
        while piece or (piece := connection.recv(262_144)):
            digest.update(piece)
            size, magic, piece = size + len(piece), (magic + piece)[:12], b""
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert b"Content-Length: 200000000" in head
    assert (magic[4:], other.status, size, digest.hexdigest()) == (b"ftypisom", 200, 200_000_000, declared["sha256"])
    assert peak_bytes < 8_000_000
