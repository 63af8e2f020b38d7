"""Remote jobs that may be the one in doubt, from everywhere they can be named: for a person to look at, never acted on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from coatcheck.app.reconciling.service import asking_about, provider_of
from coatcheck.app.reconciling.views import Candidate
from coatcheck.config import Settings
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import Phase
from coatcheck.errors import MissingExtra, SettingInvalid
from coatcheck.provider import port
from coatcheck.seams import Seams
from coatcheck.store.db import Database
from coatcheck.store.doubts import Standing, recorded
from coatcheck.store.orphans import Orphan, orphans_of

if TYPE_CHECKING:
    from coatcheck.app.asking import Asking


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Looks for the jobs that one operation's dispatch may have made: `await Search(...).found(ask=True)`."""

    reading: Database
    settings: Settings
    seams: Seams
    standing: Standing

    async def found(self, *, ask: bool) -> tuple[tuple[Candidate, ...], str]:
        """The candidates, and one sentence on what the service was asked. A service that cannot be asked is no failure."""
        own = await self._own()
        if self.standing.operation.phase is not Phase.UNCERTAIN:
            return tuple(own), "The service was not asked: nothing is in doubt any more."
        if not ask:
            return await self._marked(own), "The service was not asked."
        try:
            provider = provider_of(self.settings, self.standing.operation)
            async with asking_about(provider, self.seams) as service:
                theirs, told = await self._theirs(service)
        except (SettingInvalid, MissingExtra) as error:
            theirs, told = [], f"The service was not asked: {error.message}."
        return await self._marked([*own, *theirs]), told

    async def _own(self) -> list[Candidate]:
        """What is recorded here: an id in a reply that was cut, and late jobs of earlier dispatches."""
        operation_id, named = self.standing.operation.operation_id, self.standing.candidate_id
        late = await orphans_of(self.reading, operation_id)
        replied = [] if named is None else [Candidate(remote_job_id=named, source="reply")]
        return [*replied, *(self._orphan(each) for each in late)]

    def _orphan(self, found: Orphan) -> Candidate:
        standing = self.standing
        is_earlier = found.number is not None and found.number != standing.number
        return Candidate(
            remote_job_id=found.remote_job_id,
            source="orphan",
            spends=standing.held if is_earlier and found.resolved_at is None else None,
            unit=standing.held_unit if is_earlier and found.resolved_at is None else None,
            resolved_at=found.resolved_at,
            resolved_by=found.resolved_by,
            resolution=found.resolution,
        )

    async def _theirs(self, service: "Asking") -> tuple[list[Candidate], str]:
        standing, margin = self.standing, timedelta(seconds=service.provider.margin_s)
        dispatch_id = standing.operation.dispatch_id
        if standing.begun_at is None or standing.quiescent_at is None or dispatch_id is None:
            return [], "The service was not asked: the dispatch is not recorded."
        found = await service.find(dispatch_id)
        listed = await service.listed(standing.begun_at - margin, standing.quiescent_at + margin)
        echoed = [_candidate(found.candidate, "reference")] if isinstance(found, port.Echoed) else []
        names = {each.remote_job_id for each in echoed}
        others = listed.candidates if isinstance(listed, port.Listing) else ()
        theirs = [*echoed, *(_candidate(each, "list") for each in others if each.remote_job_id not in names)]
        return theirs, _told(listed)

    async def _marked(self, found: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """With whom each of them is recorded already, if that is another operation."""
        account, own = self.standing.operation.account, self.standing.operation.operation_id
        if account is None or not found:
            return tuple(found)
        rows = await recorded(self.reading, [(account, each.remote_job_id) for each in found])
        taken = {str(row.remote_job_id): operation_text(row.operation_id) for row in rows if row.operation_id != own}
        return tuple(replace(each, taken_by=taken.get(each.remote_job_id)) for each in found)


def _candidate(found: port.Candidate, source: str) -> Candidate:
    return Candidate(
        remote_job_id=found.remote_job_id,
        source=source,
        remote_status=found.remote_status,
        created_at=found.created_at,
        reference=found.reference,
    )


def _told(listed: port.Listed | None) -> str:
    match listed:
        case None:
            return "The service has no list to ask; its own records may be looked at elsewhere."
        case port.Listing():
            more = ", of which there are more than it shows" if listed.is_cut else ""
            return f"The service listed {len(listed.candidates)} jobs that were created in the dispatch's time{more}."
        case port.Denied():
            return f"The service refused the credential (status {listed.status}), so its list is not known."
        case port.Transient():
            return f"The service could not be asked ({listed.cause}), so its list is not known."
        case port.Nonsense():
            return f"The service's list could not be read ({listed.detail})."
        case _:
            assert_never(listed)
