"""No line of the final account can fail to fail: what a real performance left behind, falsified one fact at a time."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from coatcheck.core.operation import Operation, OperationId, Phase
from coatcheck.demo.balance import Balance, balanced
from coatcheck.demo.closing import Closing, Owner
from coatcheck.demo.evidence import Dispatched, Evidence, Job
from coatcheck.demo.person import Verdict
from coatcheck.store.audit import Finding

Falsified = Callable[[Closing], Closing]

DOUBTS, POSTS = "No operation is uncertain any more", "At most one POST per authorisation"
OWNERS, WHOLE = "Each remote job has exactly one owner", "Nothing is lost, twice or altered by that"
BILL, PURSES = "Each tenant is charged what the service billed", "Each allowance says the same"
AUDIT = "The audit finds nothing"


def failing(balance: Balance) -> set[str]:
    return {line.claim for line in balance.lines if not line.holds}


def after(closing: Closing, evidence: Evidence) -> Closing:
    return replace(closing, after=evidence)


def with_operation(closing: Closing, changed: Operation) -> Closing:
    operations = {**closing.after.operations, changed.operation_id: changed}
    return after(closing, replace(closing.after, operations=operations))


def with_dispatches(closing: Closing, change: Callable[[Dispatched], Dispatched]) -> Closing:
    return after(closing, replace(closing.after, dispatches=tuple(change(each) for each in closing.after.dispatches)))


def adopted(closing: Closing) -> Verdict:
    return next(each for each in closing.verdicts if not each.proves_absence)


def proven(closing: Closing) -> Verdict:
    return next(each for each in closing.verdicts if each.proves_absence)


def paid_job(closing: Closing) -> Job:
    return next(job for job in closing.after.jobs if job.net)


def doubt_left(closing: Closing) -> Closing:
    operation = closing.after.operations[adopted(closing).operation_id]
    return with_operation(closing, replace(operation, phase=Phase.UNCERTAIN))


def doubt_that_nobody_decided(closing: Closing) -> Closing:
    return replace(closing, verdicts=tuple(each for each in closing.verdicts if each != adopted(closing)))


def another_job_adopted(closing: Closing) -> Closing:
    changed = replace(adopted(closing), remote_job_id="job_other")
    return replace(closing, verdicts=(*(each for each in closing.verdicts if each != adopted(closing)), changed))


def posted_once_more(closing: Closing) -> Closing:
    """The service got a POST of an operation whose authorisations are spent."""
    return after(closing, replace(closing.after, posts=(*closing.after.posts, closing.after.posts[0])))


def posted_by_nobody(closing: Closing) -> Closing:
    stranger = replace(closing.after.posts[0], body_sha256="0" * 64)
    return after(closing, replace(closing.after, posts=(*closing.after.posts, stranger)))


def authorised_by_nobody(closing: Closing) -> Closing:
    operation = closing.after.operations[adopted(closing).operation_id]
    return with_operation(closing, replace(operation, authorisation=2))


def verdict_without_authorisation(closing: Closing) -> Closing:
    operation = closing.after.operations[proven(closing).operation_id]
    return with_operation(closing, replace(operation, authorisation=1))


def job_without_owner(closing: Closing) -> Closing:
    return replace(closing, owners=closing.owners[1:])


def job_with_two_owners(closing: Closing) -> Closing:
    return replace(closing, owners=(*closing.owners, closing.owners[0]))


def job_owned_by_another(closing: Closing) -> Closing:
    first, second, *others = closing.owners
    crossed = (replace(first, operation_id=second.operation_id), replace(second, operation_id=first.operation_id))
    return replace(closing, owners=(*crossed, *others))


def orphan_left(closing: Closing) -> Closing:
    orphan = Owner(remote_job_id="job_more", operation_id=closing.owners[0].operation_id, role="orphan")
    return replace(closing, owners=(*closing.owners, orphan))


def owner_of_no_job(closing: Closing) -> Closing:
    stranger = Owner(remote_job_id="job_more", operation_id=OperationId(UUID(int=1)), role="owner")
    return replace(closing, owners=(*closing.owners, stranger))


def file_vanished(closing: Closing) -> Closing:
    return after(closing, replace(closing.after, found=dict(list(closing.after.found.items())[1:])))


def authorised_and_never_sent(closing: Closing) -> Closing:
    operation = closing.after.operations[proven(closing).operation_id]
    return with_operation(closing, replace(operation, phase=Phase.PREPARED, remote_job_id=None))


def rendered_twice(closing: Closing) -> Closing:
    again = replace(closing.after.jobs[0], id="job_again", net=Decimal(0))
    return after(closing, replace(closing.after, jobs=(*closing.after.jobs, again)))


def billed_more(closing: Closing) -> Closing:
    job = paid_job(closing)
    jobs = tuple(replace(each, net=each.net + 1) if each == job else each for each in closing.after.jobs)
    return after(closing, replace(closing.after, jobs=jobs))


def billed_to_another_tenant(closing: Closing) -> Closing:
    """The sum over all tenants stays what it is."""
    job = paid_job(closing)
    payer = next(each for each in closing.after.operations.values() if each.specification_hash == job.operation_hash)
    other = next(
        each
        for each in closing.after.jobs
        for operation in closing.after.operations.values()
        if operation.specification_hash == each.operation_hash and operation.tenant_id != payer.tenant_id
    )
    change = {job.id: Decimal(-1), other.id: Decimal(1)}
    jobs = tuple(replace(each, net=each.net + change.get(each.id, 0)) for each in closing.after.jobs)
    return after(closing, replace(closing.after, jobs=jobs))


def charged_as_assumed(closing: Closing) -> Closing:
    return with_dispatches(closing, lambda each: replace(each, basis="assumed") if each.charged else each)


def still_held(closing: Closing) -> Closing:
    """A dispatch that costs nothing was never settled."""
    free = next(each for each in closing.after.dispatches if each.charged == 0 and each.held)
    return with_dispatches(closing, lambda each: replace(each, charged=None) if each == free else each)


def allowance_with_a_hold(closing: Closing) -> Closing:
    first, *others = closing.allowances
    return replace(closing, allowances=(replace(first, held=Decimal(5)), *others))


def allowance_charged_too_little(closing: Closing) -> Closing:
    first, *others = closing.allowances
    return replace(closing, allowances=(replace(first, charged=first.charged - 1), *others))


def allowance_with_more_left(closing: Closing) -> Closing:
    first, *others = closing.allowances
    return replace(closing, allowances=(replace(first, left=(first.left or 0) + Decimal(1)), *others))


def allowance_raised(closing: Closing) -> Closing:
    first, *others = closing.allowances
    raised = replace(first, limit=(first.limit or 0) + Decimal(1), left=(first.left or 0) + Decimal(1))
    return replace(closing, allowances=(raised, *others))


def allowance_gone(closing: Closing) -> Closing:
    return replace(closing, allowances=closing.allowances[1:])


def something_found(closing: Closing) -> Closing:
    finding = Finding(
        check="S5",
        kind="two_owners",
        operation_id=None,
        tenant_id=None,
        dispatch_id=None,
        detail="job_1",
        remedy="look at it",
    )
    return replace(closing, findings=(finding,))


def test_the_final_account_of_a_real_performance_holds(closing: Closing) -> None:
    balance = balanced(closing)
    assert failing(balance) == set()
    assert balance.ok
    assert balance.figures["charged"] == balance.figures["billed"] > 0
    assert balance.figures["posts_authorised_again"] == balance.figures["proven_absent"] > 0
    assert balance.figures["adopted"] >= balance.figures["forced"] > 0
    assert balance.figures["uncertain_left"] == balance.figures["audit_findings"] == 0


@pytest.mark.parametrize(
    ("falsify", "claim"),
    [
        (doubt_left, DOUBTS),
        (doubt_that_nobody_decided, DOUBTS),
        (another_job_adopted, DOUBTS),
        (posted_once_more, POSTS),
        (posted_by_nobody, POSTS),
        (authorised_by_nobody, POSTS),
        (verdict_without_authorisation, POSTS),
        (job_without_owner, OWNERS),
        (job_with_two_owners, OWNERS),
        (job_owned_by_another, OWNERS),
        (orphan_left, OWNERS),
        (owner_of_no_job, OWNERS),
        (file_vanished, WHOLE),
        (authorised_and_never_sent, WHOLE),
        (rendered_twice, WHOLE),
        (billed_more, BILL),
        (billed_to_another_tenant, BILL),
        (charged_as_assumed, BILL),
        (still_held, BILL),
        (allowance_with_a_hold, PURSES),
        (allowance_charged_too_little, PURSES),
        (allowance_with_more_left, PURSES),
        (allowance_raised, PURSES),
        (allowance_gone, PURSES),
        (something_found, AUDIT),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_a_falsified_fact_is_noticed(closing: Closing, falsify: Falsified, claim: str) -> None:
    balance = balanced(falsify(closing))
    assert claim in failing(balance)
    assert not balance.ok
