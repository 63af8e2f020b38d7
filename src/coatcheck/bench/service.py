"""The simulated service in a process of its own, so that what it costs is not counted as anybody else's."""

import json
import subprocess  # noqa: TID251 - for the word PIPE; the seams spawn
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from coatcheck.bench import tether
from coatcheck.bench.surroundings import inherited
from coatcheck.errors import Failed
from coatcheck.seams import Seams

_ANSWERS_WITHIN_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Where it listens, and the process that it is."""

    base_url: str
    pid: int

    def ledger(self) -> Mapping[str, Any]:
        """Every POST, the sums, and how the looks went."""
        return self._asked("GET", "/_sim/ledger")

    def looks(self) -> Mapping[str, Any]:
        """How the looks went, in all and in each tenth of a second: short, however many POSTs there were."""
        return self._asked("GET", "/_sim/looks")

    def follow(self, *rules: Mapping[str, object]) -> None:
        """Behave by these rules from now on, and by no others."""
        self._asked("POST", "/_sim/script", {"rules": rules, "replace": True})

    def _asked(self, method: str, path: str, data: object = None) -> Mapping[str, Any]:
        place = urlsplit(self.base_url)
        connection = HTTPConnection(place.hostname or "", place.port, timeout=_ANSWERS_WITHIN_S)
        try:
            connection.request(method, path, None if data is None else json.dumps(data))
            found: Mapping[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return found

    def posts(self) -> Sequence[Mapping[str, Any]]:
        """The POSTs in the order in which they came."""
        posts: Sequence[Mapping[str, Any]] = self.ledger()["posts"]
        return posts

    def check_posts(self, expected: int) -> None:
        """Raises `Failed` unless so many POSTs came, each for another specification."""
        totals = self.ledger()["totals"]
        if (totals["posts"], totals["created"], totals["most_posts_per_body"]) != (expected, expected, 1):
            raise Failed(f"expected {expected} POSTs that create, one for each specification, got {totals}")


@contextmanager
def serving(folder: Path, *, seams: Seams, **settings: object) -> Iterator[Service]:
    """The service for the length of a block; `settings` are those of its script. Raises `Failed` when it does not start."""
    script = folder / "service.json"
    script.write_text(json.dumps({"service": settings}))
    command = tether.command("coatcheck", "sim", "--port", "0", "--seed", "7", "--script", str(script))
    with tether.tied() as stdin:
        with (folder / "service.log").open("wb") as log:
            process = seams.spawn(
                command, env=inherited(), stdin=stdin, stdout=subprocess.PIPE, stderr=log, cwd=str(folder)
            )
        try:
            first = process.stdout.readline() if process.stdout is not None else b""
            if not first:
                raise Failed(
                    "expected the simulated service to start, got its end", next=f"read {folder / 'service.log'}"
                )
            yield Service(base_url=json.loads(first)["base_url"], pid=process.pid)
        finally:
            process.terminate()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
