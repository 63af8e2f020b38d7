"""For every named point: what is durable when a process was killed there, and where the operation ends once a healthy worker was at it.

The sentences of docs and reliability analysis, as one table. A point that is missing here fails a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coatcheck.seams import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """`left`: phase, render state and delivery state right after the kill, None where nothing is stored at all. `posts`: how many POSTs
    the service may have got by the end. `ends`: phase and delivery state in the end."""

    left: tuple[str, str, str] | None
    posts: frozenset[int] = frozenset({1})
    ends: tuple[str, str] = ("accepted", "delivered")

    @property
    def delivered(self) -> bool:
        """Whether the operation ends delivered."""
        return self.ends[1] == "delivered"


DOUBT = ("uncertain", "not_started")
PREPARED = Fate(left=("prepared", "none", "not_started"))
UNSENT = Fate(left=("dispatching", "none", "not_started"), posts=frozenset({0}), ends=DOUBT)
PERHAPS = Fate(left=("dispatching", "none", "not_started"), posts=frozenset({0, 1}), ends=DOUBT)
UNHEARD = Fate(left=("dispatching", "none", "not_started"), ends=DOUBT)
ACCEPTED = Fate(left=("accepted", "none", "not_started"))
UNWANTED = Fate(left=("accepted", "none", "not_started"), ends=("accepted", "not_started"))
RENDERED = Fate(left=("accepted", "succeeded", "pending"))
DELIVERED = Fate(left=("accepted", "succeeded", "delivered"))

FATES: Mapping[Point, Fate] = {
    # the application's own transaction
    Point.E1_BEFORE_BEGIN: Fate(left=None),
    Point.E2_OPERATION_INSERTED: Fate(left=None),
    Point.E3_OUTBOX_INSERTED: Fate(left=None),
    Point.E4_COMMIT_SENT: PREPARED,
    Point.E5_COMMITTED_BEFORE_REPLY: PREPARED,
    # a claim is a lease, and a lease that nobody uses ends
    Point.X1_CLAIMED: PREPARED,
    Point.X3_CLAIM_COMMIT_SENT: PREPARED,
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
    Point.V6_BODY_COMPLETE: RENDERED,
    Point.V7_VERIFIED: RENDERED,
    Point.V8_PUBLISHED: RENDERED,
    Point.V9_SAVE_COMMIT_SENT: RENDERED,
    Point.V10_SAVED: DELIVERED,
    Point.V11_ACKNOWLEDGED: DELIVERED,
    # the doubt about a dispatch whose reply was on its way
    Point.R1_SCANNED: UNHEARD,
    Point.R3_DECISION_COMMIT_SENT: UNHEARD,
    Point.R4_DECIDED: Fate(left=("uncertain", "none", "not_started"), ends=DOUBT),
    # a service that repeats our reference was asked which job it is: asking again is free
    Point.R2_EVIDENCE_READ: Fate(left=("uncertain", "none", "not_started")),
    # a wish to cancel is passed on again until an answer is saved
    Point.K1_CANCEL_SENT: UNWANTED,
    Point.K2_CANCEL_ANSWERED: UNWANTED,
    Point.K3_ANSWER_COMMIT_SENT: UNWANTED,
    Point.K4_ANSWER_SAVED: UNWANTED,
    # a reply that came while the database was away: from its line on the disk on, nothing is lost
    Point.S1_APPENDING: UNHEARD,
    Point.S2_SPOOLED: Fate(left=("dispatching", "none", "not_started")),
    Point.S3_TAKEN: Fate(left=("dispatching", "none", "not_started")),
    Point.S4_REPLAYED: ACCEPTED,
    Point.S5_REMOVED: ACCEPTED,
    # the first batch of a worker with one operation is its mark: durable before anybody here knows
    Point.M1_BATCH_SENT: PREPARED,
    Point.M2_BATCH_ANSWERED: UNSENT,
    # whoever concludes a doubt keeps its lease first
    Point.L1_RENEWAL_SENT: UNHEARD,
    Point.L2_RENEWED: UNHEARD,
    # a look that failed is given back, and reported before that
    Point.L3_END_SENT: ACCEPTED,
    Point.L4_ENDED: ACCEPTED,
    Point.B5_LOOK_REPORT_SENT: ACCEPTED,
    Point.B6_LOOK_REPORTED: ACCEPTED,
    # what a worker tells of itself says nothing of operations
    Point.B1_REPORT_SENT: PREPARED,
    Point.B2_REPORTED: PREPARED,
    Point.B3_COMPARISON_SENT: PREPARED,
    Point.B4_COMPARED: PREPARED,
    # a command that cancels what was not sent
    Point.C1_AUTHORISED: PREPARED,
    Point.C2_COMMAND_COMMIT_SENT: PREPARED,
    Point.C3_APPLIED: Fate(
        left=("cancelled", "none", "not_started"), posts=frozenset({0}), ends=("cancelled", "not_started")
    ),
}


def points(letter: str) -> list[Point]:
    """The points of one letter, as `Point` explains them."""
    return [point for point in Point if point.value.startswith(letter)]
