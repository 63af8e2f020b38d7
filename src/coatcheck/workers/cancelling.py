"""Passes a recorded wish to cancel on: once with each look, until the service took or refused it. What became of the job, looks tell.

It is a request about a job that exists, without a body, so it cannot create; and it is never needed for anything to be right.
"""

from dataclasses import dataclass
from typing import Final

from coatcheck.config import ProviderSettings
from coatcheck.core import events as ev
from coatcheck.core.machine import advance
from coatcheck.provider.port import CancelAnswered, Canceller, CancelPort, Transient
from coatcheck.seams import Point
from coatcheck.workers.desk import Desk, Work

ANSWER_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelling:
    """What telling one configured service takes."""

    port: CancelPort
    settings: ProviderSettings
    line: Canceller


def answer_s(settings: ProviderSettings) -> float:
    """How long the service may take to answer, in seconds: the look that follows in the same lease has the rest of a look's time."""
    return min(ANSWER_S, settings.observe_timeout_s / 2)


async def pass_on(desk: Desk, work: Work, cancelling: Cancelling) -> bool:
    """Tell the service. True: its answer is saved and the course aimed at a look. False: look as usual, and tell it again with the next one."""
    operation = work.operation
    request = None if operation.remote_job_id is None else cancelling.port.cancel(operation.remote_job_id)
    if request is None:
        return False
    reached = desk.seams.faults.reached
    reached(Point.K1_CANCEL_SENT)
    exchange = await cancelling.line.cancel(request, timeout_s=answer_s(cancelling.settings))
    reached(Point.K2_CANCEL_ANSWERED)
    match cancelling.port.cancelled(exchange, now=desk.seams.clock.now()):
        case Transient() as later:
            desk.complaints.about(work.message.provider, later.cause)
            return False
        case CancelAnswered() as said:
            event = ev.CancelAnswered(actor=desk.worker, answer=said.answer, status=said.status)
            reached(Point.K3_ANSWER_COMMIT_SENT)
            saved = await desk.decide(advance(operation, event, operation.read_at))
            reached(Point.K4_ANSWER_SAVED)
            return saved is not None and saved.applied
