"""No line of the account can fail to fail: evidence of a real performance, falsified one book at a time."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from coatcheck.core.operation import OperationId, Phase, RemoteJobId, TenantId
from coatcheck.demo.account import Account, settled
from coatcheck.demo.closing import Closing
from coatcheck.demo.evidence import Evidence

Falsified = Callable[[Evidence], Evidence]


@pytest.fixture
def evidence(closing: Closing) -> Evidence:
    return closing.before


def failing(account: Account) -> set[str]:
    return {line.claim for line in account.lines if not line.holds}


def operation_lost(evidence: Evidence) -> Evidence:
    """A committed order without operation."""
    gone = evidence.placed[0].operation_id
    operations = {name: each for name, each in evidence.operations.items() if name != gone}
    return replace(evidence, operations=operations, outputs={**evidence.outputs, gone: ()})


def rollback_ignored(evidence: Evidence) -> Evidence:
    """The order that was rolled back has an operation."""
    tenant_id, key = evidence.left
    some = next(iter(evidence.operations.values()))
    left = replace(some, operation_id=OperationId(UUID(int=1)), tenant_id=TenantId(tenant_id), operation_key=key)
    return replace(evidence, operations={**evidence.operations, left.operation_id: left})


def repeated_key_made_another(evidence: Evidence) -> Evidence:
    return replace(evidence, repeated=(evidence.repeated[0], OperationId(UUID(int=1))))


def kill_missed(evidence: Evidence) -> Evidence:
    return replace(evidence, strikes=tuple(replace(strike, in_flight=frozenset()) for strike in evidence.strikes))


def posted_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, posts=(*evidence.posts, evidence.posts[0]))


def posted_by_nobody(evidence: Evidence) -> Evidence:
    return replace(evidence, posts=(*evidence.posts, replace(evidence.posts[0], body_sha256="0" * 64)))


def loss_forgotten(evidence: Evidence) -> Evidence:
    """One of the uncertain operations counts as rejected."""
    doubtful = next(each for each in evidence.operations.values() if each.phase is Phase.UNCERTAIN)
    forgotten = replace(doubtful, phase=Phase.REJECTED)
    return replace(evidence, operations={**evidence.operations, forgotten.operation_id: forgotten})


def loss_invented(evidence: Evidence) -> Evidence:
    known = next(each for each in evidence.operations.values() if each.phase is Phase.ACCEPTED)
    invented = replace(known, phase=Phase.UNCERTAIN, remote_job_id=None)
    return replace(evidence, operations={**evidence.operations, invented.operation_id: invented})


def file_vanished(evidence: Evidence) -> Evidence:
    return replace(evidence, found=dict(list(evidence.found.items())[1:]))


def file_changed(evidence: Evidence) -> Evidence:
    return replace(evidence, found={**evidence.found, next(iter(evidence.found)): "0" * 64})


def file_of_another(evidence: Evidence) -> Evidence:
    """The service made other bytes than were recorded and stored."""
    return replace(
        evidence, jobs=tuple(replace(job, files=dict.fromkeys(job.files, "0" * 64)) for job in evidence.jobs)
    )


def job_without_owner(evidence: Evidence) -> Evidence:
    return replace(evidence, jobs=(*evidence.jobs, replace(evidence.jobs[0], operation_hash="0" * 64, net=Decimal(0))))


def job_of_another(evidence: Evidence) -> Evidence:
    known = next(each for each in evidence.operations.values() if each.phase is Phase.ACCEPTED)
    other = replace(known, remote_job_id=RemoteJobId("job_other"))
    return replace(evidence, operations={**evidence.operations, other.operation_id: other})


def without_end(evidence: Evidence) -> Evidence:
    known = next(each for each in evidence.operations.values() if each.phase is Phase.REJECTED or each.is_final)
    endless = replace(known, phase=Phase.PREPARED, remote_job_id=None)
    return replace(evidence, operations={**evidence.operations, endless.operation_id: endless})


def rendered_twice(evidence: Evidence) -> Evidence:
    again = replace(evidence.jobs[0], id=f"{evidence.jobs[0].id}-again", net=Decimal(0))
    return replace(evidence, jobs=(*evidence.jobs, again))


def dispatched_twice(evidence: Evidence) -> Evidence:
    again = next(each for each in evidence.dispatches if each.charged)
    return replace(evidence, dispatches=(*evidence.dispatches, replace(again, charged=Decimal(0))))


def charged_too_little(evidence: Evidence) -> Evidence:
    dispatches = tuple(
        replace(each, charged=None if each.charged is None else Decimal(0)) for each in evidence.dispatches
    )
    return replace(evidence, dispatches=dispatches)


def nothing_held(evidence: Evidence) -> Evidence:
    return replace(evidence, dispatches=tuple(replace(each, held=Decimal(0)) for each in evidence.dispatches))


ORDERS, KILL, POSTS = (
    "Each committed order is one operation",
    "A worker was killed in the middle of a POST",
    "No operation was posted twice",
)
REPLIES, FILES = "Lost replies are the uncertain operations", "Delivered files are those the service made"
LOST, TWICE, MONEY = "Nothing is lost", "Nothing is there twice", "The bill is what was written down or is held"


def test_the_account_of_a_real_performance_holds(evidence: Evidence) -> None:
    assert failing(settled(evidence)) == set()


@pytest.mark.parametrize(
    ("falsify", "claim"),
    [
        (operation_lost, ORDERS),
        (rollback_ignored, ORDERS),
        (repeated_key_made_another, ORDERS),
        (kill_missed, KILL),
        (posted_twice, POSTS),
        (posted_by_nobody, POSTS),
        (loss_forgotten, REPLIES),
        (loss_invented, REPLIES),
        (file_vanished, FILES),
        (file_changed, FILES),
        (file_of_another, FILES),
        (job_without_owner, LOST),
        (job_of_another, LOST),
        (without_end, LOST),
        (operation_lost, LOST),
        (rendered_twice, TWICE),
        (dispatched_twice, TWICE),
        (charged_too_little, MONEY),
        (nothing_held, MONEY),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_a_falsified_book_is_noticed(evidence: Evidence, falsify: Falsified, claim: str) -> None:
    account = settled(falsify(evidence))
    assert claim in failing(account)
    assert not account.ok
