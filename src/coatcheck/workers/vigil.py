"""Notices that the database was restored or promoted: at a worker's start, and every few seconds, whoever restored it under running workers.

No mark rests on how soon this is, for each one compares for itself.
"""

import logging

import psycopg

from coatcheck.errors import CoatcheckError
from coatcheck.seams import Point, Seams
from coatcheck.store.db import Database
from coatcheck.store.whereabouts import check

logger = logging.getLogger(__name__)

EVERY_S = 4.0


class Vigil:
    """One worker's watch over the place of its database."""

    def __init__(self, database: Database, *, worker: str, promotion_is_safe: bool, seams: Seams) -> None:
        self._database = database
        self._worker = worker
        self._promotion_is_safe = promotion_is_safe
        self._seams = seams

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._seams.sleep(EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Compare once and say what changed; a database that is away is looked at the next time."""
        try:
            self._seams.faults.reached(Point.B3_COMPARISON_SENT)
            moved = await check(self._database, worker=self._worker, promotion_is_safe=self._promotion_is_safe)
            self._seams.faults.reached(Point.B4_COMPARED)
        except (psycopg.Error, CoatcheckError) as error:
            logger.warning("the server was not compared", extra={"error": type(error).__name__})
            return
        if moved is None:
            return
        if moved.is_safe:
            logger.warning("the database was promoted; dispatch goes on, as set", extra={"found": moved.told})
        else:
            logger.error(
                "the database was restored or promoted: dispatch is paused until `coatcheck providers resume`",
                extra={"found": moved.told, "count": moved.paused_count},
            )
