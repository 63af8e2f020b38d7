"""One performance of two acts, from the first order to the last decision: everything real but the service, nothing left running at its end."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from coatcheck.app.library import Coatcheck
from coatcheck.config import load_settings
from coatcheck.core.identity import operation_text
from coatcheck.demo.allowances import grant
from coatcheck.demo.closing import Closing, closed
from coatcheck.demo.course import Course
from coatcheck.demo.crew import WORKER, Crew, crew, environment_of
from coatcheck.demo.decisions import Decisions
from coatcheck.demo.evidence import Told, gathered
from coatcheck.demo.orders import PERSON, PRICE, drawn
from coatcheck.demo.person import Person
from coatcheck.demo.premises import Premises, opened
from coatcheck.demo.progress import Progress
from coatcheck.demo.shop import Shop
from coatcheck.demo.telling import Telling
from coatcheck.seams import Seams
from coatcheck.sim import ServiceSettings, SimulatedService
from coatcheck.store import db
from coatcheck.store.db import Database
from coatcheck.store.migrations import Migration
from coatcheck.store.schema import migrate_up

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

    async def closing(self) -> Closing:
        """Run it and bring what the accounts rest on. Raises `Failed` when a worker fails or does not come to an end in time."""
        async with opened(self.home, seams=self.seams) as premises:
            self.telling.say(f"PostgreSQL {premises.version} runs, with a database of this run's own")
            self._migrate(premises)
            async with self._service() as service, _connections(premises, self.seams) as (shop, store):
                with crew(premises, service.base_url, seams=self.seams, command=self.command) as workers:
                    return await self._acts(premises, workers, service, shop, store)

    async def _acts(
        self, premises: Premises, workers: Crew, service: SimulatedService, shop: Shop, store: Database
    ) -> Closing:
        """The course of the orders, then what a person decides about the doubts that it left; both books are read after each."""
        *orders, left = drawn(self.operations + 1, self.seed)
        granted = await grant(premises.url, orders)
        progress = Progress(store=store, telling=self.telling, clock=self.seams.clock, ordered=len(orders))
        course = Course(
            orders=orders,
            left=left,
            workers=workers,
            service=service,
            shop=shop,
            store=store,
            progress=progress,
            seams=self.seams,
        )
        told = await course.run()
        before = await gathered(told, shop, store, service)
        async with self._person(premises, service, told) as person:
            verdicts = await Decisions(person=person, workers=workers, progress=progress, seams=self.seams).made()
        after = await gathered(told, shop, store, service)
        return await closed(before, after, verdicts, granted=granted, store=store, url=premises.url)

    @asynccontextmanager
    async def _person(self, premises: Premises, service: SimulatedService, told: Told) -> AsyncIterator[Person]:
        """Somebody with the library, and with the settings that the workers have."""
        settings = load_settings(environment_of(premises, service.base_url), premises.home)
        async with Coatcheck(settings, seams=self.seams) as coatcheck:
            yield Person(
                handle=coatcheck.for_operator(PERSON),
                service=service,
                placed={operation_text(each.operation_id): each for each in told.placed},
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
