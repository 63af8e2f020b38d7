"""A service that repeats a reference: what the POST carries, what is asked for, and that only the job's own word counts."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from coatcheck.core.events import Doubted
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.provider.port import (
    Ambiguous,
    Candidate,
    Denied,
    Echoed,
    FindPort,
    Found,
    Listing,
    Nonsense,
    Seen,
    Transient,
    Unechoed,
)
from provider.genaces import echo, genace

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DISPATCH = DispatchId(UUID(int=3))
REFERENCE = "00000000-0000-0000-0000-000000000003"
OURS = {"id": "job-1", "status": "queued", "created_at": "2026-01-02T00:00:00Z", "client_reference": REFERENCE}
FINDER: FindPort = echo()


def came(status: int, body: object = None, *, complete: bool = True, retry_after: str = "") -> Exchange:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(
        stage=Stage.BODY_RECEIVED,
        status=status,
        headers=(("Retry-After", retry_after),) if retry_after else (),
        body=data,
        complete=complete,
        framed=True,
        failure=None if complete else "closed",
    )


def listing(*jobs: object, **more: object) -> Exchange:
    return came(200, {"jobs": list(jobs), **more})


def found(exchange: Exchange) -> Found:
    return FINDER.found(exchange, dispatch_id=DISPATCH, now=NOW)


def test_the_post_differs_from_genaces_by_one_header() -> None:
    theirs, ours = (made.create(b"{}", dispatch_id=DISPATCH) for made in (genace(), echo()))
    assert (ours.method, ours.url, ours.body) == (theirs.method, theirs.url, theirs.body)
    assert ours.headers == (*theirs.headers, ("X-Client-Reference", REFERENCE))


def test_a_search_is_a_get_for_the_reference() -> None:
    request = FINDER.find(DISPATCH)
    assert (request.method, request.body) == ("GET", b"")
    assert request.url == f"https://api.example.com/api/v1/jobs?client_reference={REFERENCE}"


def test_a_list_is_asked_for_by_instants_in_utc_and_only_where_there_is_one() -> None:
    east = timezone(timedelta(hours=2))
    after, before = datetime(2026, 1, 2, 2, tzinfo=east), datetime(2026, 1, 2, 0, 1, 2, 3, tzinfo=UTC)
    assert genace().listed(after, before) is None
    for adapter in (genace(list_path="/jobs?kind=image"), echo()):
        request = adapter.listed(after, before)
        assert request is not None
        asked = parse_qs(urlsplit(request.url).query)
        asked.pop("kind", None)
        assert asked == {
            "created_after": ["2026-01-02T00:00:00.000000Z"],
            "created_before": ["2026-01-02T00:01:02.000003Z"],
        }


def test_doubt_says_that_it_can_be_looked_up_here_and_not_at_genace() -> None:
    for adapter, looked_up in ((genace(), False), (echo(), True)):
        reply = adapter.reply(came(500), dispatch_id=DISPATCH, now=NOW)
        assert reply == Doubted(dispatch_id=DISPATCH, cause="status_500", looked_up=looked_up)


def test_a_look_tells_when_the_job_came_to_exist_and_what_it_repeats() -> None:
    look = echo().seen(came(200, OURS), remote_job_id=RemoteJobId("job-1"), now=NOW)
    assert isinstance(look, Seen)
    assert (look.snapshot.created_at, look.snapshot.reference) == (NOW, REFERENCE)
    odd = {**OURS, "created_at": "yesterday", "client_reference": "a\nb"}
    look = echo().seen(came(200, odd), remote_job_id=RemoteJobId("job-1"), now=NOW)
    assert isinstance(look, Seen)
    assert (look.snapshot.created_at, look.snapshot.reference) == (None, None)


OTHER = {**OURS, "id": "job-2", "client_reference": "00000000-0000-0000-0000-000000000004"}
ONE = Candidate(remote_job_id=RemoteJobId("job-1"), remote_status="queued", created_at=NOW, reference=REFERENCE)


@pytest.mark.parametrize(
    ("exchange", "means"),
    [
        (listing(OURS), Echoed(candidate=ONE)),
        (listing(OTHER, OURS), Echoed(candidate=ONE)),
        (listing(OURS, OURS), Echoed(candidate=ONE)),
        (listing({"id": "job-1", "client_reference": REFERENCE}), Echoed(candidate=Candidate(remote_job_id=RemoteJobId("job-1"), reference=REFERENCE))),
        (listing(), Unechoed()),
        (listing(OTHER), Unechoed()),
        (listing({"id": "job-1", "status": "queued"}), Unechoed()),
        (listing({**OURS, "client_reference": REFERENCE.upper() + " "}), Unechoed()),
        (listing({**OURS, "client_reference": [REFERENCE]}), Unechoed()),
        (listing(OURS, {**OURS, "id": "job-9"}), Ambiguous(count=2)),
        (listing(OURS, OTHER, has_more=True), Nonsense(kind="malformed", detail="jobs")),
        (listing(OURS, *[OTHER] * 100), Nonsense(kind="malformed", detail="jobs")),
        (listing(OURS, {**OURS, "id": 7}), Nonsense(kind="malformed", detail="jobs")),
        (listing(OURS, "job-1"), Nonsense(kind="malformed", detail="jobs")),
        (came(200, [OURS]), Nonsense(kind="malformed", detail="jobs")),
        (came(200, OURS), Nonsense(kind="malformed", detail="jobs")),
        (came(200, {"jobs": {"0": OURS}}), Nonsense(kind="malformed", detail="jobs")),
        (came(200, b'{"jobs": [], "jobs": []}'), Nonsense(kind="malformed", detail="duplicate_key")),
        (came(200, b"<html>"), Transient(cause="not_json")),
        (came(200, b""), Transient(cause="empty")),
        (came(200, {"jobs": [OURS]}, complete=False), Transient(cause="closed")),
        (came(204, b""), Transient(cause="status_204")),
        (came(302, b""), Transient(cause="status_302")),
        (came(404, {}), Transient(cause="status_404")),
        (came(429, {}, retry_after="7"), Transient(cause="status_429", retry_after_s=7)),
        (came(503, {}), Transient(cause="status_503")),
        (came(401, {}), Denied(status=401)),
        (came(403, {}), Denied(status=403)),
        (Exchange(stage=Stage.CONNECTING, failure="refused"), Transient(cause="refused")),
    ],
)  # fmt: skip
def test_only_exactly_one_job_that_repeats_the_reference_is_found(exchange: Exchange, means: Found) -> None:
    assert found(exchange) == means


@pytest.mark.parametrize("status", [None, 7, "a\x00b", "x" * 300])
def test_a_list_keeps_what_is_usable_and_counts_what_is_not(status: Any) -> None:
    entries = ({"id": "job-1", "status": status, "created_at": 5}, {"id": ""}, None)
    only = Candidate(remote_job_id=RemoteJobId("job-1"))
    assert echo().candidates(listing(*entries), now=NOW) == Listing(candidates=(only,), unusable_count=2)


def test_a_long_list_is_cut_and_says_so() -> None:
    jobs = [{"id": f"job-{number}"} for number in range(101)]
    listed = genace(list_path="/jobs").candidates(listing(*jobs), now=NOW)
    assert isinstance(listed, Listing)
    assert (len(listed.candidates), listed.is_cut) == (100, True)
