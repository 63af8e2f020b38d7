"""The account: each line a claim on which two books must agree. Pure: evidence in, account out.

The books are the service's ledger and the store; a line that does not hold makes the demo fail.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from coatcheck.core.operation import OperationId
from coatcheck.demo.books import Books, opened_books
from coatcheck.demo.evidence import Evidence, Job
from coatcheck.demo.orders import Order

_SHOWN_NAMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One claim. `found` says in figures what was compared."""

    claim: str
    holds: bool
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One uncertain operation by name, with what only the service knows: the job that its POST created, if any."""

    operation_id: OperationId
    order: Order
    killed: bool
    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resent:
    """POSTs that common clients send again: those whose reply was lost, and those answered 5xx with the job's id."""

    lost_count: int
    answered_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The figures of `demo --json`, the lines behind them, the doubts by name, and what a client that sends again would have done.

    `held` is the money kept back for the doubts.
    """

    figures: Mapping[str, int]
    lines: tuple[Line, ...]
    doubts: tuple[Doubt, ...] = field(repr=False)
    held: Decimal
    resent: Resent

    @property
    def ok(self) -> bool:
        """Whether every line holds."""
        return all(line.holds for line in self.lines)


def settled(evidence: Evidence) -> Account:
    """Check the evidence line by line, as `settled(evidence).ok`."""
    books = opened_books(evidence)
    checks = (_orders, _kill, _posts, _replies, _deliveries, _nothing_lost, _nothing_twice, _money)
    return Account(
        figures={
            "operations": len(evidence.operations),
            "posts": len(books.posts),
            "max_posts_per_operation": max(books.posts_per_operation.values(), default=0),
            "lost_replies": len(books.lost_replies()),
            "uncertain": len(books.uncertain()),
            "delivered": len(books.delivered()),
            "checksum_mismatches": len(books.mismatched()),
            "lost": len(books.lost()),
            "duplicated": len(books.duplicated()),
        },
        lines=tuple(check(books) for check in checks),
        doubts=_doubts(books),
        held=books.money().held,
        resent=_resent(books),
    )


def _orders(books: Books) -> Line:
    evidence = books.evidence
    first, second = evidence.repeated
    keys = {(each.tenant_id, each.operation_key) for each in evidence.operations.values()}
    return Line(
        claim="Each committed order is one operation",
        holds=set(books.orders) == set(evidence.operations)
        and sorted(evidence.shop) == sorted(order.number for order in books.orders.values())
        and evidence.left not in keys
        and first == second,
        found=f"{len(evidence.shop)} orders, {len(evidence.operations)} operations; one rolled back",
    )


def _kill(books: Books) -> Line:
    hits = [strike for strike in books.evidence.strikes if strike.hit]
    return Line(
        claim="A worker was killed in the middle of a POST",
        holds=bool(hits) and all(strike.target in books.uncertain() for strike in hits),
        found=f"worker {hits[-1].number} with {len(hits[-1].in_flight)} in flight; started anew"
        if hits
        else "no kill hit one",
    )


def _posts(books: Books) -> Line:
    most = max(books.posts_per_operation.values(), default=0)
    strangers = [each for each in books.posts_per_operation if each not in books.operations]
    again = f"; {len(books.turned_away)} had a 429 first, which created nothing" if books.turned_away else ""
    return Line(
        claim="No operation was posted twice",
        holds=most == 1 and not strangers,
        found=f"{len(books.operations)} operations, {len(books.posts)} POSTs, at most {most} each{again}",
    )


def _replies(books: Books) -> Line:
    lost, uncertain = books.lost_replies(), books.uncertain()
    return Line(
        claim="Lost replies are the uncertain operations",
        holds=lost == uncertain,
        found=f"{len(lost)} lost, {len(uncertain)} uncertain, the same ones"
        if lost == uncertain
        else f"{len(lost)} lost, {len(uncertain)} uncertain, {len(lost ^ uncertain)} differ",
    )


def _deliveries(books: Books) -> Line:
    delivered, mismatched = books.delivered(), books.mismatched()
    failed = sum(operation.failed_count for operation in books.evidence.operations.values())
    aside = f"; {failed} could not be fetched" if failed else ""
    return Line(
        claim="Delivered files are those the service made",
        holds=bool(delivered) and not mismatched,
        found=f"{len(delivered)} files read again, {len(mismatched)} differ{aside}",
    )


def _nothing_lost(books: Books) -> Line:
    lost = books.lost()
    return Line(
        claim="Nothing is lost",
        holds=not lost,
        found=shown(lost, f"{len(books.evidence.jobs)} remote jobs and {len(books.orders)} operations accounted for"),
    )


def _nothing_twice(books: Books) -> Line:
    twice = books.duplicated()
    return Line(
        claim="Nothing is there twice",
        holds=not twice,
        found=shown(twice, "no remote job, no owner, no paid dispatch twice"),
    )


def _money(books: Books) -> Line:
    money = books.money()
    return Line(
        claim="The bill is what was written down or is held",
        holds=money.billed == money.charged and money.billed_in_doubt <= money.held,
        found=f"{money.billed} credits billed, {money.charged} written down; for the doubts {money.billed_in_doubt} billed, {money.held} held",
    )


def _doubts(books: Books) -> tuple[Doubt, ...]:
    killed = books.killed()
    return tuple(
        Doubt(
            operation_id=operation_id,
            order=books.orders[operation_id],
            killed=operation_id in killed,
            job=books.job_of(books.evidence.operations[operation_id]),
        )
        for operation_id in sorted(books.uncertain() & set(books.orders))
    )


def shown(names: Sequence[str], otherwise: str) -> str:
    """The first few names of what should not be there, or what is said of nothing."""
    return f"{len(names)}: {', '.join(names[:_SHOWN_NAMES])}" if names else otherwise


def _resent(books: Books) -> Resent:
    """Operations whose POST a client with retries would have sent again: broken off, given up, or answered 5xx."""
    struck = {operation_id for operation_id, order in books.orders.items() if order.trouble and order.trouble.resent}
    lost = (struck | books.killed()) & books.lost_replies()
    return Resent(lost_count=len(lost), answered_count=len(struck - lost))
