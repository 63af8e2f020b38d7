"""The final account: once a person has decided, nothing may be in doubt, and the store and the service's ledger agree to the unit.

Pure: what the second act left in, balance out. Its lines are claims that can fail, as those of the first account.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from coatcheck.core.operation import OperationId
from coatcheck.demo.account import Line, shown
from coatcheck.demo.books import Books, opened_books
from coatcheck.demo.closing import Closing
from coatcheck.demo.orders import PERSON
from coatcheck.demo.person import Verdict

_BY_SERVICE = "service"
_OWNER = "owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The figures that `demo --json` adds, the lines behind them, and the decisions by operation."""

    figures: Mapping[str, int | float]
    lines: tuple[Line, ...]
    verdicts: Mapping[OperationId, Verdict] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether every line holds."""
        return all(line.holds for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ledgers:
    """The closing with its two pairs of books."""

    closing: Closing
    before: Books
    after: Books

    def tenant_of(self, operation_hash: str) -> str:
        operation = self.after.operations.get(operation_hash)
        return "nobody" if operation is None else operation.tenant_id

    def billed(self) -> Mapping[str, Decimal]:
        """What the service has billed by tenant, net of refunds."""
        return _sums((self.tenant_of(job.operation_hash), job.net) for job in self.after.evidence.jobs)

    def charged(self) -> Mapping[str, Decimal]:
        """What the store has charged by tenant."""
        operations = self.after.evidence.operations
        return _sums(
            (operations[each.operation_id].tenant_id, each.charged or Decimal(0))
            for each in self.after.evidence.dispatches
            if each.operation_id in operations
        )

    def held(self) -> Decimal:
        return sum((each.held for each in self.after.evidence.dispatches if each.charged is None), Decimal(0))

    def assumed_count(self) -> int:
        """Charges that are not the service's own figure."""
        return sum(bool(each.charged) and each.basis != _BY_SERVICE for each in self.after.evidence.dispatches)


def balanced(closing: Closing) -> Balance:
    """Check the closing line by line, as `balanced(closing).ok`."""
    books = _Ledgers(closing=closing, before=opened_books(closing.before), after=opened_books(closing.after))
    checks: tuple[Callable[[_Ledgers], Line], ...] = (
        *(_doubts, _posts, _owners, _whole),
        *(_bill, _allowances, _audit),
    )
    verdicts = closing.verdicts
    return Balance(
        figures={
            "adopted": sum(not each.proves_absence for each in verdicts),
            "forced": sum(each.is_forced for each in verdicts),
            "proven_absent": sum(each.proves_absence for each in verdicts),
            "posts_authorised_again": len(books.after.posts) - len(books.before.posts),
            "uncertain_left": len(books.after.uncertain()),
            "charged": _figure(_total(books.charged())),
            "billed": _figure(_total(books.billed())),
            "audit_findings": len(closing.findings),
        },
        lines=tuple(check(books) for check in checks),
        verdicts={each.operation_id: each for each in verdicts},
    )


def _doubts(books: _Ledgers) -> Line:
    left = books.after.uncertain()
    decided = {each.operation_id for each in books.closing.verdicts}
    adopted = {each.operation_id: each.remote_job_id for each in books.closing.verdicts if not each.proves_absence}
    operations = books.after.evidence.operations
    kept = all(each in operations and operations[each].remote_job_id == job for each, job in adopted.items())
    forced = sum(each.is_forced for each in books.closing.verdicts)
    return Line(
        claim="No operation is uncertain any more",
        holds=not left and books.before.uncertain() <= decided and kept,
        found=f"{len(adopted)} jobs adopted, {forced} of them by force; {len(books.closing.verdicts) - len(adopted)} proven absent; "
        f"{len(left)} left",
    )


def _posts(books: _Ledgers) -> Line:
    """An authorisation beyond those of the first act was given by a verdict, and each was spent on one POST at most."""
    given = Counter(each.operation_id for each in books.closing.verdicts if each.proves_absence)
    operations = books.after.evidence.operations.values()
    posts = books.after.posts_per_operation
    unexplained = [each for each in operations if each.authorisation != 1 + given[each.operation_id]]
    overspent = [each for each in operations if posts[each.specification_hash] > each.authorisation]
    strangers = set(posts) - set(books.after.operations)
    further = len(books.after.posts) - len(books.before.posts)
    return Line(
        claim="At most one POST per authorisation",
        holds=not unexplained and not overspent and not strangers,
        found=f"{sum(each.authorisation for each in operations)} authorisations, {given.total()} of them {PERSON}'s; "
        f"{len(books.after.posts)} POSTs, {further} of them since",
    )


def _owners(books: _Ledgers) -> Line:
    owned = Counter(each.remote_job_id for each in books.closing.owners if each.role == _OWNER)
    hashes = {each.operation_id: each.specification_hash for each in books.after.evidence.operations.values()}
    jobs = {job.id: job.operation_hash for job in books.after.evidence.jobs}
    wrong = [
        *(job for job in jobs if owned[job] != 1),
        *(
            each.remote_job_id
            for each in books.closing.owners
            if each.role != _OWNER or jobs.get(each.remote_job_id, "") != hashes.get(each.operation_id)
        ),
    ]
    return Line(
        claim="Each remote job has exactly one owner",
        holds=not wrong,
        found=shown(wrong, f"{len(jobs)} remote jobs, each with the operation whose POST made it"),
    )


def _whole(books: _Ledgers) -> Line:
    wrong = [*books.after.lost(), *books.after.duplicated(), *(str(each) for each in books.after.mismatched())]
    return Line(
        claim="Nothing is lost, twice or altered by that",
        holds=not wrong,
        found=shown(
            wrong, f"{len(books.after.delivered())} files, {len(books.after.orders)} operations, all at an end"
        ),
    )


def _bill(books: _Ledgers) -> Line:
    charged, billed = books.charged(), books.billed()
    held, assumed_count = books.held(), books.assumed_count()
    each = " · ".join(f"{tenant} {charged.get(tenant, 0)} of {billed.get(tenant, 0)}" for tenant in sorted(billed))
    return Line(
        claim="Each tenant is charged what the service billed",
        holds=charged == billed and not held and not assumed_count,
        found=f"{each}; {held} held, {assumed_count} assumed",
    )


def _allowances(books: _Ledgers) -> Line:
    kept = {each.tenant_id: each for each in books.closing.allowances}
    charged, granted = books.charged(), books.closing.granted
    agree = all(
        each.limit == granted.get(tenant_id)
        and each.charged == charged.get(tenant_id)
        and not each.held
        and each.left == (each.limit or Decimal(0)) - each.charged
        for tenant_id, each in kept.items()
    )
    spent, limit = sum(each.charged for each in kept.values()), _total(granted)
    return Line(
        claim="Each allowance says the same",
        holds=agree and set(kept) == set(granted) == set(charged),
        found=f"{spent} of {limit} credits spent, {sum(each.held for each in kept.values())} held",
    )


def _audit(books: _Ledgers) -> Line:
    names = [f"{each.check} {each.kind}" for each in books.closing.findings]
    return Line(claim="The audit finds nothing", holds=not names, found=shown(names, "no finding in any check"))


def _sums(amounts: Iterable[tuple[str, Decimal]]) -> Mapping[str, Decimal]:
    found: dict[str, Decimal] = {}
    for name, amount in amounts:
        found[name] = found.get(name, Decimal(0)) + amount
    return found


def _total(amounts: Mapping[str, Decimal]) -> Decimal:
    return sum(amounts.values(), Decimal(0))


def _figure(amount: Decimal) -> int | float:
    """As JSON has it."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)
