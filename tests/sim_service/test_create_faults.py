"""Every fault of the POST, on the wire and in the ledger. The tables below must name every kind, or a test fails."""

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from coatcheck.sim import Kind, Role, ThreadedService, simulated_service
from coatcheck.sim.catalogue import TRAITS, kinds_for
from sim_service.raw_client import Seen, connect, exchange, listen, post, request_bytes
from waiting import until

SPECIFICATION = {"prompt": "a red coat", "seed": 3}
LONG_QUEUE = {"service": {"queued_s": 60}}
Check = Callable[[Seen, bytes], bool]


@pytest.fixture
def normal() -> bytes:
    """The reply to the specification when nothing strikes it: same seed, so the same bytes."""
    with simulated_service(seed=7) as sim:
        sim.script(LONG_QUEUE)
        return post(sim, SPECIFICATION).data


def body(data: bytes) -> bytes:
    return data.partition(b"\r\n\r\n")[2]


def same_head_but(seen: Seen, normal: bytes, *, length: int) -> bool:
    old = f"Content-Length: {len(body(normal))}".encode()
    return seen.data == normal.replace(old, f"Content-Length: {length}".encode())


def error_job_id(seen: Seen) -> bool:
    return str(seen.json()["error"]["job_id"]).startswith("job_")


def dechunked(data: bytes) -> bytes:
    parts, rest = bytearray(), data
    while rest and not rest.startswith(b"0\r\n"):
        size, _, rest = rest.partition(b"\r\n")
        parts += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return bytes(parts)


# kind, parameters, created, status in the ledger, end, what must be true of the bytes
CASES: list[tuple[Kind, dict[str, Any], bool, int | None, str, Check]] = [
    (Kind.ACCEPT_THEN_DROP, {}, True, None, "fin", lambda seen, _: seen.data == b""),
    (Kind.ACCEPT_THEN_DROP, {"end": "rst"}, True, None, "rst", lambda seen, _: seen.data == b""),
    (Kind.DROP_BEFORE_ACCEPT, {}, False, None, "fin", lambda seen, _: seen.data == b""),
    (Kind.DROP_BEFORE_ACCEPT, {"end": "rst"}, False, None, "rst", lambda seen, _: seen.data == b""),
    (Kind.DROP_BEFORE_BODY, {}, False, None, "rst", lambda seen, _: seen.data == b""),
    (Kind.DROP_BEFORE_BODY, {"end": "fin"}, False, None, "fin", lambda seen, _: seen.data == b""),
    (Kind.STALL_BEFORE_BODY, {"seconds": 0.05}, True, 201, "fin", lambda seen, normal: seen.data == normal),
    (Kind.EARLY_REPLY, {}, False, 413, "fin", lambda seen, _: seen.status == 413 and b"refused_early" in seen.body),
    (Kind.EARLY_REPLY, {"form": "html"}, False, 413, "fin", lambda seen, _: seen.body.startswith(b"<html>")),
    (Kind.CUT, {"at": 0}, True, 201, "fin", lambda seen, _: seen.data == b""),
    (Kind.CUT, {"at": 1, "end": "rst"}, True, 201, "rst", lambda seen, normal: seen.data == normal[:1]),
    (Kind.CUT, {"at": 40, "created": False}, False, 503, "fin", lambda seen, _: len(seen.data) == 40),
    (Kind.CUT, {"at": -1, "end": "rst"}, True, 201, "rst", lambda seen, normal: seen.data == normal[:-1]),
    (Kind.STALL, {"seconds": 0.1}, True, 201, "fin", lambda seen, normal: seen.data == normal),
    (Kind.STALL, {"seconds": 0.01, "created": False}, False, 503, "fin", lambda seen, _: seen.status == 503),
    (Kind.SLOW, {"interval_s": 0.0002}, True, 201, "fin", lambda seen, normal: seen.data == normal),
    (
        Kind.INFORMATIONAL,
        {"statuses": [100, 103]},
        True,
        201,
        "fin",
        lambda seen, normal: seen.data == b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + normal,
    ),
    (Kind.CHUNKED, {}, True, 201, "fin", lambda seen, normal: dechunked(seen.body) == body(normal) and seen.body[-5:] == b"0\r\n\r\n"),
    (Kind.CHUNKED, {"broken": True}, True, 201, "fin", lambda seen, normal: dechunked(seen.body) == body(normal) and seen.body[-5:] != b"0\r\n\r\n"),
    (Kind.GZIP, {}, True, 201, "fin", lambda seen, normal: gzip.decompress(seen.body) == body(normal)),
    (Kind.GZIP, {"broken": True}, True, 201, "fin", lambda seen, _: seen.body[:2] == b"\x1f\x8b" and not unpacks(seen.body)),
    (Kind.NO_LENGTH, {}, True, 201, "fin", lambda seen, normal: seen.body == body(normal) and not seen.header("content-length")),
    (Kind.WRONG_LENGTH, {"delta": 7}, True, 201, "fin", lambda seen, normal: same_head_but(seen, normal, length=len(body(normal)) + 7)),
    (Kind.GARBAGE_STATUS_LINE, {"text": "BANANA"}, True, None, "fin", lambda seen, normal: seen.data == b"BANANA" + normal[normal.index(b"\r\n") :]),
    (Kind.HUGE_HEADERS, {"size_bytes": 300_000}, True, 201, "fin", lambda seen, normal: len(seen.data) == len(normal) + 300_012),
    (Kind.STATUS, {}, False, 500, "fin", lambda seen, _: seen.json()["error"]["code"] == "simulated_500"),
    (Kind.STATUS, {"status": 504, "created": True, "form": "html"}, True, 504, "fin", lambda seen, _: seen.body.startswith(b"<html>")),
    (Kind.STATUS, {"status": 524, "form": "empty"}, False, 524, "fin", lambda seen, _: seen.body == b""),
    (Kind.STATUS, {"status": 422, "form": "text", "message": "not 500x500"}, False, 422, "fin", lambda seen, _: seen.body == b"not 500x500"),
    (Kind.ERROR_WITH_JOB_ID, {}, True, 502, "fin", lambda seen, _: error_job_id(seen)),
    (Kind.ERROR_WITH_JOB_ID, {"status": 409, "outcome": "succeeded"}, True, 409, "fin", lambda seen, _: error_job_id(seen)),
    (Kind.THROTTLED, {}, False, 429, "fin", lambda seen, _: seen.header("retry-after") == "1"),
    (Kind.THROTTLED, {"retry_after": "soon", "created": True}, True, 429, "fin", lambda seen, _: seen.header("retry-after") == "soon"),
    (Kind.THROTTLED, {"retry_after_date_s": 30}, False, 429, "fin", lambda seen, _: str(seen.header("retry-after")).endswith("GMT")),
    (Kind.REDIRECT, {}, False, 307, "fin", lambda seen, _: str(seen.header("location")).startswith("/api/v1/jobs?hop=1")),
    (Kind.REDIRECT, {"status": 303, "to": "http://127.0.0.2/x"}, False, 303, "fin", lambda seen, _: seen.header("location") == "http://127.0.0.2/x"),
    *[
        (Kind.MALFORMED, {"form": form}, True, 200, "fin", lambda seen, normal: seen.status == 200 and seen.body != body(normal))
        for form in TRAITS[Kind.MALFORMED].forms
    ],
]  # fmt: skip


