"""Nothing that a service says carries our own key into what is kept and shown."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from coatcheck.core.events import Accepted, Doubted
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.provider.port import Listing, Seen
from provider.genaces import genace

KEY = "secret-key"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
DISPATCH = DispatchId(UUID(int=7))
JOB = RemoteJobId("job-1")


def _whole(status: int, body: object) -> Exchange:
    raw = json.dumps(body).encode()
    return Exchange(
        stage=Stage.BODY_RECEIVED, bytes_sent=9, bytes_received=9, status=status, body=raw, complete=True, framed=True
    )


@pytest.mark.parametrize("body", [{"job_id": f"job-{KEY}"}, {"error": {"job_id": KEY}}])
@pytest.mark.parametrize("status", [201, 502])
def test_an_id_that_holds_the_key_is_no_id(body: object, status: int) -> None:
    reply = genace().reply(_whole(status, body), dispatch_id=DISPATCH, now=NOW)
    assert isinstance(reply, Doubted)
    assert KEY not in repr(reply)


def test_an_ordinary_id_stays_one() -> None:
    reply = genace().reply(_whole(201, {"job_id": "secret"}), dispatch_id=DISPATCH, now=NOW)
    assert isinstance(reply, Accepted)


def test_a_cut_reply_that_shows_the_key_names_no_candidate() -> None:
    cut = Exchange(
        stage=Stage.STATUS_RECEIVED, bytes_sent=9, bytes_received=9, status=201, body=b'{"job_id":"secret-key","s'
    )
    reply = genace().reply(cut, dispatch_id=DISPATCH, now=NOW)
    assert isinstance(reply, Doubted)
    assert reply.candidate is None


def test_the_words_of_a_look_are_masked() -> None:
    body = {"id": JOB, "status": f"ok {KEY}", "client_reference": KEY, "error": {"code": "x"}}
    look = genace().seen(_whole(200, body), remote_job_id=JOB, now=NOW)
    assert isinstance(look, Seen)
    assert look.snapshot.remote_status == "ok [redacted]"
    assert KEY not in repr(look)


def test_a_list_names_no_job_by_the_key() -> None:
    jobs = [{"id": KEY, "status": "queued"}, {"id": "job-2", "status": KEY, "client_reference": f"{KEY}!"}]
    found = genace(list_path="/l").candidates(_whole(200, {"jobs": jobs}), now=NOW)
    assert isinstance(found, Listing)
    assert [each.remote_job_id for each in found.candidates] == ["job-2"]
    assert found.unusable_count == 1
    assert KEY not in repr(found)


@pytest.mark.parametrize(
    ("told", "unreadable"),
    [
        ("2026-11-01T10:00:00", True),
        ("0001-01-01T00:00:00+23:59", True),
        (None, False),
        ("2026-11-01T10:00:00Z", False),
    ],
)
def test_an_instant_that_is_told_and_cannot_be_read_is_not_taken_for_silence(told: object, unreadable: bool) -> None:
    body = {"id": JOB, "status": "queued", "created_at": told}
    look = genace().seen(_whole(200, body), remote_job_id=JOB, now=NOW)
    assert isinstance(look, Seen)
    assert look.snapshot.is_creation_unreadable is unreadable
