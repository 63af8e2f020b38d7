"""`incidents list`: what went against the protocol, counted, with the side on which it lies and what it means."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.operating.incidents import read_incidents
from coatcheck.app.operating.views import Incident
from coatcheck.cli.instants import instant_of
from coatcheck.cli.lists import limited, tell
from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson, Limit, Tenant, limit_of, utf8

_COLUMNS = ("operation", "tenant", "kind", "boundary", "count", "first_at", "last_at", "meaning", "detail")


def list_incidents(
    *,
    kind: Annotated[str | None, Parameter(help="Only of this kind.")] = None,
    tenant: Tenant = None,
    since: Annotated[
        str | None, Parameter(help="Only what was seen since: an instant with an offset, or a date in UTC.")
    ] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List protocol faults by operation, with what each means."""
    if kind is not None:
        utf8("--kind", kind)
    if tenant is not None:
        utf8("--tenant", tenant)
    most = limit_of(limit)
    after = None if since is None else instant_of("--since", since)

    async def run() -> None:
        async with database() as (opened, _):
            found = read_incidents(opened, kind=kind, tenant_id=tenant, since=after)
            await tell(limited(found, most), _COLUMNS, _row, empty="no incident", as_json=as_json)

    asyncio.run(run())


def _row(each: Incident) -> Sequence[object]:
    return (
        each.operation_id,
        each.tenant_id,
        each.kind,
        each.boundary,
        each.count,
        each.first_at,
        each.last_at,
        each.meaning,
        each.detail,
    )
