"""Replies as values, and the exact bytes they become on the wire."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol


class Content(Protocol):
    """A body: its length (None: it never ends) and its pieces."""

    @property
    def length(self) -> int | None:
        """Bytes in all."""

    def __iter__(self) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Plain:
    """A body that is held whole."""

    data: bytes = field(repr=False)

    @property
    def length(self) -> int:
        """Bytes in all."""
        return len(self.data)

    def __iter__(self) -> Iterator[bytes]:
        if self.data:
            yield self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole HTTP reply. `Content-Length` is not among the headers: whoever renders it decides how the body is framed."""

    status: int
    content_type: str | None
    content: Content
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def bodiless(self) -> bool:
        """204 and 304 have no body and no length."""
        return self.status in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


def json_reply(status: int, data: object, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """A JSON reply in compact form."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Reply(status=status, content_type="application/json", content=Plain(text.encode()), headers=headers)


def error_reply(status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = (), **more: Any) -> Reply:
    """The service's error envelope."""
    return json_reply(status, {"error": {"code": code, "message": message, **more}}, headers)


def html_reply(status: int) -> Reply:
    """What a proxy in front of the service answers on its own."""
    text = f"<html>\r\n<head><title>{status} {reason(status)}</title></head>\r\n<body>\r\n<center>nginx</center>\r\n</body>\r\n</html>\r\n"
    return Reply(status=status, content_type="text/html", content=Plain(text.encode()))


def shaped_reply(status: int, form: str, code: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """An error as JSON, a proxy's HTML, plain text or nothing."""
    match form:
        case "html":
            made = html_reply(status)
            return Reply(status=status, content_type=made.content_type, content=made.content, headers=headers)
        case "text":
            return Reply(status=status, content_type="text/plain", content=Plain(message.encode()), headers=headers)
        case "empty":
            return Reply(status=status, content_type=None, content=Plain(b""), headers=headers)
        case _:
            return error_reply(status, code, message, headers)


def reason(status: int) -> str:
    """The usual phrase, or `Status` where there is none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Status"


def head_bytes(reply: Reply, extra: Iterable[tuple[str, str]], *, keep: bool, status_line: str | None = None) -> bytes:
    """Status line and headers, the empty line included."""
    lines = [status_line or f"HTTP/1.1 {reply.status} {reason(reply.status)}"]
    if reply.content_type:
        lines.append(f"Content-Type: {reply.content_type}")
    lines += [f"{name}: {value}" for name, value in (*reply.headers, *extra)]
    if not keep:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def framed(reply: Reply) -> tuple[tuple[str, str], ...]:
    """The length header of an ordinary reply."""
    return () if reply.bodiless or reply.content.length is None else (("Content-Length", str(reply.content.length)),)


def pieces(reply: Reply, *, keep: bool) -> Iterator[bytes]:
    """An ordinary reply, head first."""
    yield head_bytes(reply, framed(reply), keep=keep)
    if not reply.bodiless:
        yield from reply.content


def size(reply: Reply, *, keep: bool) -> int | None:
    """The bytes that `pieces` gives in all; None when it never ends."""
    if reply.content.length is None:
        return None
    return len(head_bytes(reply, framed(reply), keep=keep)) + (0 if reply.bodiless else reply.content.length)
