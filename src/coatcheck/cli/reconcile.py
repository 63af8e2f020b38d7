"""`reconcile list` and `reconcile show`: what is in doubt, what is at risk, and everything that helps to decide."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.library import Coatcheck
from coatcheck.app.reconciling.views import Candidate, Doubt, Evidence
from coatcheck.app.story import flat
from coatcheck.app.story.wording import amount, quoted, span, word
from coatcheck.cli.lists import limited
from coatcheck.cli.options import AsJson, Limit, Tenant, actor_of, limit_of, utf8
from coatcheck.cli.output import say, write_line, write_object

_SCREEN = 100
"""Lines of one table on a terminal; a longer list is several, so that it begins at once."""
_COLUMNS = ("operation", "tenant", "account", "age", "how far", "at risk", "possible now")


def list_doubts(
    *,
    tenant: Tenant = None,
    stuck: Annotated[bool, Parameter(negative="", help="Remote jobs that are missing or stalled, too.")] = False,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List what is uncertain, oldest first, with the money at risk and the decisions that are possible now."""
    if tenant is not None:
        utf8("--tenant", tenant)
    most = limit_of(limit)

    async def run() -> None:
        async with Coatcheck() as coatcheck:
            found = limited(coatcheck.for_operator(actor_of(None)).doubts(tenant_id=tenant, stuck=stuck), most)
            await (_write_lines(found) if as_json else _print_screens(found))

    asyncio.run(run())


def show(
    operation: Annotated[str, Parameter(help="The operation's id, op_….")],
    /,
    *,
    offline: Annotated[bool, Parameter(negative="", help="Do not ask the service which jobs it has.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the evidence about one operation: its story with the commands that decide, and jobs that may be the one."""

    async def run() -> Evidence:
        async with Coatcheck() as coatcheck:
            return await coatcheck.for_operator(actor_of(None)).evidence(operation, ask=not offline)

    found = asyncio.run(run())
    if as_json:
        write_object(_as_json(found))
    else:
        _print(found)


def _as_json(found: Evidence) -> Mapping[str, object]:
    return {
        **found.doubt.as_json(),
        "candidates": [each.as_json() for each in found.candidates],
        "service": found.service,
        "possible": [each.as_json() for each in found.possible],
        "story": flat(found.story),
    }


async def _write_lines(found: AsyncIterator[Doubt]) -> None:
    async for doubt in found:
        write_object(doubt.as_json())


async def _print_screens(found: AsyncIterator[Doubt]) -> None:
    screen: list[Doubt] = []
    at_risk: dict[str, Decimal] = defaultdict(Decimal)
    count = 0
    async for doubt in found:
        screen.append(doubt)
        count += 1
        at_risk[doubt.unit] += doubt.held or 0
        if len(screen) == _SCREEN:
            _print_screen(screen)
            screen = []
    if screen:
        _print_screen(screen)
    sums = ", ".join(amount(held, unit) for unit, held in sorted(at_risk.items()) if held) or "nothing that is held"
    say(f"{count} to be decided; at risk: {sums}" if count else "nothing is in doubt")


def _print_screen(screen: Sequence[Doubt]) -> None:
    from coatcheck.cli.tables import show as print_table  # noqa: PLC0415 - for people only
    from coatcheck.cli.tables import table  # noqa: PLC0415 - for people only

    rows = (
        (
            each.operation_id,
            each.tenant_id,
            each.account,
            span(each.age_s),
            each.stage if each.render_state == "none" else each.render_state,
            "-" if each.held is None else amount(each.held, each.unit),
            ", ".join(each.decisions),
        )
        for each in screen
    )
    print_table(table(_COLUMNS, rows))


def _print(found: Evidence) -> None:
    from coatcheck.cli.tables import show_lines  # noqa: PLC0415 - for people only

    for chapter in found.story:
        show_lines(chapter.title, chapter.lines)
        write_line("")
    show_lines("Jobs that may be the one", [found.service, *map(_candidate, found.candidates)])


def _candidate(each: Candidate) -> str:
    sources = {
        "reply": "named by the part of the reply that arrived",
        "orphan": "came late for an earlier dispatch of this operation",
        "reference": "repeats this dispatch",
        "list": "in the service's list",
    }
    parts = [
        word(each.remote_job_id, "an id that does not print"),
        sources[each.source],
        *([f"status {each.remote_status}"] if each.remote_status else []),
        *([f"created at {each.created_at:%Y-%m-%d %H:%M:%SZ}"] if each.created_at else []),
        *([f"taken by {each.taken_by}"] if each.taken_by else []),
        *(
            [f"adopting it counts {amount(each.spends, each.unit or '')} of the present dispatch as spent"]
            if each.spends
            else []
        ),
        *(
            [f"dealt with already, by {quoted(each.resolved_by)}: {quoted(each.resolution or '')}"]
            if each.resolved_by
            else []
        ),
    ]
    return f"  {'; '.join(parts)}"
