"""The two books laid side by side: what they share is the hash of specification and POST body.

Which replies were lost is settled without asking what the store made of them: by the demo's own script, by the dispatches in flight at a
kill, and by POSTs that a worker gave up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from coatcheck.core.operation import DeliveryState, Operation, OperationId, Outcome, Phase
from coatcheck.demo.evidence import Dispatched, Evidence, Job
from coatcheck.demo.orders import Order
from coatcheck.sim import Kind, PostRecord
from coatcheck.store.operations import Delivery

_CREATED_NOTHING = (Outcome.THROTTLED, Outcome.NOT_SENT)
_OWNING = (Phase.ACCEPTED, Phase.SUBMISSION_FAILED)
_GAVE_UP = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The evidence with its indexes. `posts` are those that could create; `turned_away` were answered 429 and created nothing."""

    evidence: Evidence
    orders: Mapping[OperationId, Order]
    operations: Mapping[str, Operation]
    posts: tuple[PostRecord, ...]
    turned_away: tuple[PostRecord, ...]

    @property
    def posts_per_operation(self) -> Mapping[str, int]:
        """By hash; a POST that never became whole has created nothing and bears no operation's hash."""
        return Counter(post.body_sha256 for post in self.posts if post.complete)

    def uncertain(self) -> frozenset[OperationId]:
        """What the store calls uncertain."""
        operations = self.evidence.operations.values()
        return frozenset(each.operation_id for each in operations if each.phase is Phase.UNCERTAIN)

    def lost_replies(self) -> frozenset[OperationId]:
        """Operations whose POST may have created a job, and no usable reply was saved."""
        return frozenset((*self._by_script(), *self._by_kill(), *self._given_up()))

    def killed(self) -> frozenset[OperationId]:
        """Those of them whose worker was killed."""
        return frozenset(self._by_kill())

    def _by_script(self) -> Iterator[OperationId]:
        for post in self.posts:
            operation = self.operations.get(post.body_sha256)
            order = self.orders.get(operation.operation_id) if operation else None
            if (
                operation
                and order
                and order.trouble
                and order.trouble.loses
                and post.fault == order.trouble.sim["create"]["kind"]
            ):
                yield operation.operation_id

    def _by_kill(self) -> Iterator[OperationId]:
        """In flight at the kill, unless the worker's last statement reached the database before it died."""
        for strike in self.evidence.strikes:
            for dispatch in self.evidence.dispatches:
                mine = dispatch.worker == strike.incarnation and dispatch.operation_id in strike.in_flight
                if mine and not dispatch.ended:
                    yield dispatch.operation_id

    def _given_up(self) -> Iterator[OperationId]:
        for dispatch in self.evidence.dispatches:
            if dispatch.outcome is Outcome.UNCERTAIN and dispatch.cause == _GAVE_UP:
                yield dispatch.operation_id

    def job_of(self, operation: Operation) -> Job | None:
        """The job that the operation's POST created, which only the service knows."""
        return next((job for job in self.evidence.jobs if job.operation_hash == operation.specification_hash), None)

    def delivered(self) -> list[tuple[Operation, Delivery]]:
        """Every output that the store calls delivered."""
        return [
            (self.evidence.operations[operation_id], output)
            for operation_id, outputs in self.evidence.outputs.items()
            for output in outputs
            if output.state == DeliveryState.DELIVERED
        ]

    def mismatched(self) -> list[OperationId]:
        """Delivered outputs whose file is not there, or is neither what was recorded nor what the service made."""
        jobs = {job.id: job for job in self.evidence.jobs}
        return [
            operation.operation_id
            for operation, output in self.delivered()
            if not self.evidence.found.get(output.uri or "") == output.sha256 == _made(jobs, operation, output)
        ]

    def lost(self) -> list[str]:
        """What nobody would find again: an order without operation, a job without owner, an operation without end."""
        missing = [
            order.key for operation_id, order in self.orders.items() if operation_id not in self.evidence.operations
        ]
        homeless = [job.id for job in self.evidence.jobs if not self._has_home(job)]
        endless = [str(each.operation_id) for each in self.evidence.operations.values() if not _has_ended(each)]
        return [*missing, *homeless, *endless]

    def duplicated(self) -> list[str]:
        """What is there twice: jobs of one specification, owners of one job, dispatches of one authorisation, operations of no order."""
        jobs = Counter(job.operation_hash for job in self.evidence.jobs)
        owners = Counter(each.remote_job_id for each in self.evidence.operations.values() if each.remote_job_id)
        sent = Counter(
            (each.operation_id, each.authorisation)
            for each in self.evidence.dispatches
            if each.outcome not in _CREATED_NOTHING
        )
        repeated = [str(name) for counted in (jobs, owners, sent) for name, count in counted.items() if count > 1]
        return [*repeated, *(str(each) for each in self.evidence.operations if each not in self.orders)]

    def _has_home(self, job: Job) -> bool:
        operation = self.operations.get(job.operation_hash)
        if operation is None:
            return False
        return operation.phase is Phase.UNCERTAIN or (operation.phase in _OWNING and operation.remote_job_id == job.id)

    def money(self) -> "Money":
        """What the service would bill and what the store has written down."""
        doubtful = self.uncertain()
        owned = {each.specification_hash for each in self.evidence.operations.values() if each.phase in _OWNING}
        return Money(
            billed=_sum(job.net for job in self.evidence.jobs if job.operation_hash in owned),
            billed_in_doubt=_sum(job.net for job in self.evidence.jobs if job.operation_hash not in owned),
            charged=_sum(each.charged or Decimal(0) for each in self.evidence.dispatches),
            held=_sum(_held(each) for each in self.evidence.dispatches if each.operation_id in doubtful),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """Credits, net of refunds. `held` is what the store keeps back for the doubts."""

    billed: Decimal
    billed_in_doubt: Decimal
    charged: Decimal
    held: Decimal


def opened_books(evidence: Evidence) -> Books:
    """The books of this evidence."""
    turned_away = tuple(post for post in evidence.posts if post.fault == Kind.THROTTLED and post.created is None)
    return Books(
        evidence=evidence,
        orders={each.operation_id: each.order for each in evidence.placed},
        operations={each.specification_hash: each for each in evidence.operations.values()},
        posts=tuple(post for post in evidence.posts if post not in turned_away),
        turned_away=turned_away,
    )


def _made(jobs: Mapping[str, Job], operation: Operation, output: Delivery) -> str | None:
    job = jobs.get(operation.remote_job_id or "")
    return None if job is None else job.files.get(output.index)


def _has_ended(operation: Operation) -> bool:
    """Whether nothing is left that a worker would do."""
    match operation.phase:
        case Phase.PREPARED | Phase.DISPATCHING:
            return False
        case Phase.ACCEPTED | Phase.SUBMISSION_FAILED:
            return operation.is_final and operation.delivery_state is not DeliveryState.PENDING
        case Phase.REJECTED | Phase.UNCERTAIN | Phase.CANCELLED | Phase.ABANDONED:
            return True


def _held(dispatch: Dispatched) -> Decimal:
    return dispatch.held if dispatch.charged is None else Decimal(0)


def _sum(amounts: Iterator[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))
