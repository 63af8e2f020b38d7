"""Protocol faults as people see them, each with what it means: read while they are listed."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import datetime

from coatcheck.app.operating.views import Incident
from coatcheck.app.story.events import meaning
from coatcheck.core.identity import operation_text
from coatcheck.store.db import Database
from coatcheck.store.incidents import incidents


async def read_incidents(
    database: Database, *, kind: str | None, tenant_id: str | None, since: datetime | None
) -> AsyncIterator[Incident]:
    """Every one that fits, in keyset order; `since` is about when it was seen last."""
    async for found in incidents(database, kind=kind, tenant_id=tenant_id, since=since):
        row = asdict(found)
        yield Incident(**{**row, "operation_id": operation_text(found.operation_id)}, meaning=meaning(found.kind))
