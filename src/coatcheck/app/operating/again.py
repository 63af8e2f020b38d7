"""Asking again and again until it is answered: what a person wishes for is free or harmless, so a change in between is no reason to refuse it.

Who names the revision they looked at means that one: to them the change is told.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from coatcheck.app.reconciling.deciding import Decider
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text
from coatcheck.core.machine import advance
from coatcheck.core.steps import DecideStep, Refusal
from coatcheck.errors import CoatcheckError, Failed, StaleRevision, Unavailable, WrongPhase
from coatcheck.store.door import Saved
from coatcheck.store.doubts import Standing

_TRIES: Final = 20
"""Far more often than an operation changes while somebody reads it."""

Load = Callable[[], Awaitable[Standing]]
EventOf = Callable[[Standing], Awaitable[ev.Event]]
Refused = Callable[[Standing, Refusal], CoatcheckError]


async def asked(
    decider: Decider, load: Load, event_of: EventOf, *, refused: Refused, revision: int | None
) -> tuple[Standing, DecideStep, Saved]:
    """What a wish meant and made, as the operation stood. Raises what `refused` says of a wish that means nothing now.

    With `revision` it raises `StaleRevision` for any other one.
    """
    for _ in range(_TRIES):
        standing = await load()
        answer = advance(standing.operation, await event_of(standing), standing.operation.read_at)
        if isinstance(answer, Refusal):
            raise refused(standing, answer)
        if not isinstance(answer, DecideStep):
            raise Failed(f"{type(answer).__name__} is no decision")
        try:
            return standing, answer, await decider.save(standing, answer)
        except StaleRevision:
            if revision is not None:
                raise
    raise Unavailable("the operation changes all the time; nothing was recorded", next="try again")


def not_now(standing: Standing, refusal: Refusal) -> WrongPhase:
    """What the table of phases refused, for a person."""
    return wrong_phase(standing, refusal.detail)


def wrong_phase(standing: Standing, detail: str) -> WrongPhase:
    """What is said where a wish means nothing."""
    name = operation_text(standing.operation.operation_id)
    return WrongPhase(f"{name}: {detail}", next=f"`coatcheck operations show {name}` tells how it stands")
