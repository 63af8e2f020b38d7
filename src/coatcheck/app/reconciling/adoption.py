"""What a remote job must be to be adopted: unowned, of this account, known to the service, made in the dispatch's window, and no other's.

Everything is checked before anything is written. Two things can be overridden, and then they are kept beside the reason: the overlap with other
tenants' dispatches, and a job of the same id in another account of the service, once the service said that this account has it.
An orphan of this operation was named by a reply to one of its own dispatches: whose it is needs no window and no reference any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from coatcheck.app.reconciling.deciding import iso, unrecorded
from coatcheck.app.reconciling.service import asking_about
from coatcheck.app.story.wording import quoted
from coatcheck.config import ProviderSettings, Settings
from coatcheck.core.events import Snapshot
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import RemoteJobId
from coatcheck.errors import (
    OrphanResolved,
    OtherReference,
    OutsideWindow,
    Overlap,
    RemoteJobElsewhere,
    RemoteJobOwned,
    RemoteJobUnknown,
    RemoteJobUnreadable,
    Unavailable,
)
from coatcheck.provider.port import Absent, Denied, Look, Nonsense, Seen, StillWaiting, Transient
from coatcheck.seams import Seams
from coatcheck.store.db import Database
from coatcheck.store.doubts import Overlapping, Recorded, Standing, overlapping, recorded

OWN_CANDIDATE = "the job that its own reply showed"
_KEPT = 5
"""Overlapping operations that the history names."""
_SHOWN = 20
"""Overlapping operations that a message names; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """When a dispatch may have made a job, by its own instants, widened by what clocks may differ."""

    since: datetime
    until: datetime

    @classmethod
    def of(cls, standing: Standing, provider: ProviderSettings) -> "Window":
        """The window of the dispatch that the operation stands on. Raises `Failed` where its row is gone."""
        if standing.begun_at is None or standing.quiescent_at is None:
            raise unrecorded(standing)
        margin = timedelta(seconds=provider.margin_s)
        return cls(since=standing.begun_at - margin, until=standing.quiescent_at + margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A job that may be adopted, and what a person overrode for it: overlaps, records of its id in other accounts, an instant nobody can read.

    `spends`: it is an earlier dispatch's, so the present one bought something that nobody has.
    """

    overlaps: tuple[Overlapping, ...] = ()
    elsewhere: tuple[Recorded, ...] = ()
    spends: bool = False
    is_untimed: bool = False
    is_contradicted: bool = False

    @property
    def overridden(self) -> str:
        """What was overridden, as the history keeps it; nothing where nothing was."""
        told = [
            *(
                [
                    "other tenants' dispatches: "
                    + _named([operation_text(each.operation_id) for each in self.overlaps], _KEPT)
                ]
                if self.overlaps
                else []
            ),
            *(
                f"the same id of {operation_text(each.operation_id)} under the account {each.account!a}"
                for each in self.elsewhere[:_KEPT]
            ),
            *(["an instant of its creation that cannot be read"] if self.is_untimed else []),
            *([OWN_CANDIDATE] if self.is_contradicted else []),
        ]
        return f"forced past {', and '.join(told)}" if told else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Examines one job for one operation: `await Examination(...).passed(force=False)`."""

    reading: Database
    settings: Settings
    seams: Seams
    standing: Standing
    provider: ProviderSettings
    remote_job_id: RemoteJobId

    async def passed(self, *, force: bool) -> Passed:
        """Everything in its order. Raises a kind of `AdoptionRefused`, or `Unavailable` where the service cannot be asked."""
        window = Window.of(self.standing, self.provider)
        found = await recorded(self.reading, [(account, self.remote_job_id) for account in self._accounts()])
        here = next((each for each in found if each.account == self.provider.account), None)
        if here is not None:
            self._is_ours(here)
        async with asking_about(self.provider, self.seams) as ask:
            snapshot = seen(await ask.look(self.remote_job_id), self.remote_job_id)
        elsewhere = tuple(each for each in found if each is not here)
        if elsewhere and not force:
            raise self._elsewhere(elsewhere[0])
        if here is not None:
            present = self.standing.operation.dispatch_id
            return Passed(elsewhere=elsewhere, spends=here.dispatch_id not in (None, present))
        self._was_made_by_it(snapshot, window)
        if snapshot.reference is not None and snapshot.reference == str(self.standing.operation.dispatch_id):
            return Passed(elsewhere=elsewhere)
        if snapshot.is_creation_unreadable and not force:
            raise self._untimed()
        overlaps = await self._others(window)
        shown = next((each for each in overlaps if each.candidate_id == self.remote_job_id), None)
        if shown is not None:
            raise self._theirs(shown)
        is_contradicted = self.standing.candidate_id not in (None, self.remote_job_id)
        if is_contradicted and not force:
            raise self._contradicted()
        if overlaps and not force:
            raise self._overlap(overlaps)
        return Passed(
            elsewhere=elsewhere,
            overlaps=overlaps,
            is_untimed=snapshot.is_creation_unreadable,
            is_contradicted=is_contradicted,
        )

    def _accounts(self) -> set[str]:
        """The operation's own account, and others by which the same service is known."""
        own = self.provider
        return {
            own.account,
            *(each.account for each in self.settings.providers.values() if each.base_url == own.base_url),
        }

    def _is_ours(self, found: Recorded) -> None:
        """What is recorded in this account is an orphan of this very operation, and nobody dealt with it."""
        name, job = operation_text(found.operation_id), quoted(self.remote_job_id)
        if found.operation_id != self.standing.operation.operation_id:
            raise RemoteJobOwned(f"expected a job that nobody has, got {job}, which is {name}'s ({found.role})")
        if found.resolved_at is not None:
            by = f"{quoted(found.resolved_by or '')} at {iso(found.resolved_at)}: {quoted(found.resolution or '')}"
            raise OrphanResolved(
                f"expected a job that nobody dealt with, got {job}, an orphan that was resolved by {by}"
            )

    def _elsewhere(self, found: Recorded) -> RemoteJobElsewhere:
        """Ids are an account's own, so two of them may have a job of one name: that this one has it, the service said."""
        return RemoteJobElsewhere(
            f"expected a job that only the account {self.provider.account!a} names so, got {quoted(self.remote_job_id)},"
            f" which it has, and which is recorded for {operation_text(found.operation_id)} under the account {found.account!a} as well",
            next="make sure by the service's own records that these are two jobs, each account's own, then add --force",
        )

    def _was_made_by_it(self, snapshot: Snapshot, window: Window) -> None:
        dispatch_id, made_at = str(self.standing.operation.dispatch_id), snapshot.created_at
        if self.provider.echoes and snapshot.reference not in (None, dispatch_id):
            raise OtherReference(
                f"expected a job that repeats the dispatch {dispatch_id}, got one that repeats {quoted(snapshot.reference or '')}"
            )
        if made_at is not None and not window.since <= made_at <= window.until:
            raise OutsideWindow(
                f"expected a job that was created between {iso(window.since)} and {iso(window.until)}, got one of {iso(made_at)}"
            )

    def _untimed(self) -> RemoteJobUnreadable:
        """The service says when the job came to exist, and not in a form that is one instant: nothing was checked by it."""
        return RemoteJobUnreadable(
            f"expected to read when the service created {quoted(self.remote_job_id)}, got an instant without an offset or out of range",
            next="make sure by the service's own records that it was created for this dispatch, then add --force",
        )

    async def _others(self, window: Window) -> tuple[Overlapping, ...]:
        return await overlapping(
            self.reading,
            account=self.provider.account,
            tenant_id=self.standing.operation.tenant_id,
            since=window.since,
            until=window.until,
        )

    def _theirs(self, found: Overlapping) -> RemoteJobOwned:
        """A reply to another operation's POST showed this very id: a person who knows better decides that doubt first."""
        return RemoteJobOwned(
            f"expected a job that no other reply shows, got {quoted(self.remote_job_id)}, which the reply to"
            f" {operation_text(found.operation_id)} shows",
            next=f"adopt it for {operation_text(found.operation_id)}: what its reply shows is its job",
        )

    def _contradicted(self) -> Overlap:
        return Overlap(
            f"expected the job that this operation's own reply shows, {quoted(self.standing.candidate_id or '')},"
            f" got {quoted(self.remote_job_id)}",
            next="adopt the one that the reply shows; add --force only if the service's own records say otherwise",
        )

    def _overlap(self, found: tuple[Overlapping, ...]) -> Overlap:
        return Overlap(
            "expected no other tenant's dispatch in the account at the same time, whose job this may be,"
            f" got {len(found)}: {_named([f'{operation_text(each.operation_id)} ({each.phase})' for each in found], _SHOWN)}",
            next="make sure by the service's own records that the job is this operation's, then add --force",
        )


def _named(names: Sequence[str], limit: int) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def seen(look: Look, remote_job_id: RemoteJobId) -> Snapshot:
    """The job as the service knows it. Raises `RemoteJobUnknown`, `RemoteJobUnreadable` or `Unavailable`."""
    job = quoted(remote_job_id)
    match look:
        case Seen():
            return look.snapshot
        case Absent():
            raise RemoteJobUnknown(f"expected a job that the service knows in this account, got {job}")
        case Nonsense():
            raise RemoteJobUnreadable(
                f"expected the service's answer about {job}, got one that cannot be about it ({look.kind}: {look.detail})"
            )
        case Denied():
            message = f"the service refused the credential (status {look.status}), so {job} was not checked"
            raise Unavailable(f"{message}; nothing changed", next="correct the provider's API_KEY, then try again")
        case StillWaiting() | Transient():
            cause = look.cause if isinstance(look, Transient) else "no answer"
            raise Unavailable(
                f"the service could not be asked about {job} ({cause}); nothing changed", next="try again later"
            )
        case _:
            assert_never(look)
