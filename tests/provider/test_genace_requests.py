"""What the Genace adapter asks: the immutable text as it is, a look with its wait window, and never a key in sight."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import pytest

from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.provider.port import Adapter
from provider.genaces import genace

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DISPATCH = DispatchId(UUID(int=3))
ID = RemoteJobId("job-1")
SHA = "ab" * 32
URL = "https://cdn.example.com/o/1.png?sig=x"
ADAPTER: Adapter = genace()


def test_the_post_carries_the_hashed_text_byte_for_byte_and_nothing_of_ours() -> None:
    text = '{"prompt":"a röd bird","seed":1}'.encode()
    request = ADAPTER.create(text, dispatch_id=DISPATCH)
    assert request.method == "POST"
    assert request.url == "https://api.example.com/api/v1/jobs"
    assert request.body == text
    assert dict(request.headers) == {
        "Authorization": "Bearer secret-key",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "coatcheck/0.1.0",
    }
    assert ADAPTER.create(text, dispatch_id=DispatchId(UUID(int=4))) == request


def test_a_look_is_a_get_with_the_wait_window() -> None:
    request = ADAPTER.look(ID, 30.0)
    assert (request.method, request.body) == ("GET", b"")
    assert request.url == "https://api.example.com/api/v1/jobs/job-1?wait=30"
    assert ("Authorization", "Bearer secret-key") in request.headers


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({"wait_param": ""}, "https://api.example.com/api/v1/jobs/job-1"),
        ({"wait_param": "timeout_s"}, "https://api.example.com/api/v1/jobs/job-1?timeout_s=2.5"),
        ({"job_path": "/jobs?job={id}"}, "https://api.example.com/jobs?job=job-1&wait=2.5"),
        ({"job_path": "/jobs/{id}/wait"}, "https://api.example.com/jobs/job-1/wait?wait=2.5"),
        ({"base_url": "http://127.0.0.1:8/v1/"}, "http://127.0.0.1:8/v1/api/v1/jobs/job-1?wait=2.5"),
    ],
)
def test_paths_and_wait_parameter_are_settings(changes: dict[str, Any], url: str) -> None:
    assert genace(**changes).look(ID, 2.5).url == url


@pytest.mark.parametrize(
    "hostile", ["a/b", "..", ".", "...", "../../admin", "a?b=c", "a#b", "a%2Fb", "a b", "ünï/😀", "{id}", "a;b", "a\\b"]
)
def test_any_id_stays_one_segment_of_the_path(hostile: str) -> None:
    parts = urlsplit(ADAPTER.look(RemoteJobId(hostile), 1).url)
    segments = parts.path.split("/")
    assert segments[:4] == ["", "api", "v1", "jobs"]
    assert len(segments) == 5
    assert segments[4] not in {".", "..", ""}
    assert unquote(segments[4]) == hostile
    assert (parts.query, parts.fragment) == ("wait=1", "")


def test_the_key_is_never_shown() -> None:
    assert "secret-key" not in repr(ADAPTER)
    assert "secret-key" not in repr(ADAPTER.create(b"{}", dispatch_id=DISPATCH))
    assert "secret-key" not in repr(ADAPTER.look(ID, 1))
