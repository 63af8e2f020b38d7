"""One person's handle: what they see of all tenants' operations, and each decision in their name, made as the modules here say."""

from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal

from coatcheck.app.reading import Opened, read_story
from coatcheck.app.reconciling.adoption import OWN_CANDIDATE, Examination, seen
from coatcheck.app.reconciling.candidates import Search
from coatcheck.app.reconciling.choosing import event_of, possible, view_of
from coatcheck.app.reconciling.deciding import Decider, retired, unrecorded
from coatcheck.app.reconciling.doubts import read_doubts
from coatcheck.app.reconciling.outcome import REQUESTED, cost_of, decision_of
from coatcheck.app.reconciling.resolving import resolve_orphan
from coatcheck.app.reconciling.service import asking_about, provider_of
from coatcheck.app.reconciling.views import Choice, Cost, Decision, Doubt, Evidence, Resolution
from coatcheck.app.reconciling.words import is_same_person, remote_job_id_of, revision_of, words_of
from coatcheck.app.story import tell
from coatcheck.app.story.wording import quoted
from coatcheck.app.streamed import Streamed
from coatcheck.config import Settings
from coatcheck.core import events as ev
from coatcheck.core.amounts import amount_of
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import RemoteJobId
from coatcheck.errors import CandidateExists, Refused, RemoteJobUnknown, SecondPerson
from coatcheck.seams import Seams
from coatcheck.store.doubts import Standing
from coatcheck.store.orphans import Orphan, orphans


