"""A reply under a fault, as steps on the wire: send these bytes, wait this long, end the connection like this.

Pure and lazy: every byte that a fault lets through can be read off here, and a file of hundreds of MB is never held.
"""

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from coatcheck.sim.checks import Number
from coatcheck.sim.faults import Fault
from coatcheck.sim.kinds import End, Kind
from coatcheck.sim.replies import Plain, Reply, framed, head_bytes, pieces, reason, size


@dataclass(frozen=True, slots=True)
class Send:
    """Hand these bytes to the kernel."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for so long; None: until the peer leaves."""

    seconds: Number | None


@dataclass(frozen=True, slots=True)
class HangUp:
    """End the connection."""

    end: End


Step = Send | Wait | HangUp


def steps(reply: Reply, fault: Fault | None, *, keep: bool) -> Iterator[Step]:
    """The steps of `reply` under `fault`; a connection that is not kept ends with FIN."""
    if fault is None:
        return _whole(pieces(reply, keep=keep), keep=keep)
    match fault.kind:
        case Kind.ACCEPT_THEN_DROP | Kind.DROP_BEFORE_ACCEPT | Kind.DROP_BEFORE_BODY | Kind.DROP:
            made: Iterator[Step] = iter((HangUp(fault.end),))
        case Kind.CUT:
            made = _cut(reply, fault, keep=keep)
        case Kind.SLOW:
            made = _slow(reply, fault, keep=keep)
        case Kind.STALL:
            made = chain((Wait(fault.seconds),), _whole(pieces(reply, keep=keep), keep=keep))
        case Kind.INFORMATIONAL:
            made = chain(map(_informational, fault.statuses), _whole(pieces(reply, keep=keep), keep=keep))
        case _:
            made = _reframed(reply, fault, keep=keep)
    return made


def _reframed(reply: Reply, fault: Fault, *, keep: bool) -> Iterator[Step]:
    """Faults that change head or framing; all other kinds have changed the reply itself already."""
    match fault.kind:
        case Kind.CHUNKED:
            data, keep = _chunked(reply, fault, keep=keep), keep and not fault.broken
        case Kind.GZIP:
            data = pieces(_gzipped(reply, fault), keep=keep)
        case Kind.NO_LENGTH | Kind.ENDLESS:
            data, keep = _bare(reply, ()), False
        case Kind.WRONG_LENGTH:
            declared = max(0, (reply.content.length or 0) + fault.delta)
            data, keep = _bare(reply, (("Content-Length", str(declared)),)), False
        case Kind.GARBAGE_STATUS_LINE:
            data, keep = _bare(reply, framed(reply), status_line=fault.text), False
        case Kind.HUGE_HEADERS:
            filler = ("X-Filler", "x" * fault.size_bytes)
            data = pieces(replace(reply, headers=(*reply.headers, filler)), keep=keep)
        case Kind.EARLY_REPLY:
            data, keep = pieces(reply, keep=False), False
        case _:
            data = pieces(reply, keep=keep)
    return _whole(data, keep=keep)


def status_shown(reply: Reply, fault: Fault | None) -> int | None:
    """The status that the peer can read off the first line if all bytes arrive; None where no such line is sent."""
    silent = {
        Kind.ACCEPT_THEN_DROP,
        Kind.DROP_BEFORE_ACCEPT,
        Kind.DROP_BEFORE_BODY,
        Kind.DROP,
        Kind.GARBAGE_STATUS_LINE,
    }
    return None if fault and fault.kind in silent else reply.status


def _informational(status: int) -> Step:
    return Send(f"HTTP/1.1 {status} {reason(status)}\r\n\r\n".encode())


def _whole(data: Iterable[bytes], *, keep: bool) -> Iterator[Step]:
    yield from map(Send, data)
    if not keep:
        yield HangUp(End.FIN)


def _cut(reply: Reply, fault: Fault, *, keep: bool) -> Iterator[Step]:
    left = fault.at
    if left < 0:
        left = max(0, (size(reply, keep=keep) or 0) + left)
    for piece in pieces(reply, keep=keep):
        if left <= 0:
            break
        yield Send(piece[:left])
        left -= len(piece)
    yield HangUp(fault.end)


def _slow(reply: Reply, fault: Fault, *, keep: bool) -> Iterator[Step]:
    for piece in pieces(reply, keep=keep):
        for start in range(0, len(piece), fault.chunk_bytes):
            yield Send(piece[start : start + fault.chunk_bytes])
            yield Wait(fault.interval_s)
    if not keep:
        yield HangUp(End.FIN)


def _chunked(reply: Reply, fault: Fault, *, keep: bool) -> Iterator[bytes]:
    yield head_bytes(reply, (("Transfer-Encoding", "chunked"),), keep=keep)
    for piece in reply.content:
        for start in range(0, len(piece), fault.chunk_bytes):
            part = piece[start : start + fault.chunk_bytes]
            yield f"{len(part):x}\r\n".encode() + part + b"\r\n"
    if not fault.broken:
        yield b"0\r\n\r\n"


def _gzipped(reply: Reply, fault: Fault) -> Reply:
    """Held whole: this fault is for replies and small files."""
    packed = bytearray(gzip.compress(b"".join(reply.content), mtime=0))
    if fault.broken:
        middle = len(packed) // 2
        packed[middle:] = bytes(byte ^ 0xFF for byte in packed[middle:])
    return replace(reply, content=Plain(bytes(packed)), headers=(*reply.headers, ("Content-Encoding", "gzip")))


def _bare(reply: Reply, extra: tuple[tuple[str, str], ...], status_line: str | None = None) -> Iterator[bytes]:
    """Head with just these framing headers, then the body."""
    yield head_bytes(reply, extra, keep=False, status_line=status_line)
    yield from reply.content
