"""Cancelling: what was not sent yet never is. What may have been sent cannot be kept back, and then only the wish is recorded.

Of a cancellation and a mark that race, one wins: both name the revision that they read.
"""

from coatcheck.app.operating.again import Load, asked
from coatcheck.app.reconciling.deciding import Decider
from coatcheck.app.reconciling.outcome import decision_of
from coatcheck.app.reconciling.views import Decision
from coatcheck.app.story.wording import quoted
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import Operation, Phase
from coatcheck.core.steps import Refusal
from coatcheck.errors import NotCancellable
from coatcheck.store.doubts import Standing


async def cancel(decider: Decider, load: Load, *, actor: str, reason: str, revision: int | None = None) -> Decision:
    """Cancel what is prepared. Raises `NotCancellable` for everything else, and `is_recorded` says whether the wish was kept."""

    async def event_of(_: Standing) -> ev.Event:
        return ev.Cancel(actor=actor, reason=reason)

    standing, step, saved = await asked(decider, load, event_of, refused=_over, revision=revision)
    if step.requests_cancel:
        raise _requested(standing.operation)
    return decision_of(standing, step, saved)


def _over(standing: Standing, _: Refusal) -> NotCancellable:
    operation = standing.operation
    name = operation_text(operation.operation_id)
    state = f"its render is {operation.render_state}" if operation.is_final else f"it is {operation.phase} already"
    return NotCancellable(
        f"{name} cannot be cancelled: {state}, and nothing was recorded",
        is_recorded=False,
        next=f"`coatcheck operations show {name}` tells how it stands",
    )


def _requested(operation: Operation) -> NotCancellable:
    name = operation_text(operation.operation_id)
    return NotCancellable(
        f"{name} cannot be cancelled any more: {_STATES[operation.phase].format(job=quoted(operation.remote_job_id or ''))}."
        " The wish is recorded, which promises neither that the render stops nor that it is refunded",
        is_recorded=True,
        next=f"`coatcheck operations show {name}` tells what becomes of it",
    )


_STATES = {
    Phase.DISPATCHING: "its request may be on its way; if it turns out that it never left, the operation is cancelled",
    Phase.UNCERTAIN: "its request may have been sent; if it turns out that it never left, the operation is cancelled",
    Phase.ACCEPTED: "the service has its job {job}, and a worker passes the wish on where CANCEL_PATH says how",
    Phase.SUBMISSION_FAILED: "the service has its job {job}, and a worker passes the wish on where CANCEL_PATH says how",
}
