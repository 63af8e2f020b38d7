"""For every named point: what is durable when a process was killed there, and where the operation ends once a healthy worker was at it.

The sentences of docs and reliability analysis, as one table. A point that is missing here fails a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coatcheck.seams import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """`left`: phase, render state and delivery state right after the kill, None where nothing is stored at all. `posts`: how many POSTs
    the service may have got by the end. `delivered`: whether the operation ends delivered; it ends uncertain otherwise."""

    left: tuple[str, str, str] | None
    posts: frozenset[int] = frozenset({1})
    delivered: bool = True


PREPARED = Fate(left=("prepared", "none", "not_started"))
UNSENT = Fate(left=("dispatching", "none", "not_started"), posts=frozenset({0}), delivered=False)
PERHAPS = Fate(left=("dispatching", "none", "not_started"), posts=frozenset({0, 1}), delivered=False)
UNHEARD = Fate(left=("dispatching", "none", "not_started"), delivered=False)
ACCEPTED = Fate(left=("accepted", "none", "not_started"))
RENDERED = Fate(left=("accepted", "succeeded", "pending"))
DELIVERED = Fate(left=("accepted", "succeeded", "delivered"))

FATES: Mapping[Point, Fate] = {
    # the application's own transaction
    Point.E1_BEFORE_BEGIN: Fate(left=None),
    Point.E2_OPERATION_INSERTED: Fate(left=None),
    Point.E3_OUTBOX_INSERTED: Fate(left=None),
    Point.E4_COMMIT_SENT: PREPARED,
    Point.E5_COMMITTED_BEFORE_REPLY: PREPARED,
    # before the mark a dispatch may be repeated; after it nobody may
    Point.D1_RECEIVED: PREPARED,
    Point.D2_LOADED: PREPARED,
    Point.D3_CHECKED: PREPARED,
    Point.D4_MARK_COMMIT_SENT: PREPARED,
    Point.D5_MARK_DURABLE: UNSENT,
    Point.D6_CONNECTING: UNSENT,
    Point.D7_REQUEST_BYTES: PERHAPS,
    Point.D8_REQUEST_COMPLETE: PERHAPS,
    Point.D9_RESPONSE_BYTES: UNHEARD,
    Point.D10_RESPONSE_COMPLETE: UNHEARD,
    Point.D11_PARSED: UNHEARD,
    Point.D12_SAVE_COMMIT_SENT: UNHEARD,
    Point.D13_SAVED: ACCEPTED,
    Point.D14_ACKNOWLEDGED: ACCEPTED,
    # looks are free
    Point.O1_RECEIVED: ACCEPTED,
    Point.O2_LOADED: ACCEPTED,
    Point.O3_GET_SENT: ACCEPTED,
    Point.O4_RESPONSE_BYTES: ACCEPTED,
    Point.O5_VALIDATED: ACCEPTED,
    Point.O6_SAVE_COMMIT_SENT: ACCEPTED,
    Point.O7_SAVED: RENDERED,
    Point.O8_ACKNOWLEDGED: RENDERED,
    # and so are deliveries
    Point.V1_RECEIVED: RENDERED,
    Point.V2_LOADED: RENDERED,
    Point.V3_RESOLVED: RENDERED,
    Point.V4_CONNECTED: RENDERED,
    Point.V5_BODY_BYTES: RENDERED,
    Point.V6_TEMPORARY_COMPLETE: RENDERED,
    Point.V7_VERIFIED: RENDERED,
    Point.V8_PUBLISHED: RENDERED,
    Point.V9_SAVE_COMMIT_SENT: RENDERED,
    Point.V10_SAVED: DELIVERED,
    Point.V11_ACKNOWLEDGED: DELIVERED,
    # the doubt about a dispatch whose reply was on its way
    Point.R1_SCANNED: UNHEARD,
    Point.R3_DECISION_COMMIT_SENT: UNHEARD,
    Point.R4_DECIDED: Fate(left=("uncertain", "none", "not_started"), delivered=False),
    # a reply that came while the database was away: from its line on the disk on, nothing is lost
    Point.S1_APPENDING: UNHEARD,
    Point.S2_SPOOLED: Fate(left=("dispatching", "none", "not_started")),
    Point.S3_TAKEN: Fate(left=("dispatching", "none", "not_started")),
    Point.S4_REPLAYED: ACCEPTED,
    Point.S5_REMOVED: ACCEPTED,
}


def points(letter: str) -> list[Point]:
    """The points of one action: E, D, O, V, R or S."""
    return [point for point in Point if point.value.startswith(letter)]
