"""Taking up a message that was set aside: free, audited, and under the rules that held before. Doubt is never taken up, it is decided.

The operation is read before its message: whoever resumed it in between wrote a revision, and this one is refused.
"""

from collections.abc import Callable
from dataclasses import fields

from coatcheck.app.operating.again import asked, not_now, wrong_phase
from coatcheck.app.operating.views import Resumed
from coatcheck.app.reconciling.deciding import Decider
from coatcheck.app.reconciling.outcome import decision_of
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text, parse_operation_id
from coatcheck.core.operation import Operation, OperationId, Phase
from coatcheck.errors import NotFound, WrongPhase
from coatcheck.store.doubts import Standing
from coatcheck.store.messages import Message, load_message


async def resume(
    decider: Decider,
    message_id: str,
    *,
    actor: str,
    reason: str,
    observe_for_s: Callable[[Operation], float],
    revision: int | None = None,
) -> Resumed:
    """Make it due again. Raises `NotFound` for no message, `WrongPhase` for one that is not set aside and for doubt."""
    operation_id, lane = address_of(message_id)
    name = operation_text(operation_id)
    parked: list[Message] = []

    async def load() -> Standing:
        return await decider.load(name, revision)

    async def event_of(standing: Standing) -> ev.Event:
        message = await load_message(decider.reading, operation_id, lane)
        if message is None:
            raise _unknown()
        if standing.operation.phase is Phase.UNCERTAIN:
            raise WrongPhase(
                f"{message_id}: doubt is not taken up, it is decided: its request may have been sent",
                next=f"`coatcheck reconcile show {name}` tells what is known and what can be decided",
            )
        if message.park_reason is None:
            raise wrong_phase(standing, f"its message of lane {lane} is not set aside; workers take it by themselves")
        parked.append(message)
        return ev.Resume(
            actor=actor,
            reason=reason,
            lane=lane,
            park_reason=message.park_reason,
            observe_for_s=observe_for_s(standing.operation),
        )

    standing, step, saved = await asked(decider, load, event_of, refused=not_now, revision=revision)
    made = decision_of(standing, step, saved)
    given = {each.name: getattr(made, each.name) for each in fields(made)}
    return Resumed(message_id=message_id, **{**given, "next": _next(standing.operation.phase, parked[-1])})


def address_of(message_id: str) -> tuple[OperationId, int]:
    """The operation and the lane in a message's id, as `op_01m8kq….0`. Raises `NotFound` for any other text."""
    text, _, lane = message_id.rpartition(".")
    operation_id = parse_operation_id(text)
    if operation_id is None or not lane.isascii() or not lane.isdecimal() or int(lane) > 32_767:  # noqa: PLR2004 - a smallint
        raise _unknown()
    return operation_id, int(lane)


def _unknown() -> NotFound:
    return NotFound(
        "expected the id of a message, as op_….0, got one that names none here",
        next="`coatcheck messages parked` lists those that are set aside",
    )


def _next(phase: Phase, message: Message) -> str:
    if phase is Phase.DISPATCHING:
        return "a worker concludes that it is uncertain, because its request may have been sent"
    return {
        "dispatch": "a worker marks and sends it, under the authorisation that it has, unless it was withdrawn",
        "observe": "a worker looks at the remote job at once, unless looks of its account are paused",
        "deliver": "a worker tries to store the output, with all its tries",
    }.get(message.action, "a worker takes it")
