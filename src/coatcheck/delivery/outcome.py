"""What a delivery is asked, and the values that it answers with: every failure is a value with a reason.

The reason tells the handler its next move: `expired` asks for a fresh URL, a retryable one backs off, the rest waits for a person.
"""

import enum
from dataclasses import dataclass, field


class Reason(enum.StrEnum):
    """Why an output is not stored."""

    EXPIRED = "expired"
    """403, 404 or 410: the URL is no longer good, or not good yet. Look again for a fresh one."""
    STATUS = "status"
    """Any other status that carries no output: 4xx, 429 and 5xx with their Retry-After, 204, 206, 304."""
    UNREACHABLE = "unreachable"
    """No usable answer: name unknown, refused, reset, TLS failed, not HTTP."""
    TIMED_OUT = "timed_out"
    """A limit in seconds passed: for connecting, for silence, or for the whole delivery."""
    CUT_SHORT = "cut_short"
    """The connection ended inside the body."""
    LENGTH_MISMATCH = "length_mismatch"
    """The length declared by the snapshot is not the length of the body."""
    CHECKSUM_MISMATCH = "checksum_mismatch"
    """The SHA-256 declared by the snapshot is not that of the body."""
    UNEXPECTED_TYPE = "unexpected_type"
    """Markup, script or plain text where media was declared, another kind of media, or nothing at all."""
    TOO_LARGE = "too_large"
    """The body passes, or says that it will pass, the cap in bytes."""
    ENCODED = "encoded"
    """The body came compressed although identity was asked; it is refused unread, so no bomb can unfold."""
    BLOCKED_ADDRESS = "blocked_address"
    """The host policy refuses the URL, a redirect of it, or an address behind its name."""
    TOO_MANY_REDIRECTS = "too_many_redirects"
    """More hops than the limit."""
    SINK_FULL = "sink_full"
    """No space, or a quota or file size limit was met."""
    SINK_FAILED = "sink_failed"
    """The sink could not write, publish or read back."""
    SINK_CONFLICT = "sink_conflict"
    """An object of this content-addressed name exists with other bytes. It is never overwritten."""

    @property
    def retryable(self) -> bool:
        """Whether the same request may go well later without anyone's doing."""
        return self not in _WAITS_FOR_A_PERSON


_WAITS_FOR_A_PERSON = frozenset(
    {Reason.TOO_LARGE, Reason.ENCODED, Reason.BLOCKED_ADDRESS, Reason.TOO_MANY_REDIRECTS, Reason.SINK_CONFLICT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSource:
    """One output of one operation, as the last good snapshot describes it. The URL may be signed, so no repr shows it."""

    operation_id: str
    tenant_id: str = field(repr=False)
    index: int
    url: str = field(repr=False)
    content_type: str | None
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The output lies in the sink, complete, verified and durable."""

    uri: str
    sha256: str
    bytes: int
    declared_type: str | None
    sniffed_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStored:
    """No final object came of this try. `detail` is for people and carries no query string, user or credential."""

    reason: Reason
    detail: str
    retry_after_s: float | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same request may go well later without anyone's doing."""
        return self.reason.retryable


class Stopped(Exception):
    """Carries a `NotStored` up to `Deliverer.deliver`, which answers with it; it never leaves this room. Sinks raise it, too."""

    def __init__(self, reason: Reason, detail: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.outcome = NotStored(reason=reason, detail=detail, retry_after_s=retry_after_s)
