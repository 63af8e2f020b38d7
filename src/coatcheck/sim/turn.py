"""What a handler decided: the steps on the wire, and which POST of the ledger they answer."""

from collections.abc import Iterator
from dataclasses import dataclass

from coatcheck.sim.faults import Fault
from coatcheck.sim.ledger import Ending, Ledger
from coatcheck.sim.replies import Reply
from coatcheck.sim.requests import Head
from coatcheck.sim.steps import Step, status_shown, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One reply, ready to be played. `order` is None for everything but POSTs."""

    steps: Iterator[Step]
    order: int | None = None


def answer(head: Head, reply: Reply, fault: Fault | None = None) -> Turn:
    """A turn that is not a POST's."""
    return Turn(steps=steps(reply, fault, keep=head.keep))


def post_answer(ledger: Ledger, order: int, head: Head, reply: Reply, fault: Fault | None = None) -> Turn:
    """A POST's turn, its status written down before the first byte."""
    ledger.answered(order, status_shown(reply, fault))
    return Turn(steps=steps(reply, fault, keep=head.keep), order=order)


def no_answer(ledger: Ledger, order: int) -> None:
    """The peer left before its POST was whole."""
    ledger.progress(order, 0, Ending.PEER_LEFT)
