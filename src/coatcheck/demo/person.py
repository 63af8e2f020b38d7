"""The person on call: looks each doubt up in the service's own ledger, and decides it by what stands there.

A job is adopted, by force only after the ledger said whose it is. Where there is none, that proves something only after the instant until
which a POST could still arrive: whoever is refused before it waits, and looks again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coatcheck.app.reconciling import Doubt, OperatorDecisions
from coatcheck.core.operation import OperationId
from coatcheck.demo.orders import PERSON
from coatcheck.demo.shop import Placed
from coatcheck.demo.telling import Telling
from coatcheck.errors import NotQuiescent, Overlap
from coatcheck.seams import Seams
from coatcheck.sim import SimulatedService

_MOMENT_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One decision: the job that was adopted, or None where it was proven that there is none. `refusal` is what coatcheck said at first."""

    operation_id: OperationId
    remote_job_id: str | None
    refusal: str | None = None

    @property
    def is_forced(self) -> bool:
        """Whether it was adopted although another tenant's dispatch had been open at the same time."""
        return self.remote_job_id is not None and self.refusal is not None

    @property
    def proves_absence(self) -> bool:
        """Whether one more POST was authorised."""
        return self.remote_job_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Decides by way of the library's handle, under the revision that was looked at. `placed` are the orders by the operation's name."""

    handle: OperatorDecisions
    service: SimulatedService
    placed: Mapping[str, Placed]
    telling: Telling
    seams: Seams

    async def decide(self) -> tuple[Verdict, ...]:
        """Every doubt that there is now. What has to wait is tried first, so that it waits while the rest is decided."""
        began_at = self.seams.clock.boottime()
        verdicts: list[Verdict] = []
        early: list[tuple[Doubt, str]] = []
        doubts = await self.handle.doubts()
        for doubt in sorted(doubts, key=lambda each: self._job_of(each) is not None):
            found = await self._decided(doubt, None)
            if isinstance(found, Verdict):
                verdicts.append(found)
            else:
                early.append((doubt, found.message))
        if early:
            self.telling.say(f"{PERSON} finds no job for {len(early)} operations, and is refused: {early[0][1]}")
        self._say_adopted(verdicts)
        for doubt, refusal in early:
            verdicts.append(await self._decided_in_time(doubt, began_at, refusal))
        self._say_proven(verdicts)
        return tuple(verdicts)

    async def _decided(self, doubt: Doubt, refusal: str | None) -> Verdict | NotQuiescent:
        """Decide by the ledger as it is now, or be told that it is too early for that."""
        remote_job_id = self._job_of(doubt)
        if remote_job_id is not None:
            return await self._adopted(doubt, remote_job_id)
        reason = "the service's own ledger has no job for this order"
        try:
            await self.handle.prove_absent(doubt.operation_id, reason=reason, revision=doubt.revision)
        except NotQuiescent as too_early:
            return too_early
        return Verdict(operation_id=self._id_of(doubt), remote_job_id=None, refusal=refusal)

    async def _decided_in_time(self, doubt: Doubt, began_at: float, refusal: str) -> Verdict:
        """Wait for the instant that was told, then look into the ledger again."""
        instant = began_at + _quiescent_in_s(doubt)
        while True:
            await self.seams.sleep(max(_MOMENT_S, instant - self.seams.clock.boottime()))
            found = await self._decided(doubt, refusal)
            if isinstance(found, Verdict):
                return found

    async def _adopted(self, doubt: Doubt, remote_job_id: str) -> Verdict:
        reason = f"the service's own ledger has {remote_job_id} for {doubt.operation_key}"
        refusal = None
        try:
            await self.handle.adopt(doubt.operation_id, remote_job_id, reason=reason, revision=doubt.revision)
        except Overlap as overlap:
            refusal = overlap.message
            await self.handle.adopt(
                doubt.operation_id, remote_job_id, reason=reason, revision=doubt.revision, force=True
            )
        return Verdict(operation_id=self._id_of(doubt), remote_job_id=remote_job_id, refusal=refusal)

    def _job_of(self, doubt: Doubt) -> str | None:
        """What the service's ledger has for this order. The demo reads it itself, where others ask the service's support."""
        posted = self.placed[doubt.operation_id].order.specification.sha256_hex
        jobs = [post.created for post in self.service.ledger.posts if post.body_sha256 == posted and post.created]
        return jobs[-1] if jobs else None

    def _id_of(self, doubt: Doubt) -> OperationId:
        return self.placed[doubt.operation_id].operation_id

    def _say_adopted(self, verdicts: Sequence[Verdict]) -> None:
        adopted = [each for each in verdicts if not each.proves_absence]
        forced = [each for each in adopted if each.is_forced]
        if forced:
            said, _, _ = str(forced[0].refusal).partition(": op_")
            self.telling.say(f"coatcheck refuses {len(forced)} jobs at first: {said}")
        force = f", {len(forced)} of them with --force" if forced else ""
        if adopted:
            self.telling.say(f"{PERSON} finds {len(adopted)} jobs in the service's own ledger, and adopts them{force}")

    def _say_proven(self, verdicts: Sequence[Verdict]) -> None:
        count = sum(each.proves_absence for each in verdicts)
        if count:
            self.telling.say(f"{PERSON} proves for {count} operations that there is no job: one more POST each")


def _quiescent_in_s(doubt: Doubt) -> float:
    """From the moment in which it was read, by the database's clock."""
    if doubt.quiescent_at is None or doubt.begun_at is None:
        return 0.0
    return (doubt.quiescent_at - doubt.begun_at).total_seconds() - doubt.age_s
