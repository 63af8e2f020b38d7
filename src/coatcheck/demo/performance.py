"""One performance from the first order to the gathered evidence: everything real but the service, and nothing left running at its end."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from coatcheck.demo.course import Course
from coatcheck.demo.crew import WORKER, Crew, crew
from coatcheck.demo.evidence import Evidence, gathered
from coatcheck.demo.orders import PRICE, drawn
from coatcheck.demo.premises import Premises, opened
from coatcheck.demo.shop import Shop
from coatcheck.demo.telling import Telling
from coatcheck.seams import Seams
from coatcheck.sim import ServiceSettings, SimulatedService
from coatcheck.store import db
from coatcheck.store.db import Database
from coatcheck.store.schema import Migration, migrate_up

# Renders outlast the moment of the kill: what a killed worker had in hand is dispatches and looks, whose leases are short.
_PACE = ServiceSettings(price=PRICE, queued_s=(0.1, 0.3), processing_s=(0.8, 1.8))


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
                    told = await self._course(workers, service, shop, store).run()
                    return await gathered(told, shop, store, service)

    def _course(self, workers: Crew, service: SimulatedService, shop: Shop, store: Database) -> Course:
        *orders, left = drawn(self.operations + 1, self.seed)
        return Course(
            orders=orders,
            left=left,
            workers=workers,
            service=service,
            shop=shop,
            store=store,
            telling=self.telling,
            seams=self.seams,
        )

    def _service(self) -> SimulatedService:
        return SimulatedService(seams=self.seams, seed=self.seed, settings=_PACE)

    def _migrate(self, premises: Premises) -> None:
        def progress(migration: Migration, left: int) -> None:
            self.telling.say(f"migrated: {migration.number:04} {migration.name}{f', {left} to come' if left else ''}")

        with psycopg.connect(premises.url) as connection:
            migrate_up(connection, on_progress=progress)


@asynccontextmanager
async def _connections(premises: Premises, seams: Seams) -> AsyncIterator[tuple[Shop, Database]]:
    """The shop's own connection, and one to read the store with."""
    async with (
        await psycopg.AsyncConnection.connect(premises.url) as connection,
        db.opened(premises.url, seams=seams, name="demo") as store,
    ):
        yield Shop(connection), store
