"""What the stories of operating play on: the stage of reconciling, a worker that goes on until something holds, and a person who asks."""

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import pytest

from coatcheck import Coatcheck, CoatcheckError
from coatcheck.app.operating.operator import Operator
from coatcheck.app.workplace import worker_of
from coatcheck.seams import Seams
from faults.stage import QUICK
from faults.strike import Strike, Striking
from reconcile.scene import Scene
from waiting import until_async

Answer = TypeVar("Answer")
Failure = TypeVar("Failure", bound=CoatcheckError)
WHY = ("--reason", "the customer called", "--actor", "eve")
LONG: Mapping[str, Any] = {"queued_s": 0, "processing_s": 600}
"""A render that nobody here waits for."""
CANCELS = {"CANCEL_PATH": "/api/v1/jobs/{id}/cancel"}


class Office(Scene):
    """One test's world, with a person on duty."""

    def asks(self, ask: Callable[[Operator], Awaitable[Answer]], *, actor: str = "eve", **changes: str) -> Answer:
        """What a person's one call of the library answers."""
        settings = self.settings({"COATCHECK_DATABASE_URL": self.url, **self.changes, **changes})

        async def run() -> Answer:
            async with Coatcheck(settings) as coatcheck:
                return await ask(coatcheck.for_operator(actor))

        return asyncio.run(run())

    def refused(self, kind: type[Failure], ask: Callable[[Operator], Awaitable[object]]) -> Failure:
        """The refusal of a call that changes nothing, and sends nothing."""
        before, posts = self.dump(), len(self.sim.posts)
        with pytest.raises(kind) as raised:
            self.asks(ask)
        assert self.dump() == before
        assert len(self.sim.posts) == posts
        return raised.value

    def work_until(self, holds: Callable[[], object], *strikes: Strike, **changes: str) -> None:
        """Let a worker in this process go on until something holds, then let it end. Strikes that raise may befall it."""
        asyncio.run(self._work_until(holds, Seams(faults=Striking(strikes)), {**self.changes, **changes}))

    async def _work_until(self, holds: Callable[[], object], seams: Seams, changes: Mapping[str, str]) -> None:
        async with asyncio.timeout(60), worker_of(self.settings(changes), self.url, seams=seams) as (worker, _):
            running = asyncio.create_task(worker.run())
            await until_async(holds)
            worker.drain()
            await running

    def rendering(self, job: Mapping[str, Any] = LONG, tenant: str = "ada") -> str:
        """One operation whose remote job is under way."""
        found = self.asked(tenant, job)
        self.work_until(lambda: self.standing(found)["remote_status"] == "processing", WAIT_S="0.1")
        return found

    def undelivered(self, outputs: int = 1, **job: Any) -> str:
        """One operation whose outputs could not be stored, as often as was tried."""
        found = self.asked(job={**QUICK, "outputs": outputs, "output": {"kind": "status", "status": 500}, **job})
        self.work(COATCHECK_DELIVER_TRIES="2")
        assert self.standing(found)["delivery_state"] == "failed"
        return found

    def lane(self, operation: str, lane: int = 0) -> dict[str, Any]:
        """One of its messages, as it is kept."""
        return self.one(
            "select * from coatcheck.outbox where coatcheck.operation_text(operation_id) = %s and lane = %s",
            operation,
            lane,
        )

    def tale(self, operation: str) -> list[str]:
        """The names of its history."""
        return self.events(self.uuid(operation))

    def newest(self, operation: str) -> dict[str, Any]:
        """The last line of its history."""
        return self.one(
            "select * from coatcheck.history where coatcheck.operation_text(operation_id) = %s order by revision desc limit 1",
            operation,
        )

    @property
    def lane_count(self) -> int:
        """How many messages there are."""
        return len(self.rows("select lane from coatcheck.outbox"))

    @property
    def cancels(self) -> int:
        """How often the service was told that a job is not wanted any more."""
        with urllib.request.urlopen(f"{self.sim.base_url}/_sim/ledger", timeout=10) as reply:
            count: int = json.load(reply)["cancels"]["count"]
        return count

    def audited(self) -> None:
        """The command finds nothing, and the books of the service agree."""
        ended = self.terminal().run("audit", "--json")
        assert (ended.code, ended.out) == (0, "")
        self.check()
