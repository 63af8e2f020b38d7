"""What status and headers of an output's answer promise, judged before a byte of the body is read. Pure."""

from collections.abc import Mapping
from datetime import datetime

from coatcheck.core.retry_after import retry_after_s
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import OutputSource, Reason, Stopped

_OK = 200
_EXPIRED = frozenset({403, 404, 410})


def check_declared(output: OutputSource, limits: Limits) -> None:
    """Judge what the snapshot declares, before anything is sent. Raises `Stopped`."""
    if output.bytes is not None and output.bytes > limits.max_bytes:
        raise Stopped(Reason.TOO_LARGE, f"{output.bytes} bytes declared, at most {limits.max_bytes} allowed")


def check_status(status: int, headers: Mapping[str, str], now: datetime, limits: Limits) -> None:
    """Let only 200 pass. Raises `Stopped` with `expired`, or `status` and the clamped Retry-After in seconds."""
    if status == _OK:
        return
    if status in _EXPIRED:
        raise Stopped(Reason.EXPIRED, f"status {status}: the URL has expired or is not there yet")
    delay_s = retry_after_s(headers.get("Retry-After"), now=now, cap_s=limits.retry_after_max_s)
    raise Stopped(Reason.STATUS, f"status {status}", retry_after_s=delay_s)


def check_headers(headers: Mapping[str, str], output: OutputSource, limits: Limits) -> int | None:
    """The promised length in bytes, where there is one. Raises `Stopped` on an encoded, oversized or contradicting body."""
    encoding = headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"identity", ""}:
        raise Stopped(Reason.ENCODED, "identity was asked, the body comes encoded")
    text = headers.get("Content-Length", "").strip()
    if not (text.isascii() and text.isdigit()) or "Transfer-Encoding" in headers:
        return output.bytes
    length = int(text)
    if length > limits.max_bytes:
        raise Stopped(Reason.TOO_LARGE, f"{length} bytes announced, at most {limits.max_bytes} allowed")
    if output.bytes is not None and length != output.bytes:
        raise Stopped(Reason.LENGTH_MISMATCH, f"{output.bytes} bytes declared, {length} announced")
    return length
