"""One performance from the first order to the gathered evidence: everything real but the service, and nothing left running at its end."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from coatcheck.demo.crew import WORKER, Crew, crew
from coatcheck.demo.evidence import Evidence, Told, gathered
from coatcheck.demo.orders import PRICE, drawn
from coatcheck.demo.premises import Premises, opened
from coatcheck.demo.shop import Placed, Shop
from coatcheck.demo.strike import Strike, Striker
from coatcheck.demo.telling import Counts, Telling
from coatcheck.errors import Failed
from coatcheck.seams import Seams
from coatcheck.sim import ServiceSettings, SimulatedService
from coatcheck.store import db
from coatcheck.store.db import Database
from coatcheck.store.schema import Migration, migrate_up
from coatcheck.store.statements import statement

WORKERS = (1, 2)
_FIRST_ORDERS = 10
"""Orders that are there before a worker is, so that none finds nothing to do."""
_LOOK_EVERY_S = 0.02
_SHOW_EVERY_S = 0.15
_PATIENCE_S = 90.0
_PATIENCE_PER_ORDER_S = 0.2
# Renders outlast the moment of the kill: what a killed worker had in hand is dispatches and looks, whose leases are short.
_PACE = ServiceSettings(price=PRICE, queued_s=(0.1, 0.3), processing_s=(1.2, 2.4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What one run is made of. `command` starts a worker."""

    home: Path
    operations: int
    seed: int
    seams: Seams
    telling: Telling
    command: Sequence[str] = WORKER

    async def evidence(self) -> Evidence:
        """Run it and bring the evidence. Raises `Failed` when a worker fails or does not come to an end in time."""
        async with opened(self.home, seams=self.seams) as premises:
            self.telling.say(f"PostgreSQL {premises.version} runs, with a database of this run's own")
            self._migrate(premises)
            async with self._service() as service, _connections(premises, self.seams) as (shop, store):
                with crew(premises, service.base_url, seams=self.seams, command=self.command) as workers:
                    told = await self._course(workers, service, shop, store)
                    return await gathered(told, shop, store, service)

    def _service(self) -> SimulatedService:
        return SimulatedService(seams=self.seams, seed=self.seed, settings=_PACE)

    def _migrate(self, premises: Premises) -> None:
        def progress(migration: Migration, left: int) -> None:
            self.telling.say(f"migrated: {migration.number:04} {migration.name}{f', {left} to come' if left else ''}")

        with psycopg.connect(premises.url) as connection:
            migrate_up(connection, on_progress=progress)

    async def _course(self, workers: Crew, service: SimulatedService, shop: Shop, store: Database) -> Told:
        *orders, left = drawn(self.operations + 1, self.seed)
        await shop.open()
        placed = [await shop.order(order) for order in orders[:_FIRST_ORDERS]]
        for number in WORKERS:
            workers.start(number)
        self.telling.say(
            f"{len(WORKERS)} workers start; the shop takes {len(orders)} orders of three tenants meanwhile"
        )
        placed += [await shop.order(order) for order in orders[_FIRST_ORDERS:]]
        await shop.order_and_leave(left)
        again = await shop.order_again(orders[0])
        strikes = await self._until_idle(workers, service, store, placed)
        return Told(
            placed=tuple(placed),
            left=(left.tenant_id, left.key),
            repeated=(placed[0].operation_id, again.operation_id),
            strikes=tuple(strikes),
        )

    async def _until_idle(
        self, workers: Crew, service: SimulatedService, store: Database, placed: Sequence[Placed]
    ) -> list[Strike]:
        """Kill a worker in the middle of a POST and start it anew, once with success; then wait until all is done."""
        operations = {each.order.specification.sha256_hex: each.operation_id for each in placed}
        striker = Striker(crew=workers, service=service, store=store, operations=operations)
        strikes: list[Strike] = []
        clock, shown_at = self.seams.clock, 0.0
        end = clock.boottime() + _PATIENCE_S + _PATIENCE_PER_ORDER_S * self.operations
        while workers.working():
            hit = any(strike.hit for strike in strikes)
            struck = None if hit else await striker.strike()
            if struck is not None:
                strikes.append(struck)
                workers.start(struck.number)
                self.telling.say(_told(struck))
            if (now := clock.boottime()) > end:
                raise Failed("expected the workers to become idle, got some that still work", next="read their logs")
            if now - shown_at > _SHOW_EVERY_S:
                shown_at = now
                await self._show(store)
            await self.seams.sleep(_LOOK_EVERY_S)
        await self._show(store)
        return strikes

    async def _show(self, store: Database) -> None:
        (row,) = await store.fetch(statement("demo", "progress"))
        self.telling.show(Counts(ordered=self.operations, **row))


def _told(strike: Strike) -> str:
    where = "in the middle of a POST" if strike.hit else "a moment after a POST"
    return f"worker {strike.number} is killed with SIGKILL {where}, and started anew"


@asynccontextmanager
async def _connections(premises: Premises, seams: Seams) -> AsyncIterator[tuple[Shop, Database]]:
    """The shop's own connection, and one to read the store with."""
    async with (
        await psycopg.AsyncConnection.connect(premises.url) as connection,
        db.opened(premises.url, seams=seams, name="demo") as store,
    ):
        yield Shop(connection), store
