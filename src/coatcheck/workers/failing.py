"""What a look says of its account: failures in a row pause observation, an answer ends that pause, and patience that was asked for is kept by all.

In a row means without an answer between them at any worker that saw one fail: the first answer after a failure is news, all others are not.
"""

from typing import Final

from coatcheck.provider.port import Denied, Found, Look, Transient
from coatcheck.seams import Point
from coatcheck.store.budgets import LookReport
from coatcheck.workers.desk import Desk, Work

_THROTTLED: Final = "status_429"
_ASKS: Final = frozenset({_THROTTLED, "status_503"})


async def report(desk: Desk, work: Work, account: str, look: Look | Found) -> None:
    """Report a failure, or an answer where looks of the account failed lately, here or elsewhere; other answers are no news."""
    failure, shut_s = _failure(look), _shut_s(look)
    if failure is None and shut_s is None and not (work.message.is_tried or account in desk.failing):
        return
    if failure is None:
        desk.failing.discard(account)
    else:
        desk.failing.add(account)
    await _saved(
        desk,
        LookReport(
            operation_id=work.operation.operation_id,
            account=account,
            leased_at=work.message.leased_at,
            failure=failure,
            shut_s=shut_s,
        ),
    )


async def spare(desk: Desk, work: Work, account: str) -> None:
    """Say that a look which may have been the one that tries a pause had nothing to ask; others say nothing of their account."""
    if work.message.is_tried:
        report = LookReport(
            operation_id=work.operation.operation_id,
            account=account,
            leased_at=work.message.leased_at,
            failure=None,
            is_made=False,
        )
        await _saved(desk, report)


async def _saved(desk: Desk, report: LookReport) -> None:
    desk.seams.faults.reached(Point.B5_LOOK_REPORT_SENT)
    await desk.looks.save(report)
    desk.seams.faults.reached(Point.B6_LOOK_REPORTED)


def _failure(look: Look | Found) -> str | None:
    """In a word; a service that throttles answers, and so does one that has no such job."""
    match look:
        case Denied():
            return f"status_{look.status}"
        case Transient() if look.cause != _THROTTLED:
            return look.cause
        case _:
            return None


def _shut_s(look: Look | Found) -> float | None:
    return look.retry_after_s if isinstance(look, Transient) and look.cause in _ASKS else None
