"""The doubts that there are, as people see them: read while they are listed, and nothing is decided here."""

from collections.abc import AsyncIterator

from coatcheck.app.reconciling.choosing import view_of
from coatcheck.app.reconciling.views import Doubt
from coatcheck.app.reconciling.words import words_of
from coatcheck.store.db import Database
from coatcheck.store.doubts import doubts


async def read_doubts(database: Database, *, tenant_id: str | None, stuck: bool) -> AsyncIterator[Doubt]:
    """What is uncertain, oldest first; `stuck` adds remote jobs that are missing or stalled. Raises `Refused` for a tenant that is none."""
    if tenant_id is not None:
        words_of("tenant_id", tenant_id)
    async for found in doubts(database, tenant_id=tenant_id, with_stuck=stuck):
        yield view_of(found)
