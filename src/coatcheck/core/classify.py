"""What the end of the one POST proves. Only two things are proof: no byte left, or a whole reply says so. All else is doubt.

Read in this order: a usable id at the failure's place on any reply that is no success; a success with a usable id; the status list; the
rest. Status and ids come from the wire alone: no body field such as `retryable`, no digits in a text and no client's exception decides.
"""

import enum
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, assert_never

from coatcheck.core.candidate import candidate_id
from coatcheck.core.events import Accepted, Doubted, FailedWithId, NotSent, Rejected, Reply, Throttled
from coatcheck.core.evidence import Exchange
from coatcheck.core.foreign import Unreadable, at, read_json, usable_id
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import DispatchId
from coatcheck.core.retry_after import retry_after_s


class Verdict(enum.StrEnum):
    """What a status alone proves when the reply is whole and names no id."""

    REJECTED = "rejected"
    THROTTLED = "throttled"


STATUS_LIST: Final[Mapping[int, Verdict]] = MappingProxyType(
    {
        307: Verdict.REJECTED,
        308: Verdict.REJECTED,
        400: Verdict.REJECTED,
        401: Verdict.REJECTED,
        402: Verdict.REJECTED,
        403: Verdict.REJECTED,
        404: Verdict.REJECTED,
        405: Verdict.REJECTED,
        406: Verdict.REJECTED,
        410: Verdict.REJECTED,
        411: Verdict.REJECTED,
        413: Verdict.REJECTED,
        414: Verdict.REJECTED,
        415: Verdict.REJECTED,
        422: Verdict.REJECTED,
        425: Verdict.THROTTLED,
        429: Verdict.THROTTLED,
        431: Verdict.REJECTED,
        501: Verdict.REJECTED,
    }
)
"""A status that is not here proves nothing: 408, 409 and 412 are met after creation, a 303 answers some creations, 5xx says all and nothing."""


@frozen
class Rules:
    """What a service's adapter adds to the table: where ids stand, and how its delays are read. `retry_after_cap_s` in seconds."""

    id_path: tuple[str, ...]
    failure_id_path: tuple[str, ...]
    throttled_is_uncertain: bool = False
    retry_after_cap_s: float = 300.0


def classify(exchange: Exchange, *, dispatch_id: DispatchId, rules: Rules, now: datetime) -> Reply:
    """Exactly one event for any exchange; never raises. `now` reads a `Retry-After` that is a date.

    `classify(exchange, dispatch_id=dispatch_id, rules=rules, now=seams.clock.now())`
    """
    if _nothing_left(exchange):
        return NotSent(dispatch_id=dispatch_id, cause=exchange.failure or "not_sent")
    if exchange.status is None or not exchange.complete:
        # Also with a status from the list, and also when the JSON looks finished: the id may stand in the part that did not arrive,
        # or the finished part may be another's. Such a candidate is evidence for a person.
        return _doubted(exchange, exchange.failure or "cut", dispatch_id=dispatch_id, rules=rules)
    if HTTPStatus.OK <= exchange.status < HTTPStatus.MULTIPLE_CHOICES:
        return _success(exchange, dispatch_id=dispatch_id, rules=rules)
    return _refusal(exchange, exchange.status, dispatch_id=dispatch_id, rules=rules, now=now)


def _nothing_left(exchange: Exchange) -> bool:
    """Evidence that contradicts itself (a reply to nothing) is read as a reply: that never sends a second POST."""
    return exchange.bytes_sent == 0 and exchange.bytes_received == 0 and exchange.status is None


def _doubted(exchange: Exchange, cause: str, *, dispatch_id: DispatchId, rules: Rules) -> Doubted:
    candidate = candidate_id(exchange.body, (rules.id_path, rules.failure_id_path))
    return Doubted(dispatch_id=dispatch_id, cause=cause, candidate=candidate)


def _success(exchange: Exchange, *, dispatch_id: DispatchId, rules: Rules) -> Reply:
    body = read_json(exchange.body)
    if isinstance(body, Unreadable):
        return _doubted(exchange, body.cause, dispatch_id=dispatch_id, rules=rules)
    named = at(body, rules.id_path)
    remote_job_id = usable_id(named)
    if remote_job_id is None:
        cause = "no_id" if named is None else "unusable_id"
        return _doubted(exchange, cause, dispatch_id=dispatch_id, rules=rules)
    return Accepted(dispatch_id=dispatch_id, remote_job_id=remote_job_id)


def _refusal(exchange: Exchange, status: int, *, dispatch_id: DispatchId, rules: Rules, now: datetime) -> Reply:
    body = read_json(exchange.body)
    remote_job_id = usable_id(at(body, rules.failure_id_path))
    if remote_job_id is not None:
        return FailedWithId(dispatch_id=dispatch_id, remote_job_id=remote_job_id)
    if exchange.body and not exchange.framed and isinstance(body, Unreadable):
        # Nothing but the end of the connection says that this is all, and the part that is missing may name a job.
        return _doubted(exchange, "unframed", dispatch_id=dispatch_id, rules=rules)
    match STATUS_LIST.get(status):
        case Verdict.REJECTED:
            return Rejected(dispatch_id=dispatch_id, status=status)
        case Verdict.THROTTLED if rules.throttled_is_uncertain:
            return _doubted(exchange, f"status_{status}", dispatch_id=dispatch_id, rules=rules)
        case Verdict.THROTTLED:
            delay_s = retry_after_s(exchange.header("Retry-After"), now=now, cap_s=rules.retry_after_cap_s)
            return Throttled(dispatch_id=dispatch_id, retry_after_s=delay_s)
        case None:
            return _doubted(exchange, f"status_{status}", dispatch_id=dispatch_id, rules=rules)
        case unforeseen:
            assert_never(unforeseen)
