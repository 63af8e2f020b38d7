"""`orphans list|resolve`: paid remote jobs that no operation could take, until a person has dealt with each."""

import asyncio
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.reconciling.views import Resolution
from coatcheck.app.story.wording import amount
from coatcheck.cli.lists import limited
from coatcheck.cli.opening import database
from coatcheck.cli.options import Actor, AsJson, Limit, Reason, actor_of, given, limit_of, utf8
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.cli.visible import visible
from coatcheck.store.orphans import Orphan, orphans

_COLUMNS = ("remote job", "account", "operation", "tenant", "phase", "cost", "seen at", "resolved by", "resolution")
_SCREEN = 100


def list_orphans(
    *,
    all_: Annotated[bool, Parameter(name="--all", negative="", help="Those that somebody dealt with, too.")] = False,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List paid remote jobs that no operation could take, with what they cost."""
    most = limit_of(limit)

    async def run() -> None:
        async with database() as (opened, _):
            screen: list[Orphan] = []
            count = 0
            async for orphan in limited(orphans(opened, with_resolved=all_), most):
                count += 1
                if as_json:
                    write_object(orphan.as_json())
                    continue
                screen.append(orphan)
                if len(screen) == _SCREEN:
                    _print(screen)
                    screen = []
            if screen:
                _print(screen)
            if not count and not as_json:
                say("no orphan")

    asyncio.run(run())


def resolve(
    job: Annotated[str, Parameter(help="The remote job's id at the service.")],
    /,
    *,
    account: Annotated[str, Parameter(help="The account that has it.")],
    reason: Reason,
    charged: Annotated[
        str | None, Parameter(help="What the service says that it cost in the end: a decimal amount.")
    ] = None,
    revision: Annotated[
        int | None,
        Parameter(help="The operation's revision that you looked at; resolved only if it is still that one."),
    ] = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Mark JOB as dealt with: cancelled at the service, refunded, or its output fetched by hand."""
    from coatcheck.app.library import Coatcheck  # noqa: PLC0415 - a list decides nothing

    why, who = given("--reason", reason), actor_of(actor)

    async def run() -> Resolution:
        async with Coatcheck() as coatcheck:
            return await coatcheck.for_operator(who).resolve_orphan(
                job, account=utf8("--account", account), reason=why, charged=charged, revision=revision
            )

    found = asyncio.run(run())
    if as_json:
        write_object(found.as_json())
        return
    cost = "" if found.charged is None else f"; its dispatch is charged {found.charged:f} now"
    write_line(
        f"resolved {visible(found.remote_job_id)} of {found.operation_id} (revision {found.revision}){cost}: {visible(why)} ({visible(who)})"
    )


def _print(screen: list[Orphan]) -> None:
    from coatcheck.cli.tables import show, table  # noqa: PLC0415 - for people only

    rows = (
        (
            each.remote_job_id,
            each.account,
            each.operation_id,
            each.tenant_id,
            each.phase,
            None if each.cost is None else f"{amount(each.cost, each.unit or '')} ({each.basis})",
            each.seen_at,
            each.resolved_by,
            each.resolution,
        )
        for each in screen
    )
    show(table(_COLUMNS, rows))
