"""A service may put our own key where an id or a word belongs. What it says is kept and shown, so none of it may hold the key.

An id that does is no id: asking for it again would need the key in a path. Words are masked.
"""

from dataclasses import replace
from typing import Final

from coatcheck.core.events import Accepted, Doubted, FailedWithId, Reply, Snapshot
from coatcheck.provider.port import Candidate, Listing

_MASK: Final = "[redacted]"
_SHORTEST: Final = 4
"""A shorter key cannot be told from text."""


def discreet_reply(reply: Reply, key: str) -> Reply:
    """A reply whose id holds the key is doubt, and a candidate that does is none."""
    match reply:
        case Accepted() | FailedWithId() if _holds(reply.remote_job_id, key):
            return Doubted(dispatch_id=reply.dispatch_id, cause="unusable_id")
        case Doubted(candidate=str() as candidate) if _holds(candidate, key):
            return replace(reply, candidate=None)
        case _:
            return reply


def discreet_snapshot(snapshot: Snapshot, key: str) -> Snapshot:
    """The same snapshot, its words without the key."""
    if not any(
        _holds(word, key) for word in (snapshot.remote_status, snapshot.error_code or "", snapshot.reference or "")
    ):
        return snapshot
    return replace(
        snapshot,
        remote_status=snapshot.remote_status.replace(key, _MASK),
        error_code=_masked(snapshot.error_code, key),
        reference=_masked(snapshot.reference, key),
    )


def discreet_listing(listing: Listing, key: str) -> Listing:
    """The same list without entries whose id holds the key; they count as unusable."""
    kept = tuple(_discreet(each, key) for each in listing.candidates if not _holds(each.remote_job_id, key))
    lost = len(listing.candidates) - len(kept)
    return replace(listing, candidates=kept, unusable_count=listing.unusable_count + lost)


def _discreet(candidate: Candidate, key: str) -> Candidate:
    return replace(
        candidate,
        remote_status=_masked(candidate.remote_status, key),
        reference=_masked(candidate.reference, key),
    )


def _holds(text: str, key: str) -> bool:
    return len(key) >= _SHORTEST and key in text


def _masked(text: str | None, key: str) -> str | None:
    return text if text is None or len(key) < _SHORTEST else text.replace(key, _MASK)
