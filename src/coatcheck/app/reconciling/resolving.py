"""Dealing with an orphan: marked once, by one person; a commit that nobody saw is found by its actor and reason."""

from decimal import Decimal

from coatcheck.app.reconciling.deciding import Decider, iso
from coatcheck.app.reconciling.trying import until_seen
from coatcheck.app.reconciling.views import Resolution
from coatcheck.app.story.wording import quoted
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import RemoteJobId
from coatcheck.errors import NotFound, Refused, StaleRevision
from coatcheck.seams import Point
from coatcheck.store.orphans import Resolved, Resolving, resolve


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
    """Mark it, and correct what its dispatch is charged where an amount is given. Raises as `OperatorDecisions.resolve_orphan` says."""

    async def attempt(was_sent: bool) -> tuple[Resolving | None, bool]:  # noqa: FBT001 - as `until_seen` calls it
        decider.seams.faults.reached(Point.C2_COMMAND_COMMIT_SENT)
        found = await resolve(
            decider.writing,
            account=account,
            remote_job_id=remote_job_id,
            actor=actor,
            reason=reason,
            charged=charged,
            revision=revision,
        )
        return found, found is not None and was_sent and (found.resolved_by, found.resolution) == (actor, reason)

    name = quoted(remote_job_id)
    decider.seams.faults.reached(Point.C1_AUTHORISED)
    found, is_ours = await until_seen(attempt, seams=decider.seams, name=name, look="coatcheck orphans list --all")
    _check(found, remote_job_id, account, is_ours=is_ours)
    decider.seams.faults.reached(Point.C3_APPLIED)
    return _resolution(found, remote_job_id, account, actor, reason, charged)


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
                f"charged: expected the dispatch that made {job}, got none recorded",
                next="leave the amount out, and run `coatcheck audit`: it names what is lost",
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
