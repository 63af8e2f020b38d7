"""Every way in which an output can fail to arrive is a value with its reason, and none leaves an object behind."""

import asyncio
import gzip
import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import NotStored, OutputSource, Reason, Stored
from coatcheck.delivery.sink import Place
from coatcheck.seams import Connect, Seams
from delivery.origin import (
    PNG,
    Answer,
    chunked,
    deliver,
    redirecting,
    response,
    run_against,
    sending,
    serving,
    silent,
)

PNG_SHA256 = hashlib.sha256(PNG).hexdigest()


async def mute(_path: str, _writer: asyncio.StreamWriter) -> None:
    """Accept and say nothing."""
    await asyncio.Event().wait()


async def dripping(_path: str, writer: asyncio.StreamWriter) -> None:
    """One byte at a time, so that no silence is ever long."""
    writer.write(response(PNG, headers=[])[:200])
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.wait([asyncio.ensure_future(writer.wait_closed())], timeout=0.02)


async def endless(_path: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + PNG)
    while not writer.is_closing():
        writer.write(b"x" * 65536)
        await writer.drain()


async def endless_chunks(_path: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    reason: Reason
    answer: Answer
    declared: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prepare: Callable[[Path, OutputSource], None] | None = None


def status(line: str, *headers: str) -> Answer:
    return sending(response(b"no", status=line, headers=headers))


def tenant_is_a_file(root: Path, output: OutputSource) -> None:
    root.mkdir()
    (root / place(output).tenant_folder).write_bytes(b"in the way")


def other_bytes_have_the_name(root: Path, output: OutputSource) -> None:
    folder = root / place(output).tenant_folder / output.operation_id
    folder.mkdir(parents=True)
    (folder / place(output).file_name(PNG_SHA256, "png")).write_bytes(b"other")


def place(output: OutputSource) -> Place:
    return Place(operation_id=output.operation_id, tenant_id=output.tenant_id, index=output.index)


HASTY = Limits(idle_s=0.1)
SMALL = Limits(max_bytes=100_000)
CASES: dict[str, Case] = {
    "403": Case(reason=Reason.EXPIRED, answer=status("403 Forbidden")),
    "404": Case(reason=Reason.EXPIRED, answer=status("404 Not Found")),
    "410": Case(reason=Reason.EXPIRED, answer=status("410 Gone")),
    "400": Case(reason=Reason.STATUS, answer=status("400 Bad Request")),
    "429": Case(reason=Reason.STATUS, answer=status("429 Too Many Requests", "Retry-After: 7")),
    "500": Case(reason=Reason.STATUS, answer=status("500 Internal Server Error")),
    "503": Case(reason=Reason.STATUS, answer=status("503 Service Unavailable", "Retry-After: 99999999")),
    "201": Case(reason=Reason.STATUS, answer=status("201 Created")),
    "206 that nobody asked for": Case(reason=Reason.STATUS, answer=status("206 Partial Content")),
    "302 to nowhere": Case(reason=Reason.STATUS, answer=status("302 Found")),
    "302 to the metadata service": Case(
        reason=Reason.BLOCKED_ADDRESS, answer=redirecting("http://169.254.169.254/latest")
    ),
    "302 to itself": Case(reason=Reason.TOO_MANY_REDIRECTS, answer=redirecting("?again=SECRET")),
    "no answer but an end": Case(reason=Reason.UNREACHABLE, answer=sending(b"")),
    "no answer but a reset": Case(reason=Reason.UNREACHABLE, answer=sending(b"", reset=True)),
    "not HTTP": Case(reason=Reason.UNREACHABLE, answer=sending(b"SSH-2.0-OpenSSH\r\n\r\n")),
    "endless headers": Case(
        reason=Reason.UNREACHABLE, answer=sending(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")
    ),
    "two lengths": Case(reason=Reason.UNREACHABLE, answer=sending(response(headers=["Content-Length: 5"]))),
    "length and chunks": Case(
        reason=Reason.UNREACHABLE, answer=sending(response(headers=["Transfer-Encoding: chunked"]))
    ),
    "a length that is no number": Case(
        reason=Reason.UNREACHABLE, answer=sending(response(headers=["Content-Length: -5"], length=False))
    ),
    "silence before the answer": Case(reason=Reason.TIMED_OUT, answer=mute, limits=HASTY),
    "silence in the body": Case(reason=Reason.TIMED_OUT, answer=silent, limits=HASTY),
    "a byte at a time": Case(reason=Reason.TIMED_OUT, answer=dripping, limits=Limits(total_s=0.4)),
    "cut": Case(reason=Reason.CUT_SHORT, answer=sending(response()[:-1])),
    "cut by a reset": Case(reason=Reason.CUT_SHORT, answer=sending(response()[:-1], reset=True)),
    "chunks without an end": Case(reason=Reason.CUT_SHORT, answer=sending(chunked(PNG)[:-5])),
    "a first chunk that is no number": Case(
        reason=Reason.UNREACHABLE, answer=sending(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
    ),
    "longer than declared": Case(
        reason=Reason.LENGTH_MISMATCH, answer=sending(response()), declared={"bytes": len(PNG) - 1}
    ),
    "shorter than declared, in chunks": Case(
        reason=Reason.LENGTH_MISMATCH, answer=sending(chunked(PNG)), declared={"bytes": len(PNG) + 1}
    ),
    "longer than declared, in chunks": Case(
        reason=Reason.LENGTH_MISMATCH, answer=sending(chunked(PNG)), declared={"bytes": len(PNG) - 1}
    ),
    "cut without a length": Case(
        reason=Reason.LENGTH_MISMATCH,
        answer=sending(response(PNG[:-9], length=False)),
        declared={"bytes": len(PNG)},
    ),
    "another checksum": Case(
        reason=Reason.CHECKSUM_MISMATCH, answer=sending(response()), declared={"sha256": "0" * 64}
    ),
    "a checksum that is none": Case(
        reason=Reason.CHECKSUM_MISMATCH, answer=sending(response()), declared={"sha256": "md5:1"}
    ),
    "a page": Case(reason=Reason.UNEXPECTED_TYPE, answer=sending(response(b"<html>Sorry</html>"))),
    "a drawing": Case(reason=Reason.UNEXPECTED_TYPE, answer=sending(response(b"<svg onload='x'/>"))),
    "a page that nobody declared": Case(
        reason=Reason.UNEXPECTED_TYPE, answer=sending(response(b"<html>")), declared={"content_type": None}
    ),
    "an error message": Case(reason=Reason.UNEXPECTED_TYPE, answer=sending(response(b'{"error": "no"}'))),
    "nothing": Case(reason=Reason.UNEXPECTED_TYPE, answer=sending(response(b""))),
    "10 GB declared": Case(reason=Reason.TOO_LARGE, answer=mute, declared={"bytes": 10 * 1024**3}),
    "10 GB announced": Case(
        reason=Reason.TOO_LARGE, answer=sending(response(headers=["Content-Length: 10737418240"], length=False))
    ),
    "endless": Case(reason=Reason.TOO_LARGE, answer=endless, limits=SMALL),
    "endless chunks": Case(reason=Reason.TOO_LARGE, answer=endless_chunks, limits=SMALL),
    "gzip": Case(
        reason=Reason.ENCODED, answer=sending(response(gzip.compress(PNG), headers=["Content-Encoding: gzip"]))
    ),
    "a gzip bomb": Case(
        reason=Reason.ENCODED,
        answer=sending(response(gzip.compress(bytes(50_000_000)), headers=["Content-Encoding: gzip"])),
        limits=SMALL,
    ),
    "nested encodings": Case(
        reason=Reason.ENCODED, answer=sending(response(headers=["Content-Encoding: br, gzip, gzip"]))
    ),
    "deflate": Case(reason=Reason.ENCODED, answer=sending(response(headers=["Content-Encoding: deflate"]))),
    "a file in the way": Case(reason=Reason.SINK_FAILED, answer=sending(response()), prepare=tenant_is_a_file),
    "other bytes have the name": Case(
        reason=Reason.SINK_CONFLICT, answer=sending(response()), prepare=other_bytes_have_the_name
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_failure_is_a_value_and_leaves_nothing(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    case, root = CASES[name], tmp_path / "sink"
    caplog.set_level(logging.DEBUG)

    async def story() -> NotStored | Stored:
        async with serving(case.answer) as origin:
            output = origin.output(**case.declared)
            if case.prepare is not None:
                case.prepare(root, output)
            before = files(tmp_path)
            result = await deliver(output, root, origin.policy, limits=case.limits)
            assert files(tmp_path) == before
            return result

    result = asyncio.run(story())
    assert isinstance(result, NotStored)
    assert result.reason == case.reason
    assert result.detail
    assert "SECRET" not in f"{result!r}{caplog.text}"


def test_every_reason_has_a_case() -> None:
    """`sink_full` is shown in the tests of the sink and below."""
    assert {case.reason for case in CASES.values()} | {Reason.SINK_FULL} == set(Reason)


def test_only_failures_that_time_cannot_mend_wait_for_a_person() -> None:
    final = {reason for reason in Reason if not reason.retryable}
    assert final == {
        Reason.TOO_LARGE,
        Reason.ENCODED,
        Reason.BLOCKED_ADDRESS,
        Reason.TOO_MANY_REDIRECTS,
        Reason.SINK_CONFLICT,
    }


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_port_where_nobody_listens_is_unreachable(tmp_path: Path) -> None:
    async def story() -> NotStored | Stored:
        async with serving(mute) as origin:
            pass
        return await deliver(origin.output(), tmp_path, origin.policy)

    result = asyncio.run(story())
    assert isinstance(result, NotStored)
    assert result.reason == Reason.UNREACHABLE


@pytest.mark.parametrize(
    ("resolve", "reason"),
    [
        (lambda: asyncio.Event().wait(), Reason.TIMED_OUT),
        (lambda: _raise(OSError("SECRET")), Reason.UNREACHABLE),
        (lambda: _value([]), Reason.UNREACHABLE),
    ],
)
def test_a_name_that_does_not_resolve_is_a_value(
    resolve: Callable[[], Awaitable[Any]], reason: Reason, tmp_path: Path
) -> None:
    class Names(Connect):
        async def resolve(self, host: str, port: int) -> Any:
            return await resolve()

    async def story() -> NotStored | Stored:
        async with serving(mute) as origin:
            limits = Limits(connect_s=0.1)
            seams = Seams(connect=Names())
            return await deliver(origin.output(), tmp_path, origin.policy, limits=limits, seams=seams)

    result = asyncio.run(story())
    assert isinstance(result, NotStored)
    assert result.reason == reason
    assert "SECRET" not in result.detail


async def _raise(error: Exception) -> None:
    raise error


async def _value(value: object) -> object:
    return value


@pytest.mark.parametrize(("name", "seconds"), [("429", 7.0), ("503", 3600.0), ("500", None), ("403", None)])
def test_a_wish_to_wait_is_handed_on(name: str, seconds: float | None, tmp_path: Path) -> None:
    result = run_against(CASES[name].answer, tmp_path)
    assert isinstance(result, NotStored)
    assert result.retry_after_s == seconds
