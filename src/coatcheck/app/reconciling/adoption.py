"""What a remote job must be to be adopted: unowned, of this account, known to the service, made in the dispatch's window, and no other's.

Everything is checked before anything is written. Only the overlap with other tenants' dispatches can be overridden, and then it is told.
An orphan of this operation was named by a reply to one of its own dispatches: whose it is needs no window and no reference any more.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from coatcheck.app.reconciling.deciding import iso
from coatcheck.app.reconciling.service import asking_about
from coatcheck.app.story.wording import quoted
from coatcheck.config import ProviderSettings, Settings
from coatcheck.core.events import Snapshot
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import RemoteJobId
from coatcheck.errors import (
    Failed,
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
from coatcheck.store.doubts import Doubt, Overlapping, overlapping, recorded

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
    def of(cls, doubt: Doubt, provider: ProviderSettings) -> "Window":
        """The window of the dispatch that the operation stands on. Raises `Failed` where its row is gone."""
        if doubt.begun_at is None or doubt.quiescent_at is None:
            name = operation_text(doubt.operation.operation_id)
            raise Failed(f"expected the dispatch of {name}, got none recorded", next="run `coatcheck audit`")
        margin = timedelta(seconds=provider.margin_s)
        return cls(since=doubt.begun_at - margin, until=doubt.quiescent_at + margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Examines one job for one operation: `await Examination(...).passed(force=False)` are the overlaps that were overridden."""

    reading: Database
    settings: Settings
    seams: Seams
    doubt: Doubt
    provider: ProviderSettings
    remote_job_id: RemoteJobId

    async def passed(self, *, force: bool) -> tuple[Overlapping, ...]:
        """Everything in its order. Raises a kind of `AdoptionRefused`, or `Unavailable` where the service cannot be asked."""
        window = Window.of(self.doubt, self.provider)
        is_ours = await self._is_free()
        async with asking_about(self.provider, self.seams) as ask:
            snapshot = seen(await ask.look(self.remote_job_id), self.remote_job_id)
        if is_ours:
            return ()
        self._was_made_by_it(snapshot, window)
        if snapshot.reference is not None and snapshot.reference == str(self.doubt.operation.dispatch_id):
            return ()
        found = await self._others(window)
        if found and not force:
            raise self._overlap(found)
        return found

    async def _is_free(self) -> bool:
        """Nobody else has it, in this account or by another name of the same service; whether it is an orphan of this operation."""
        own = self.provider
        others = {
            each.account
            for each in self.settings.providers.values()
            if each.base_url == own.base_url and each.account != own.account
        }
        found = await recorded(self.reading, [(account, self.remote_job_id) for account in (own.account, *others)])
        for each in found:
            name, job = operation_text(each.operation_id), quoted(self.remote_job_id)
            if each.account != own.account:
                raise RemoteJobElsewhere(
                    f"expected a job of the account {own.account!a}, got {job}, which is recorded for {name} under the account {each.account!a}"
                )
            if each.operation_id != self.doubt.operation.operation_id:
                raise RemoteJobOwned(f"expected a job that nobody has, got {job}, which is {name}'s ({each.role})")
        return bool(found)

    def _was_made_by_it(self, snapshot: Snapshot, window: Window) -> None:
        dispatch_id, made_at = str(self.doubt.operation.dispatch_id), snapshot.created_at
        if self.provider.echoes and snapshot.reference not in (None, dispatch_id):
            raise OtherReference(
                f"expected a job that repeats the dispatch {dispatch_id}, got one that repeats {quoted(snapshot.reference or '')}"
            )
        if made_at is not None and not window.since <= made_at <= window.until:
            raise OutsideWindow(
                f"expected a job that was created between {iso(window.since)} and {iso(window.until)}, got one of {iso(made_at)}"
            )

    async def _others(self, window: Window) -> tuple[Overlapping, ...]:
        return await overlapping(
            self.reading,
            account=self.provider.account,
            tenant_id=self.doubt.operation.tenant_id,
            since=window.since,
            until=window.until,
        )

    def _overlap(self, found: tuple[Overlapping, ...]) -> Overlap:
        names = ", ".join(f"{operation_text(each.operation_id)} ({each.phase})" for each in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return Overlap(
            "expected no other tenant's dispatch in the account at the same time, whose job this may be,"
            f" got {len(found)}: {names}{more}",
            next="make sure by the service's own records that the job is this operation's, then add --force",
        )


def overridden(found: tuple[Overlapping, ...]) -> str:
    """The overlaps that a person overrode, as the history keeps them."""
    names = ", ".join(operation_text(each.operation_id) for each in found[:_KEPT])
    more = f" and {len(found) - _KEPT} more" if len(found) > _KEPT else ""
    return f"forced past other tenants' dispatches: {names}{more}"


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
