"""One person's handle on all that runs: the decisions about what is in doubt, and what they ask for beside these, each with a reason."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from coatcheck.app.operating.again import asked, not_now, wrong_phase
from coatcheck.app.operating.cancelling import cancel
from coatcheck.app.operating.incidents import read_incidents
from coatcheck.app.operating.resuming import resume
from coatcheck.app.operating.views import Incident, Resumed
from coatcheck.app.reconciling import Decision, OperatorDecisions
from coatcheck.app.reconciling.outcome import decision_of
from coatcheck.app.reconciling.service import provider_of
from coatcheck.app.reconciling.words import revision_of, words_of
from coatcheck.app.streamed import Streamed
from coatcheck.core import events as ev
from coatcheck.core.operation import Operation, RenderState
from coatcheck.errors import SettingInvalid
from coatcheck.store.doubts import Standing
from coatcheck.store.messages import Message, messages, outputs_at_rest, parked

_OBSERVE_FOR_S = 86_400.0
"""Where nothing is configured for the operation's account."""


class Operator(OperatorDecisions):
    """What one person, the `actor`, sees, decides and asks for; made by `Coatcheck.for_operator`. Nothing here sends anything.

    What is asked for takes a `reason`, and with `revision` the revision that the person looked at. All raise `Refused`, `NotFound`,
    `WrongPhase`, `StaleRevision` (only with `revision`), `Unavailable` and `CommitUnknown` as the decisions do.
    """

    async def cancel(
        self, operation_id: str, *, reason: str, revision: int | None = None, tenant_id: str | None = None
    ) -> Decision:
        """Cancel what was not sent yet: `await handle.cancel("op_01m8kq…", reason="ordered by mistake")`.

        Raises `NotCancellable` for anything else: while the remote job is not final the wish is recorded (`is_recorded`), passed on where the
        service can be told, and promises neither a stop nor a refund. With `tenant_id` another tenant's operation is `NotFound`.
        """
        why, seen, decider = words_of("reason", reason), revision_of(revision), await self._decider()

        async def load() -> Standing:
            return await decider.load(operation_id, seen, tenant_id=tenant_id)

        return await cancel(decider, load, actor=self._actor, reason=why, revision=seen)

    async def reobserve(self, operation_id: str, *, reason: str, revision: int | None = None) -> Decision:
        """Look again, now, and until a new deadline (free): also at what is missing or stalled. Raises `WrongPhase` for a final render."""
        why, seen, decider = words_of("reason", reason), revision_of(revision), await self._decider()

        async def load() -> Standing:
            return await decider.load(operation_id, seen)

        async def event_of(standing: Standing) -> ev.Event:
            observe_for_s = self._observe_for_s(standing.operation)
            return ev.Reobserve(actor=self._actor, reason=why, observe_for_s=observe_for_s)

        return decision_of(*await asked(decider, load, event_of, refused=not_now, revision=seen))

    async def redeliver(
        self, operation_id: str, *, reason: str, output: int | None = None, revision: int | None = None
    ) -> Decision:
        """Try deliveries again that failed, with all their tries (free): all of them, or that of one `output`. Nothing is rendered again."""
        why, seen, decider = words_of("reason", reason), revision_of(revision), await self._decider()

        async def load() -> Standing:
            return await decider.load(operation_id, seen)

        async def event_of(standing: Standing) -> ev.Event:
            at_rest = await outputs_at_rest(decider.reading, standing.operation.operation_id)
            indexes = _chosen(standing, at_rest, output)
            return ev.Redeliver(actor=self._actor, reason=why, indexes=indexes)

        return decision_of(*await asked(decider, load, event_of, refused=not_now, revision=seen))

    def messages(
        self, *, action: str | None = None, provider: str | None = None, waiting: str | None = None
    ) -> Streamed[Message]:
        """What is to be done, and why it is not done yet: `async for message in handle.messages(waiting="pause")`."""
        return Streamed(lambda: self._messages(action, provider, waiting))

    async def _messages(self, action: str | None, provider: str | None, waiting: str | None) -> AsyncIterator[Message]:
        async for found in messages(await self._reading(), action=action, provider=provider, waiting=waiting):
            yield found

    def parked(self, *, reason: str | None = None) -> Streamed[Message]:
        """What was set aside for a person: `await handle.parked(reason="lease_count")`."""
        return Streamed(lambda: self._parked(reason))

    async def _parked(self, reason: str | None) -> AsyncIterator[Message]:
        async for found in parked(await self._reading(), reason=reason):
            yield found

    async def resume(self, message_id: str, *, reason: str, revision: int | None = None) -> Resumed:
        """Take up what was set aside (free), under the rules that held before: `await handle.resume("op_01m8kq….0", reason="mended")`.

        Raises `WrongPhase` for a message that is not set aside, and for doubt, which is decided and not taken up.
        """
        why, seen, decider = words_of("reason", reason), revision_of(revision), await self._decider()
        return await resume(
            decider, message_id, actor=self._actor, reason=why, observe_for_s=self._observe_for_s, revision=seen
        )

    def incidents(
        self, *, kind: str | None = None, tenant_id: str | None = None, since: datetime | None = None
    ) -> Streamed[Incident]:
        """What went against the protocol, of one kind, one tenant, or seen since an instant: `await handle.incidents(kind="wrong_id")`."""
        return Streamed(lambda: self._incidents(kind, tenant_id, since))

    async def _incidents(
        self, kind: str | None, tenant_id: str | None, since: datetime | None
    ) -> AsyncIterator[Incident]:
        async for found in read_incidents(await self._reading(), kind=kind, tenant_id=tenant_id, since=since):
            yield found

    def _observe_for_s(self, operation: Operation) -> float:
        """How long its provider's renders may take; a day where the provider is not configured here."""
        try:
            return provider_of(self._settings, operation).observe_for_s
        except SettingInvalid:
            return _OBSERVE_FOR_S


def _chosen(standing: Standing, at_rest: Sequence[int], output: int | None) -> tuple[int, ...]:
    if standing.operation.render_state is not RenderState.SUCCEEDED:
        # the table says what it needs
        return tuple(at_rest)
    if output is not None and output not in at_rest:
        raise wrong_phase(standing, f"expected an output that nobody tries to deliver any more, got {output}")
    if not at_rest:
        raise wrong_phase(standing, "every output is delivered or on its way, so there is nothing to try again")
    return tuple(at_rest) if output is None else (output,)
