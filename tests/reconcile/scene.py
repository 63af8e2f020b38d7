"""What the stories of reconciling play on: a database, the simulated service, a worker in this process, and people with a library or a terminal."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import postgres
from cli.terminal import Terminal, plain_environ
from coatcheck import Coatcheck
from coatcheck.app.reconciling import OperatorDecisions
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.sim import ThreadedService
from faults.stage import QUICK, Stage
from faults.strike import Strike
from store.invariants import assert_invariants

Answer = TypeVar("Answer")
ESTIMATE = 5
TABLES = (
    "operations",
    "outbox",
    "dispatches",
    "remote_jobs",
    "allowances",
    "history",
    "incidents",
    "snapshots",
    "deliveries",
)


class Scene(Stage):
    """A stage on which tenants have allowances, operations have estimates, and people decide."""

    def __init__(self, database: postgres.Database, sim: ThreadedService, folder: Path, **changes: str) -> None:
        super().__init__(database, sim, folder)
        self.changes: Mapping[str, str] = changes
        self._own_keys = itertools.count(1)
        self.rows(
            "insert into coatcheck.allowances (tenant_id, unit, set_by, updated_at)"
            " select tenant, 'credits', 'scene', now() from unnest(array['ada', 'bob']) as tenant returning tenant_id"
        )

    def asked(self, tenant: str = "ada", job: Mapping[str, Any] = QUICK, **more: object) -> str:
        """One prepared operation, by its text."""
        key = f"{tenant} {next(self._own_keys)}"
        specification = {"prompt": key, "sim": dict(job)}
        fields = {"estimate": ESTIMATE, **more}
        operation_id = self._enqueue(specification, tenant_id=tenant, **fields)
        return operation_text(OperationId(operation_id))

    def in_doubt(self, tenant: str = "ada", *, created: bool = True, **more: object) -> str:
        """One operation whose reply was lost; `created`: the service has its job all the same."""
        kind = "accept_then_drop" if created else "drop_before_accept"
        found = self.asked(tenant, {**QUICK, "create": {"kind": kind, "times": 1}}, **more)
        self.work(**self.changes)
        assert self.standing(found)["phase"] == "uncertain"
        return found

    def quiet(self, **fields: Any) -> str:
        """One operation in doubt, of which nothing can arrive any more."""
        found = self.in_doubt(**fields)
        self.database.move_time(1)
        return found

    def killed(self, tenant: str = "ada") -> str:
        """One operation whose worker was killed while its POST was in flight, and whose lease is over."""
        from coatcheck.seams import Point  # noqa: PLC0415 - only this story strikes

        found = self.asked(tenant)
        doomed = self.worker(Strike(point=Point.D8_REQUEST_COMPLETE), until_idle=True, **self.changes)
        doomed.ended()
        self.finish(**self.changes)
        assert self.standing(found)["phase"] == "uncertain"
        return found

    def job_of(self, operation: str) -> str:
        """The job that the service made of an operation's latest POST, by the service's own ledger."""
        key = self.standing(operation)["operation_key"]
        made = [post.created for post in self.sim.posts if f'"{key}"' in (post.body_text or "")]
        assert made
        assert made[-1] is not None
        return made[-1]

    def posts_of(self, operation: str) -> int:
        """How many POSTs of it arrived."""
        key = self.standing(operation)["operation_key"]
        return sum(f'"{key}"' in (post.body_text or "") for post in self.sim.posts)

    # -- people --------------------------------------------------------------------------------------------------------

    def decides(
        self, ask: Callable[[OperatorDecisions], Awaitable[Answer]], *, actor: str = "eve", **changes: str
    ) -> Answer:
        """What a person's one call of the library answers."""
        settings = self.settings({"COATCHECK_DATABASE_URL": self.url, **self.changes, **changes})

        async def run() -> Answer:
            async with Coatcheck(settings) as coatcheck:
                return await ask(coatcheck.for_operator(actor))

        return asyncio.run(run())

    def terminal(self, **changes: str) -> Terminal:
        """Where commands are typed."""
        environ = {**plain_environ(), **self.environment({**self.changes, **changes})}
        return Terminal(folder=self.folder, environ={"COATCHECK_DATABASE_URL": self.url, **environ})

    # -- what came of it -----------------------------------------------------------------------------------------------

    def standing(self, operation: str) -> dict[str, Any]:
        """The operation's row, by its text."""
        return self.one(
            "select * from coatcheck.operations where coatcheck.operation_text(operation_id) = %s", operation
        )

    def uuid(self, operation: str) -> UUID:
        found: UUID = self.standing(operation)["operation_id"]
        return found

    def happened(self, operation: str) -> list[str]:
        """Its events from the first doubt on."""
        found = self.events(self.uuid(operation))
        return found[found.index("became_uncertain") + 1 :]

    def money(self, tenant: str = "ada") -> tuple[int, int]:
        """What of the tenant's allowance is held and charged."""
        row = self.one("select held, charged from coatcheck.allowances where tenant_id = %s", tenant)
        return int(row["held"]), int(row["charged"])

    def dump(self) -> dict[str, list[str]]:
        """Everything that a decision could change."""
        return {
            table: [row["text"] for row in self.rows(f"select t::text as text from coatcheck.{table} as t order by 1")]
            for table in TABLES
        }

    def holds(self, but: tuple[str, ...] = ()) -> None:
        """Every invariant of the store, apart from those that the story broke on purpose."""
        assert_invariants(self._connection, but=but)