class OperatorDecisions:
    """What one person, the `actor`, sees and decides; made by `Coatcheck.for_operator`. All tenants' operations are theirs to see.

    Every decision takes a `reason`, and with `revision` the revision that the person looked at. All raise `Refused` for a call that is wrong,
    `NotFound`, `WrongPhase` and `NotQuiescent` where the operation does not allow it, `StaleRevision` where somebody else was faster,
    `Unavailable` when nothing changed, `CommitUnknown` when nobody saw whether it did.
    """

    def __init__(self, actor: str, *, settings: Settings, seams: Seams, reading: Opened, writing: Opened) -> None:
        self._actor = words_of("actor", actor)
        self._settings = settings
        self._seams = seams
        self._reading = reading
        self._writing = writing

    def doubts(self, *, tenant_id: str | None = None, stuck: bool = False) -> Streamed[Doubt]:
        """What is uncertain, oldest first; `stuck` adds remote jobs that are missing or stalled: `async for doubt in handle.doubts()`."""
        if tenant_id is not None:
            words_of("tenant_id", tenant_id)
        return Streamed(lambda: self._doubts(tenant_id, stuck=stuck))

    async def _doubts(self, tenant_id: str | None, *, stuck: bool) -> AsyncIterator[Doubt]:
        async for found in read_doubts(await self._reading(), tenant_id=tenant_id, stuck=stuck):
            yield found

    async def doubt(self, operation_id: str) -> Doubt:
        """One operation as it stands now, in doubt or not, with the decisions that are possible. Raises `NotFound`."""
        return view_of(await (await self._decider()).load(operation_id, None))

    async def evidence(self, operation_id: str, *, ask: bool = True) -> Evidence:
        """Everything that helps to decide: the story, jobs that may be the one, the decisions with their commands.

        `await handle.evidence("op_01m8kq…")`; without `ask` the service is left alone. Raises `NotFound` and `Unavailable` (the database).
        """
        decider = await self._decider()
        standing = await decider.load(operation_id, None)
        told = await read_story(decider.reading, operation_id, None)
        search = Search(reading=decider.reading, settings=self._settings, seams=self._seams, standing=standing)
        candidates, service = await search.found(ask=ask)
        return Evidence(
            doubt=view_of(standing),
            story=tell(told.record, told.kept, now=told.record.read_at),
            candidates=candidates,
            service=service,
            possible=tuple(possible(standing)),
        )

    async def adopt(
        self, operation_id: str, remote_job_id: str, *, reason: str, force: bool = False, revision: int | None = None
    ) -> Decision:
        """Say that this remote job is the one: `await handle.adopt("op_01m8kq…", "job-1", reason="seen in their list")`.

        The service is asked for it first. Raises a kind of `AdoptionRefused` for a job that cannot be this operation's; `force` overrides
        `Overlap` and `RemoteJobElsewhere`, and nothing else. An orphan of an earlier dispatch has its own money: what the present dispatch
        holds then counts as spent, as `Candidate.spends` said before.
        """
        why, job = words_of("reason", reason), remote_job_id_of(remote_job_id)
        decider = await self._decider()
        standing = await decider.load(operation_id, revision)
        decider.step(standing, self._event(Choice.ADOPT, standing, why), revision)
        provider = provider_of(self._settings, standing.operation)
        event = ev.Adopt(actor=self._actor, reason=why, remote_job_id=job, observe_for_s=provider.observe_for_s)
        examination = Examination(
            reading=decider.reading,
            settings=self._settings,
            seams=self._seams,
            standing=standing,
            provider=provider,
            remote_job_id=job,
        )
        passed = await examination.passed(force=force)
        if passed.overridden:
            # what was overridden stays readable beside the reason, whoever asks later
            event = replace(event, reason=f"{why} ({passed.overridden})")
        made = await self._decided(decider, standing, event, revision, spends=passed.spends)
        return replace(made, overlaps=tuple(operation_text(each.operation_id) for each in passed.overlaps))

    async def prove_absent(
        self, operation_id: str, *, reason: str, force: bool = False, revision: int | None = None
    ) -> Decision:
        """Say that the service made no job: the hold is released, and one more POST is authorised. Refused before `quiescent_at`.

        Where the reply showed an id, the service is asked for it first: raises `CandidateExists` when it has the job, and `Unavailable` when
        it cannot be asked. `force` asks nobody, and the history says so.
        """
        why = words_of("reason", reason)
        decider = await self._decider()
        standing = await decider.load(operation_id, revision)
        event = self._event(Choice.PROVE_ABSENT, standing, why)
        decider.step(standing, event, revision)
        if standing.candidate_id is not None:
            if force:
                event = self._event(Choice.PROVE_ABSENT, standing, f"{why} (forced past {OWN_CANDIDATE})")
            else:
                await self._is_unknown(standing)
        return await self._decided(decider, standing, event, revision)

    async def _is_unknown(self, standing: Standing) -> None:
        """The job that the reply showed is none that the service has. Raises `CandidateExists` and `Unavailable`."""
        provider = provider_of(self._settings, standing.operation)
        job = RemoteJobId(standing.candidate_id or "")
        async with asking_about(provider, self._seams) as ask:
            try:
                seen(await ask.look(job), job)
            except RemoteJobUnknown:
                return
        raise CandidateExists(
            f"expected that the service made no job, got {quoted(job)}, which the reply showed and the service has",
            next="adopt it if it is this operation's, redispatch to pay twice knowingly, or add --force if it is certainly another's",
        )

    async def redispatch(self, operation_id: str, *, reason: str, revision: int | None = None) -> Decision:
        """Spend again: what the former dispatch holds counts as spent, and one more POST is authorised. Refused before `quiescent_at`.

        Where REDISPATCH_BY_TWO is set, the first call only asks for it, and another actor's call, with nothing in between, carries it out.
        Raises `SecondPerson` for the same actor's.
        """
        why = words_of("reason", reason)
        decider = await self._decider()
        standing = await decider.load(operation_id, revision)
        event = self._redispatch(standing, why, revision, decider)
        return await self._decided(decider, standing, event, revision)

    async def redispatch_cost(self, operation_id: str, *, revision: int | None = None) -> Cost:
        """What `redispatch` would cost now; raises what it would raise, and changes nothing."""
        decider = await self._decider()
        standing = await decider.load(operation_id, revision)
        decider.step(standing, self._redispatch(standing, "asked for its cost", revision, decider), revision)
        return cost_of(standing)

    async def write_off(
        self, operation_id: str, *, reason: str, released: bool = False, revision: int | None = None
    ) -> Decision:
        """Give up on what is uncertain, missing or stalled. What is held counts as spent, or with `released` True as not spent."""
        if not isinstance(released, bool):
            raise Refused(
                f"released: expected True or False, got {type(released).__name__}",
                next="give one of the two; nothing changed",
            )
        return await self._chosen(Choice.WRITE_OFF, operation_id, reason, revision, released=released)

    async def note(self, operation_id: str, *, reason: str, revision: int | None = None) -> Decision:
        """Keep with the operation what was found out about it, in any phase: `await handle.note("op_01m8kq…", reason="theirs, says ticket 4711")`.

        Settles what the audit reports of its dispatches until then: a job of another operation, a displaced dispatch. Moves no money.
        """
        decider = await self._decider()
        event = ev.Note(actor=self._actor, reason=words_of("reason", reason))
        standing = await decider.load(operation_id, revision)
        return await self._decided(decider, standing, event, revision)

    def orphans(self, *, resolved: bool = False) -> Streamed[Orphan]:
        """Paid jobs that no operation could take; `resolved` adds those that somebody dealt with: `await handle.orphans()`."""
        return Streamed(lambda: self._orphans(resolved=resolved))

    async def _orphans(self, *, resolved: bool) -> AsyncIterator[Orphan]:
        async for found in orphans(await self._reading(), with_resolved=resolved):
            yield found

    async def resolve_orphan(
        self,
        remote_job_id: str,
        *,
        account: str,
        reason: str,
        charged: Decimal | int | str | None = None,
        revision: int | None = None,
    ) -> Resolution:
        """Mark an orphan as dealt with: cancelled at the service, refunded, or its output fetched by hand.

        `await handle.resolve_orphan("job-1", account="genace", reason="refunded", charged=0)`. `charged` is what the service says that it
        cost in the end, and corrects its dispatch. Raises `NotFound` for a job that is no orphan, `StaleRevision` where it was resolved.
        """
        why, amount = words_of("reason", reason), None if charged is None else amount_of("charged", charged)
        decider = await self._decider()
        return await resolve_orphan(
            decider,
            account=words_of("account", account),
            remote_job_id=remote_job_id_of(remote_job_id),
            actor=self._actor,
            reason=why,
            charged=amount,
            revision=revision_of(revision),
        )

    async def _chosen(
        self, choice: Choice, operation_id: str, reason: str, revision: int | None, *, released: bool = False
    ) -> Decision:
        why = words_of("reason", reason)
        decider = await self._decider()
        standing = await decider.load(operation_id, revision)
        event = self._event(choice, standing, why, released=released)
        return await self._decided(decider, standing, event, revision)

    def _event(self, choice: Choice, standing: Standing, reason: str, *, released: bool = False) -> ev.Event:
        found = event_of(choice, standing, actor=self._actor, reason=reason, released=released)
        if found is None:
            raise retired(standing) if standing.is_retired else unrecorded(standing)
        return found

    async def _decided(
        self, decider: Decider, standing: Standing, event: ev.Event, revision: int | None, *, spends: bool = False
    ) -> Decision:
        step = decider.step(standing, event, revision)
        return decision_of(standing, step, await decider.save(standing, step, spends=spends))

    def _redispatch(self, standing: Standing, reason: str, revision: int | None, decider: Decider) -> ev.Event:
        """The redispatch itself, or where two persons are needed and nobody else has asked for it yet, the request for it."""
        event = self._event(Choice.REDISPATCH, standing, reason)
        if not self._settings.redispatch_by_two:
            return event
        asked = standing.newest
        if asked is None or asked.event != REQUESTED:
            return ev.RequestRedispatch(actor=self._actor, reason=reason, quiescent_at=standing.quiescent_at)
        if is_same_person(asked.actor, self._actor):
            decider.step(standing, event, revision)
            raise SecondPerson(
                f"expected another person than {self._actor!a}, who asked for this redispatch",
                next="let somebody else run the same command, under their own name",
            )
        return event

    async def _decider(self) -> Decider:
        return Decider(reading=await self._reading(), writing=await self._writing(), seams=self._seams)
