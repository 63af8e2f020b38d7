"""A worker's account of itself, written every few seconds for stats and doctor. No rule rests on it: no join, no heartbeat."""

import logging
from collections.abc import Sequence
from dataclasses import asdict

import psycopg

from coatcheck.errors import CoatcheckError
from coatcheck.seams import Point, Seams
from coatcheck.store.db import Database
from coatcheck.store.workers import Account, report
from coatcheck.workers.tally import Tally

logger = logging.getLogger(__name__)

EVERY_S = 5.0


class Reporter:
    """Writes one worker's row."""

    def __init__(
        self, database: Database, *, worker: str, version: str, roles: Sequence[str], tally: Tally, seams: Seams
    ) -> None:
        self._database = database
        self._worker = worker
        self._version = version
        self._roles = roles
        self._tally = tally
        self._seams = seams

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            await self.report()
            await self._seams.sleep(EVERY_S)

    async def report(self, *, stopped: bool = False) -> None:
        """Write the row; a database that is away misses a report and nothing else."""
        tally = self._tally
        account = Account(
            incarnation=self._worker,
            version=self._version,
            roles=self._roles,
            stopped=stopped,
            stale=tally.stale,
            lease_renewal_failures_count=tally.lease_renewal_failures,
            action_ms={action: asdict(duration) for action, duration in tally.durations.items()},
        )
        try:
            self._seams.faults.reached(Point.B1_REPORT_SENT)
            await report(self._database, account)
            self._seams.faults.reached(Point.B2_REPORTED)
        except (psycopg.Error, CoatcheckError) as error:
            logger.warning("report failed", extra={"error": type(error).__name__})
