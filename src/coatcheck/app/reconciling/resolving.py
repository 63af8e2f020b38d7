"""Dealing with an orphan: marked once, by one person; a commit that nobody saw is found by its actor and reason."""

from dataclasses import asdict
from decimal import Decimal
from typing import Final

import psycopg

from coatcheck.app.reconciling.deciding import Decider, iso, not_seen
from coatcheck.app.reconciling.views import Orphan, Resolution
from coatcheck.app.story.wording import quoted
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import RemoteJobId
from coatcheck.errors import CommitUnknown, NotFound, Refused, StaleRevision, Unavailable
from coatcheck.store import orphans as store
from coatcheck.store.db import Trouble, trouble
from coatcheck.store.failures import meaning
from coatcheck.store.orphans import Resolved, Resolving

_PAUSES_S: Final = (0.1, 0.5, 1.0, 2.0, 4.0)


def orphan_of(found: store.Orphan) -> Orphan:
    """The public form of an orphan."""
    return Orphan(**{**asdict(found), "operation_id": operation_text(found.operation_id)})


async def resolve_orphan(
    decider: Decider,
    *,
    account: str,
    remote_job_id: RemoteJobId,
    actor: str,
    reason: str,
    charged: Decimal | None,
    revision: int | None,
) -> Resolution:
    """Mark it, and correct the charge of its dispatch where an amount is given. Raises as `OperatorDecisions.resolve_orphan` says."""
    was_sent = False
    for pause_s in _PAUSES_S:
        try:
            found = await store.resolve(
                decider.writing,
                account=account,
                remote_job_id=remote_job_id,
                actor=actor,
                reason=reason,
                charged=charged,
                revision=revision,
            )
        except Unavailable:
            if not was_sent:
                raise
        except CommitUnknown:
            was_sent = True
        except psycopg.Error as error:
            if trouble(error) in (Trouble.BAD_ROW, Trouble.DEFECT):
                raise meaning(error) from None
            was_sent = was_sent or trouble(error) is Trouble.UNKNOWN
        else:
            ours = found is not None and was_sent and (found.resolved_by, found.resolution) == (actor, reason)
            _check(found, remote_job_id, account, is_ours=ours)
            return _resolution(found, remote_job_id, account, actor, reason, charged)
        await decider.seams.sleep(pause_s)
    raise not_seen(quoted(remote_job_id), was_sent=was_sent)


def _check(found: Resolving | None, remote_job_id: str, account: str, *, is_ours: bool) -> None:
    job = f"{quoted(remote_job_id)} of the account {quoted(account)}"
    listed = "`coatcheck orphans list --all` shows every one"
    if found is None or found.status is Resolved.OWNED:
        raise NotFound("expected an orphan, got a job that is none here", next=listed)
    name = operation_text(found.operation_id)
    match found.status:
        case Resolved.RESOLVED if not is_ours and found.resolved_at is not None:
            by = f"{quoted(found.resolved_by or '')} at {iso(found.resolved_at)}: {quoted(found.resolution or '')}"
            raise StaleRevision(f"expected {job} to be unresolved, got one that was resolved by {by}", next=listed)
        case Resolved.STALE:
            raise StaleRevision(
                f"expected {name} as it was looked at, got revision {found.revision} ({found.phase})",
                next=f"`coatcheck operations show {name}` shows it; decide again if that is still needed",
            )
        case Resolved.OTHER_CHARGE:
            raise Refused(
                f"charged: expected a dispatch that {job} alone accounts for, got one whose charge is another job's",
                next="leave the amount out: that dispatch is charged by the service's own figure",
            )
        case _:
            return


def _resolution(
    found: Resolving | None, remote_job_id: str, account: str, actor: str, reason: str, charged: Decimal | None
) -> Resolution:
    if found is None or found.resolved_at is None:
        raise NotFound("expected an orphan, got a job that is none here")
    return Resolution(
        account=account,
        remote_job_id=remote_job_id,
        operation_id=operation_text(found.operation_id),
        phase=found.phase,
        revision=found.revision,
        charged=charged,
        resolved_at=found.resolved_at,
        resolved_by=actor,
        resolution=reason,
    )
