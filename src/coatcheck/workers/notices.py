"""Says in the log that an account of this worker was paused, by whom and why, and that it goes on: whoever reads logs first asks why it is quiet.

What the process trusted before a pause it trusts no more.
"""

import logging
from collections.abc import Collection
from datetime import datetime

import psycopg

from coatcheck.errors import CoatcheckError
from coatcheck.seams import Seams
from coatcheck.store.db import Database
from coatcheck.store.pauses import Pausable, ProviderRow, listed
from coatcheck.workers.accounts import Accounts

logger = logging.getLogger(__name__)

EVERY_S = 6.0


class Notices:
    """One worker's view of the pauses of its accounts. No rule rests on it, but the trust that `trust` keeps ends sooner."""

    def __init__(self, database: Database, accounts: Collection[str], seams: Seams, trust: Accounts) -> None:
        self._database = database
        self._accounts = frozenset(accounts)
        self._seams = seams
        self._trust = trust
        self._paused: dict[tuple[str, Pausable], datetime] = {}
        self._resumed: dict[str, datetime | None] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await self._seams.sleep(EVERY_S)

    async def look(self) -> None:
        """Say what began and what ended; a database that is away is looked at the next time."""
        try:
            rows = await listed(self._database)
        except (psycopg.Error, CoatcheckError) as error:
            logger.warning("pauses were not read", extra={"error": type(error).__name__})
            return
        for row in {row.account: row for row in rows if row.account in self._accounts}.values():
            self._distrust(row)
            self._note(
                row, Pausable.DISPATCH, row.dispatch_paused_at, row.dispatch_pause_reason, row.dispatch_paused_by
            )
            self._note(
                *(row, Pausable.OBSERVATION, row.observation_paused_at),
                *(row.observation_pause_reason, row.observation_paused_by),
            )

    def _distrust(self, row: ProviderRow) -> None:
        """Who had nothing to mark during a pause hears of it here; a pause that came and went between two looks left its end."""
        resumed_at = row.dispatch_resumed_at
        if row.dispatch_paused_at is not None or self._resumed.get(row.account, resumed_at) != resumed_at:
            self._trust.paused(row.account)
        self._resumed[row.account] = resumed_at

    def _note(
        self, row: ProviderRow, what: Pausable, since: datetime | None, reason: str | None, by: str | None
    ) -> None:
        place = row.account, what
        if since is None:
            if self._paused.pop(place, None) is not None:
                logger.warning("account goes on", extra={"account": row.account, "of": str(what)})
        elif self._paused.get(place) != since:
            self._paused[place] = since
            then = f"coatcheck providers resume {row.name} --what {what} --reason REASON"
            said = {"account": row.account, "of": str(what), "reason": reason, "by": by, "next": then}
            logger.warning("account is paused", extra=said)
