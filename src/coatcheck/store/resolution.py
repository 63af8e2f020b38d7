"""What became of steps whose commit nobody saw: told by what they would have left behind, never by asking whether a commit took place.

The session that broke is outlasted and the operations are locked, so a commit that is still under way is waited for; and the asking is a
commit of its own, so an answer that no standby confirmed is none: the connection warns, and the committer asks again. Of a step without
traces the answer is None.

A mark is the exception: found or not, its answer stays UNKNOWN, because no POST may ever follow it. Found, it has its revision.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coatcheck.core.operation import OperationId
from coatcheck.core.steps import Delivery
from coatcheck.store.db import Database, Row
from coatcheck.store.door import ConcludeSave, DecideSave, DeliverSave, MarkSave, Save, Saved, SnapshotSave, Status
from coatcheck.store.statements import statement

_Columns = Mapping[str, Sequence[Any]]
_NAMES = ("dispatch_id", "expected_revision", "event", "actor", "reason", "output_index", "uri", "sha256")


class Traces:
    """Looks for one worker's steps, batch by batch, as `Door` writes them.

    Example: `Lane(write=door.conclude, key=…, resolve=Traces(database, worker).conclusions)`. Raises what psycopg raises and
    `CommitUnknown`: then nothing is known yet, and it is asked again.
    """

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker

    async def marks(self, batch: Sequence[MarkSave]) -> list[Saved]:
        """UNKNOWN for each, with the revision of a mark that is there: whoever asked knows that nothing was sent under it."""
        columns: _Columns = {
            "dispatch_id": [save.step.dispatch_id for save in batch],
            "expected_revision": [save.step.revision for save in batch],
        }
        found = await self._found("mark", batch, columns)
        return [Saved(status=Status.UNKNOWN, revision=found[save.step.operation_id]["revision"]) for save in batch]

    async def conclusions(self, batch: Sequence[ConcludeSave]) -> list[Saved | None]:
        """Conclusions, and evidence that was meant to be no more. A reply that was kept instead of concluding is written again.

        That costs a revision and no more; taking an earlier reply's trace for it would cost a conclusion.
        """
        steps = [save.step for save in batch]
        columns: _Columns = {
            "dispatch_id": [step.dispatch_id for step in steps],
            "event": [step.event for step in steps],
            "actor": [self._worker] * len(batch),
        }
        found = await self._found("conclude", batch, columns)
        return [_concluded(save, found[save.step.operation_id]) for save in batch]

    async def snapshots(self, batch: Sequence[SnapshotSave]) -> list[Saved | None]:
        """What looks changed."""
        by = [(self._worker, save.step.error_code) for save in batch]
        return await self._followed(batch, by)

    async def decisions(self, batch: Sequence[DecideSave]) -> list[Saved | None]:
        """What sweeps and people decided."""
        by = [(save.step.actor, save.step.reason) for save in batch]
        return await self._followed(batch, by)

    async def deliveries(self, batch: Sequence[DeliverSave]) -> list[Saved | None]:
        """Outputs that lie in the sink. Another end of a try leaves nothing that an earlier one could not have left: written again."""
        stored = [save.step if save.step.result is Delivery.STORED else None for save in batch]
        columns: _Columns = {
            "output_index": [save.step.index for save in batch],
            "uri": [step and step.uri for step in stored],
            "sha256": [step and step.sha256 for step in stored],
        }
        found = await self._found("deliver", batch, columns)
        return [_applied(found[save.step.operation_id]) for save in batch]

    async def _followed(
        self, batch: Sequence[SnapshotSave | DecideSave], by: Sequence[tuple[str, str | None]]
    ) -> list[Saved | None]:
        """The steps that are guarded by a revision: what follows it is theirs, or another's by another actor, event or reason."""
        columns: _Columns = {
            "expected_revision": [save.step.revision for save in batch],
            "event": [save.step.event for save in batch],
            "actor": [actor for actor, _ in by],
            "reason": [reason for _, reason in by],
        }
        found = await self._found("follow", batch, columns)
        return [_applied(found[save.step.operation_id]) for save in batch]

    async def _found(self, kind: str, batch: Sequence[Save], columns: _Columns) -> dict[OperationId, Row]:
        """The traces by operation, asked for until none is older than the lock that was waited for."""
        nothing = [None] * len(batch)
        parameters = {
            "kind": kind,
            "operation_id": [save.step.operation_id for save in batch],
            **{name: columns.get(name, nothing) for name in _NAMES},
        }
        # a session that has not begun with what it was sent holds no lock yet
        await self._database.outlast()
        while True:
            rows = await self._database.fetch(statement("store", "resolve"), parameters)
            if not any(row["is_outdated"] for row in rows):
                return {row["operation_id"]: row for row in rows}


def _applied(row: Row) -> Saved | None:
    return None if row["revision"] is None else Saved(status=Status.APPLIED, revision=row["revision"])


def _concluded(save: ConcludeSave, row: Row) -> Saved | None:
    if row["revision"] is None:
        return None
    if row["event"] != save.step.event:
        return Saved(status=Status.OWNED, revision=row["revision"])
    status = Status.EVIDENCE if save.step.phase is None else Status.APPLIED
    return Saved(status=status, revision=row["revision"])
