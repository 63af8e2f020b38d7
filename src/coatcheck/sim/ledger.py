"""The POST ledger: every POST that arrived, whole or not, what it would have cost and what its sender got to see.

A record is written when the head arrives and grows with what really happened; what will happen next is never written ahead, except
that the ending of a connection is noted in the instant before it is carried out, so that whoever sees the end finds it here.
"""

import enum
import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from coatcheck.sim.checks import Number

TEXT_LIMIT_BYTES = 65_536


class Ending(enum.StrEnum):
    """How far a reply has come, and how its connection was left."""

    PENDING = "pending"
    KEPT = "kept"
    FIN = "fin"
    RST = "rst"
    PEER_LEFT = "peer_left"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostRecord:
    """One POST. `created` is the job's id, `billed` its price; `fault` what struck it; the reply as it went to the kernel, its last byte at `replied_at`."""

    order: int
    at: str
    path: str
    authorized: bool = False
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body_bytes: int = 0
    body_sha256: str = ""
    body_text: str | None = field(default=None, repr=False)
    complete: bool = False
    created: str | None = None
    billed: Number = 0
    fault: str | None = None
    reply_status: int | None = None
    reply_bytes: int = 0
    replied_at: str | None = None
    reply_end: Ending = Ending.PENDING

    def as_json(self) -> dict[str, Any]:
        """The record as `/_sim/ledger` shows it."""
        return {name: getattr(self, name) for name in self.__slots__}


class Ledger:
    """The POSTs in the order in which their heads arrived, numbered from 1."""

    def __init__(self) -> None:
        self._posts: list[PostRecord] = []

    @property
    def posts(self) -> tuple[PostRecord, ...]:
        """All records so far."""
        return tuple(self._posts)

    def arrived(self, *, at: str, path: str, authorized: bool, headers: dict[str, str]) -> int:
        """Write down a POST whose head is here; the answer is its order number."""
        order = len(self._posts) + 1
        self._posts.append(PostRecord(order=order, at=at, path=path, authorized=authorized, headers=headers))
        return order

    def body(self, order: int, data: bytes, *, complete: bool) -> str:
        """Write down what came of the body; the answer is its SHA-256 in lower-case hex."""
        digest = hashlib.sha256(data).hexdigest()
        text = data[:TEXT_LIMIT_BYTES].decode("utf-8", "replace")
        self._change(order, body_bytes=len(data), body_sha256=digest, body_text=text, complete=complete)
        return digest

    def created(self, order: int, job_id: str, billed: Number) -> None:
        """The POST created a job and would be billed."""
        self._change(order, created=job_id, billed=billed)

    def struck(self, order: int, fault: str) -> None:
        """A fault was chosen for this POST."""
        self._change(order, fault=fault)

    def answered(self, order: int, status: int | None) -> None:
        """The status line that the reply begins with, None where there is none."""
        self._change(order, reply_status=status)

    def progress(self, order: int, sent_bytes: int, ending: Ending, *, at: str | None = None) -> None:
        """The reply's bytes so far, `at` which instant, and how its connection stands."""
        known = self._posts[order - 1]
        replied_at = at if sent_bytes > known.reply_bytes else known.replied_at
        self._change(order, reply_bytes=sent_bytes, replied_at=replied_at, reply_end=ending)

    def totals(self, refunded: Number) -> dict[str, Any]:
        """Sums over all POSTs. `most_posts_per_body` above 1 means that somebody sent one specification twice."""
        bodies = Counter(post.body_sha256 for post in self._posts if post.complete)
        jobs = Counter(post.body_sha256 for post in self._posts if post.created)
        billed = sum(post.billed for post in self._posts)
        return {
            "posts": len(self._posts),
            "complete": sum(post.complete for post in self._posts),
            "created": sum(post.created is not None for post in self._posts),
            "billed": billed,
            "refunded": refunded,
            "net": billed - refunded,
            "most_posts_per_body": max(bodies.values(), default=0),
            "most_jobs_per_body": max(jobs.values(), default=0),
        }

    def _change(self, order: int, **changes: Any) -> None:
        self._posts[order - 1] = replace(self._posts[order - 1], **changes)
