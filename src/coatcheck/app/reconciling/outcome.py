"""What a saved decision made of the operation and its money, and what follows from it, in words."""

from dataclasses import replace
from decimal import Decimal
from typing import Final

from coatcheck.app.reading import view_of
from coatcheck.app.reconciling.views import Cost, Decision
from coatcheck.app.story.wording import amount
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import DeliveryState
from coatcheck.core.steps import DecideStep
from coatcheck.store.door import Saved
from coatcheck.store.doubts import Standing

REQUESTED: Final = "redispatch_requested"
"""The event of a redispatch that somebody else has to carry out."""
_FOLLOWS: Final = {
    "adopted": "a worker looks at the remote job from now on, and delivers its output when it succeeds",
    REQUESTED: "somebody else has to run `coatcheck reconcile redispatch {name} --yes`; nothing is sent before, and any change of the operation in between needs a new request",
    "cancelled": "nothing of it is sent, and nothing is held or charged for it under this authorisation",
    "reobserve_requested": "a worker looks at the remote job at once, unless looks of its account are paused, and goes on until a new deadline",
    "redeliver_requested": "a worker tries to store the outputs again, with all their tries; nothing is rendered again",
    "message_resumed": "a worker takes it",
    "noted": "nothing else changed; the audit no longer reports what this operation's dispatches left to be looked into",
    "written_off": "nothing is sent or looked at any more; a job of it that comes to light is listed by `coatcheck orphans list`",
}


def decision_of(standing: Standing, step: DecideStep, saved: Saved) -> Decision:
    """The answer to whoever decided: the operation as the decision left it, before anybody else touched it."""
    before = standing.operation
    after = replace(
        before,
        phase=step.phase,
        render_state=step.render_state,
        remote_job_id=before.remote_job_id or step.remote_job_id,
        delivery_state=DeliveryState.PENDING if step.redelivers else before.delivery_state,
        authorisation=before.authorisation + step.authorises,
        # the guard is the revision that was read
        revision=before.revision + 1,
    )
    cleared = _cleared(standing) if step.clears_withdrawal else ()
    return Decision(
        operation=view_of(after, ()),
        event=step.event,
        actor=step.actor,
        reason=step.reason or "",
        is_requested=step.event == REQUESTED,
        spent=saved.spent or Decimal(0),
        released=saved.released or Decimal(0),
        unit=standing.held_unit or before.unit,
        authorises=step.authorises,
        estimate=standing.next_estimate if step.authorises else None,
        cleared=cleared,
        next=_next(standing, step, cleared),
    )


def cost_of(standing: Standing) -> Cost:
    """What a redispatch of it costs."""
    return Cost(
        operation_id=operation_text(standing.operation.operation_id),
        spent=standing.held or Decimal(0),
        estimate=standing.next_estimate,
        unit=standing.held_unit or standing.operation.unit,
    )


def cost_text(cost: Cost) -> str:
    """`what the former dispatch holds (5 credits) counts as spent, and one more POST costs about 5 credits`."""
    former = (
        f"what the former dispatch holds ({amount(cost.spent, cost.unit)}) counts as spent"
        if cost.spent
        else "the former dispatch holds nothing"
    )
    more = "an amount that nobody estimated" if cost.estimate is None else f"about {amount(cost.estimate, cost.unit)}"
    return f"{former}, and one more POST costs {more}"


def _cleared(standing: Standing) -> tuple[str, ...]:
    operation = standing.operation
    wished, deadline = operation.cancel_requested_at, operation.dispatch_by_at
    return (*(["cancel"] if wished else []), *(["deadline"] if deadline else []))


def _next(standing: Standing, step: DecideStep, cleared: tuple[str, ...]) -> str:
    name = operation_text(standing.operation.operation_id)
    if not step.authorises:
        return _with_cleared(_FOLLOWS[step.event].format(name=name), cleared)
    cost = "an amount that nobody estimated"
    if standing.next_estimate is not None:
        cost = f"about {amount(standing.next_estimate, standing.operation.unit)}"
    return _with_cleared(
        f"one more POST is authorised now, and a worker sends it unless dispatches of its account are paused, for {cost}",
        cleared,
    )


def _with_cleared(text: str, cleared: tuple[str, ...]) -> str:
    words = {"cancel": "the wish to cancel it", "deadline": "the deadline for sending it"}
    if not cleared:
        return text
    return f"{text}; {' and '.join(words[each] for each in cleared)} no longer counts"