def unpacks(data: bytes) -> bool:
    try:
        gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error):
        return False
    return True


def test_no_kind_of_the_post_is_missing_from_the_table() -> None:
    assert {case[0] for case in CASES} == set(kinds_for(Role.CREATE))


@pytest.mark.parametrize(
    ("kind", "parameters", "created", "status", "end", "holds"),
    CASES,
    ids=[f"{c[0]}-{json.dumps(c[1])}" for c in CASES],
)
def test_a_fault_does_to_the_byte_what_it_says_and_the_ledger_tells_it(
    sim: ThreadedService,
    normal: bytes,
    kind: Kind,
    parameters: dict[str, Any],
    created: bool,
    status: int | None,
    end: str,
    holds: Check,
) -> None:
    sim.script({**LONG_QUEUE, "rules": [{"on": "create", "nth": 1, "kind": kind, **parameters}]})
    seen = post(sim, SPECIFICATION)
    (record,) = sim.posts
    assert seen.end == end
    assert holds(seen, normal)
    assert (record.fault, record.reply_status, record.reply_bytes) == (kind, status, len(seen.data))
    assert record.reply_end == end
    assert record.complete is (kind not in {Kind.DROP_BEFORE_BODY, Kind.EARLY_REPLY})
    assert [job["id"] for job in sim.jobs()] == ([record.created] if created else [])
    assert (record.billed, sim.totals()["billed"]) == ((5, 5) if created else (0, 0))
    assert post(sim, SPECIFICATION).status == 201


@pytest.mark.parametrize("form", TRAITS[Kind.MALFORMED].forms)
def test_a_malformed_reply_carries_no_usable_id(sim: ThreadedService, form: str) -> None:
    sim.script([{"on": "create", "kind": "malformed", "form": form}])
    seen = post(sim, SPECIFICATION)
    try:
        found = json.loads(seen.body)
    except (ValueError, RecursionError):
        return
    name = found.get("job_id") if isinstance(found, dict) else None
    two_ids = seen.body.count(b'"job_id"') == 2
    usable = isinstance(name, str) and 1 <= len(name) <= 512 and name.isprintable() and not two_ids
    assert not usable


