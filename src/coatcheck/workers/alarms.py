"""Says in the log what is a person's from now on, once it is committed, with the command that shows it. Never a specification or a service's text."""

import logging
from typing import Final

from coatcheck.core.actions import Park, ParkReason
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.store.door import ConcludeSave, DecideSave, MarkSave, Save, Saved, Status

logger = logging.getLogger(__name__)

_BECAME: Final = "became_uncertain"


def about(save: Save, saved: Saved) -> None:
    """What a step that was saved left to a person: a doubt is said once, and its own parked message is not said besides."""
    if isinstance(save, MarkSave):
        return
    operation_id = save.step.operation_id
    if _is_doubt(save, saved):
        name = operation_text(operation_id)
        then = f"coatcheck reconcile show {name}"
        logger.warning("operation is uncertain", extra={"operation_id": name, "next": then})
    elif saved.applied:
        for change in save.step.lanes:
            if isinstance(change, Park):
                parked(operation_id, change.lane, change.reason)


def parked(operation_id: OperationId, lane: int, reason: ParkReason) -> None:
    """A message was set aside for a person."""
    name = operation_text(operation_id)
    logger.warning(
        "message is parked",
        extra={
            "operation_id": name,
            "lane": lane,
            "reason": str(reason),
            "next": f"coatcheck operations show {name}",
        },
    )


def _is_doubt(save: Save, saved: Saved) -> bool:
    """Whether the operation is uncertain by it: as the step says, or because the id that it named is another operation's."""
    if isinstance(save, ConcludeSave) and saved.status is Status.OWNED:
        return True
    return isinstance(save, ConcludeSave | DecideSave) and saved.applied and save.step.event == _BECAME
