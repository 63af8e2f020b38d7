"""What a look says of its account: failures in a row pause observation, an answer ends that pause, and patience that was asked for is kept by all."""

from typing import Final

from coatcheck.provider.port import Denied, Look, Transient
from coatcheck.store.budgets import LookReport
from coatcheck.workers.desk import Desk, Work

_THROTTLED: Final = "status_429"
_ASKS: Final = frozenset({_THROTTLED, "status_503"})


async def report(desk: Desk, work: Work, account: str, look: Look) -> None:
    """Report a failure, or an answer where looks of the account failed lately; other answers are no news."""
    failure, shut_s = _failure(look), _shut_s(look)
    if failure is None and shut_s is None and not work.message.is_tried:
        return
    await desk.looks.save(
        LookReport(
            operation_id=work.operation.operation_id,
            account=account,
            leased_at=work.message.leased_at,
            failure=failure,
            shut_s=shut_s,
        )
    )


def _failure(look: Look) -> str | None:
    """In a word; a service that throttles answers, and so does one that has no such job."""
    match look:
        case Denied():
            return f"status_{look.status}"
        case Transient() if look.cause != _THROTTLED:
            return look.cause
        case _:
            return None


def _shut_s(look: Look) -> float | None:
    return look.retry_after_s if isinstance(look, Transient) and look.cause in _ASKS else None