def test_a_stall_without_end_lasts_until_the_peer_leaves(sim: ThreadedService) -> None:
    sim.script([{"on": "create", "kind": "stall"}])
    seen = post(sim, SPECIFICATION, quiet_s=0.2)
    assert (seen.data, seen.end) == (b"", "silent")
    until(lambda: sim.posts[0].reply_end == "peer_left")
    assert (sim.posts[0].created is not None, sim.posts[0].reply_bytes) == (True, 0)


def test_a_stall_before_the_body_fills_the_senders_window(sim: ThreadedService) -> None:
    sim.script([{"on": "create", "kind": "stall_before_body"}])
    request = request_bytes("POST", "/api/v1/jobs", b"{" + b" " * 30_000_000 + b"}")
    with connect(sim.base_url) as connection:
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.sendall(request)
        assert (sim.posts[0].complete, sim.posts[0].fault) == (False, "stall_before_body")


def test_an_early_reply_reaches_a_client_that_is_still_sending(sim: ThreadedService) -> None:
    sim.script([{"on": "create", "kind": "early_reply"}])
    request = request_bytes("POST", "/api/v1/jobs", b"{" + b" " * 3_000_000 + b"}")
    assert exchange(sim.base_url, request).status == 413
    assert not sim.posts[0].complete


def test_a_client_that_follows_a_redirect_creates_what_the_ledger_then_shows(sim: ThreadedService) -> None:
    sim.script([{"on": "create", "kind": "redirect", "hops": 2}])
    seen = post(sim, SPECIFICATION)
    data = json.dumps(SPECIFICATION).encode()
    for _ in range(2):
        seen = exchange(sim.base_url, request_bytes("POST", str(seen.header("location")), data))
    assert seen.status == 201
    assert [record.reply_status for record in sim.posts] == [307, 307, 201]
    assert sim.totals()["created"] == 1


def test_an_error_with_a_job_id_names_a_job_that_fails_with_a_refund_or_even_succeeds(sim: ThreadedService) -> None:
    sim.script({"service": {"queued_s": 0, "processing_s": 0}})
    for wish, outcome in (
        ("error_with_job_id", "failed"),
        ({"kind": "error_with_job_id", "outcome": "succeeded"}, "succeeded"),
    ):
        job_id = post(sim, {"sim": {"create": wish}}).json()["error"]["job_id"]
        snapshot = exchange(sim.base_url, request_bytes("GET", f"/api/v1/jobs/{job_id}")).json()
        assert (snapshot["id"], snapshot["status"]) == (job_id, outcome)
        assert snapshot["credits"] == {"charged": 5, "refunded": 5 if outcome == "failed" else 0}


def test_a_post_that_breaks_off_is_in_the_ledger_as_far_as_it_came(sim: ThreadedService) -> None:
    whole = request_bytes("POST", "/api/v1/jobs", b'{"prompt":"x"}')
    for size in (20, len(whole) - 1):
        with connect(sim.base_url) as connection:
            connection.sendall(whole[:size])
    until(lambda: [record.reply_end for record in sim.posts] == ["peer_left"] * 2)
    assert {record.complete for record in sim.posts} == {False}
    assert {record.body_bytes for record in sim.posts} == {0, 13}
    assert sim.totals()["created"] == 0


def test_a_client_that_waits_for_100_continue_gets_it(sim: ThreadedService) -> None:
    data = json.dumps(SPECIFICATION).encode()
    request = request_bytes("POST", "/api/v1/jobs", data, Expect="100-continue")
    with connect(sim.base_url) as connection:
        connection.sendall(request[: -len(data)])
        assert listen(connection, limit=1).data.startswith(b"HTTP/1.1 100 Continue")
        connection.sendall(data)
        assert listen(connection).status == 201


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_a_reply_can_be_cut_at_every_one_of_its_bytes(sim: ThreadedService, normal: bytes, end: str) -> None:
    sim.script(LONG_QUEUE)
    for at in range(len(normal)):
        sim.script([{"on": "create", "kind": "cut", "at": at, "end": end}], replace=True)
        seen = post(sim, {"prompt": "a red coat", "at": at})
        assert (len(seen.data), seen.end) == (at, end)
    assert [record.reply_bytes for record in sim.posts] == list(range(len(normal)))
    assert sim.totals()["created"] == len(normal)
