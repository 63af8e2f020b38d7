"""A stage whose service repeats the reference of a POST, with tenants who ask for the very same thing at the same time."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from coatcheck.app.workplace import worker_of
from coatcheck.core.fingerprint import fingerprint
from coatcheck.core.identity import parse_operation_id
from coatcheck.seams import Seams
from faults.stage import QUICK, Stage
from waiting import until_async

LOST: Mapping[str, Any] = {**QUICK, "create": "accept_then_drop"}
"""The job is made, and nothing is heard of it."""


class Studio(Stage):
    """Workers are configured with KIND echo, unless a test says otherwise."""

    def environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        return super().environment({"KIND": "echo", **changes})

    def order(self, tenant: str = "ada", job: Mapping[str, Any] = LOST, key: str = "k") -> UUID:
        """One operation. All orders of one `job` have the same specification, to the byte."""
        request = {
            "v": 1,
            "tenant_id": tenant,
            "operation_key": key,
            "provider": "genace",
            "specification_text": fingerprint({"prompt": "a red bird", "sim": dict(job)}).text,
        }
        answer = self.one("select coatcheck.enqueue_v1(%s::text::jsonb) as answer", json.dumps(request))["answer"]
        operation_id = parse_operation_id(answer["operation_id"])
        assert operation_id is not None
        return operation_id

    def work_until(self, holds: Callable[[], object], **changes: str) -> None:
        """Let a worker in this process go on until something holds, then let it end."""
        asyncio.run(self._work_until(holds, changes))

    async def _work_until(self, holds: Callable[[], object], changes: Mapping[str, str]) -> None:
        async with asyncio.timeout(60), worker_of(self.settings(changes), self.url, seams=Seams.real()) as (worker, _):
            running = asyncio.create_task(worker.run())
            await until_async(holds)
            worker.drain()
            await running

    # -- what came of it ----------------------------------------------------------------------------------------------

    def lane(self, operation_id: UUID) -> dict[str, Any]:
        """The operation's course as a message."""
        return self.one("select * from coatcheck.outbox where operation_id = %s and lane = 0", operation_id)

    def waits(self, operation_id: UUID, count: int) -> bool:
        """Whether it was looked up so often without an end, and waits for the next time."""
        lane = self.lane(operation_id)
        return bool((lane["wait_reason"], lane["wait_count"], lane["leased_by"]) == ("lookup", count + 1, None))

    def is_parked(self, operation_id: UUID) -> bool:
        """Whether it waits for a person."""
        return bool(self.lane(operation_id)["park_reason"] == "uncertain")

    def incidents(self, operation_id: UUID) -> list[tuple[str, str]]:
        """What was noted about it, with the side that it lies on."""
        found = self.rows("select kind, boundary from coatcheck.incidents where operation_id = %s", operation_id)
        return [(row["kind"], row["boundary"]) for row in found]

    def job_of(self, operation_id: UUID) -> str:
        """The job that the service made for the operation's dispatch, by the service's own books."""
        (dispatch,) = self.dispatches(operation_id)
        (job,) = [job for job in self.sim.jobs() if job["reference"] == str(dispatch["dispatch_id"])]
        return str(job["id"])
