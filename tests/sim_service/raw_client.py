"""A client that sees bytes and ends of connections and nothing else: no retries, no parsing that could hide a fault."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from coatcheck.sim import ThreadedService

KEY = "key-of-the-tests"
PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came over one connection, and how it ended: fin, rst, or silent when nothing more came in time."""

    data: bytes
    end: str

    @property
    def head(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def status(self) -> int:
        return int(self.data.split(b" ", 2)[1])

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        lines = (line.partition(":") for line in self.head.decode("latin-1").split("\r\n")[1:])
        return next((value.strip() for key, _, value in lines if key.lower() == name.lower()), None)


def connect(base_url: str) -> socket.socket:
    """A connected blocking socket."""
    parts = urlsplit(base_url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_S)


def request_bytes(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """One request that asks for the connection to be closed after the reply."""
    lines = {"Host": "sim", "Authorization": f"Bearer {KEY}", "Connection": "close", "Content-Length": str(len(body))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def listen(connection: socket.socket, *, limit: int | None = None, quiet_s: float = PATIENCE_S) -> Seen:
    """Everything until the end, until `limit` bytes, or until `quiet_s` seconds bring nothing."""
    connection.settimeout(quiet_s)
    data = bytearray()
    while limit is None or len(data) < limit:
        try:
            piece = connection.recv(65_536)
        except ConnectionResetError:
            return Seen(data=bytes(data), end="rst")
        except TimeoutError:
            return Seen(data=bytes(data), end="silent")
        if not piece:
            return Seen(data=bytes(data), end="fin")
        data += piece
    return Seen(data=bytes(data), end="limit")


def exchange(base_url: str, request: bytes, *, limit: int | None = None, quiet_s: float = PATIENCE_S) -> Seen:
    """One request on a connection of its own."""
    with connect(base_url) as connection:
        connection.sendall(request)
        return listen(connection, limit=limit, quiet_s=quiet_s)


def post(sim: ThreadedService, specification: Mapping[str, Any], **how: Any) -> Seen:
    """POST a specification."""
    body = json.dumps(specification, separators=(",", ":")).encode()
    return exchange(sim.base_url, request_bytes("POST", "/api/v1/jobs", body), **how)


def get(sim: ThreadedService, path_or_url: str, **how: Any) -> Seen:
    """GET a path, or a URL of this service."""
    return exchange(sim.base_url, request_bytes("GET", path_or_url.removeprefix(sim.base_url)), **how)


def look(sim: ThreadedService, job_id: str, wait: float = 0, **how: Any) -> Seen:
    """Look at a job."""
    return get(sim, f"/api/v1/jobs/{job_id}?wait={wait}", **how)


def finished_job(sim: ThreadedService, **course: Any) -> str:
    """A job that was over at once; the answer is its id."""
    made = post(sim, {"prompt": "a coat", "sim": {"queued_s": 0, "processing_s": 0, **course}})
    return str(made.json()["job_id"])


def output_of(sim: ThreadedService, job_id: str) -> str:
    """The URL of the job's first file as a look tells it now."""
    return str(look(sim, job_id).json()["outputs"][0]["url"])
