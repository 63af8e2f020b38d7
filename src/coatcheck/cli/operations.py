"""`operations list` and `operations show`: what is recorded, for programs line by line, for people as a story and tables.

What a service wrote in its replies is evidence for the operator; a tenant's view (`--tenant`) never carries it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from coatcheck.app.reading import Recorded, phase_of, read_operations, read_story
from coatcheck.app.story import Chapter, flat, tell
from coatcheck.app.story.wording import text_of
from coatcheck.app.views import Operation
from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson, Limit, Tenant, limit_of, utf8
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.core.operation import DeliveryState, Phase, RenderState

_SCREEN = 100
"""Operations in one table on a terminal; a longer list is several, so that it begins at once."""
_EVIDENCE = ("request_ids", "candidate_id", "reply")
"""Of a dispatch, what others wrote: apart from its other fields, and not there in a tenant's view."""
_RECORDED = ("job_operation_id", "job_resolved_at", "job_resolved_by", "job_resolution")
"""Whose its job is: for the story, which names nobody else's operation to a tenant."""
_HIDDEN = frozenset({"operation_id", *_EVIDENCE, *_RECORDED})
_DETAILS = frozenset({"marks_ms", "send_by_at", "displaced", "schema_version", "lease_token", "evidence"})
"""What only programs are shown, or the story tells already."""
_RECORDS = {"outputs": "index", "dispatches": "number", "messages": "lane"}
"""Rows with too many fields for a line, each shown as a record, and the field that names one."""
_NARROW = ("operation", "tenant", "key", "state")
_WIDE = ("operation", "tenant", "key", "provider", "phase", "render", "delivery", "remote job", "outputs", "created at")
_NARROWEST_FOR_WIDE = 180


def list_operations(
    *,
    tenant: Tenant = None,
    phase: Annotated[str | None, Parameter(help=f"Only operations in this phase: {', '.join(Phase)}.")] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List operations, oldest first, while they are read."""
    wanted = phase_of(phase)
    most = limit_of(limit)
    if tenant is not None:
        utf8("--tenant", tenant)

    async def run() -> None:
        async with database() as (opened, _):
            found = read_operations(opened, tenant, wanted, most)
            await (_write_lines(found) if as_json else _print_screens(found))

    asyncio.run(run())


def show(
    operation: Annotated[str, Parameter(help="The operation's id, op_….")],
    /,
    *,
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Show one operation with its dispatches, messages, incidents and history."""
    if tenant is not None:
        utf8("--tenant", tenant)

    async def run() -> Recorded:
        async with database() as (opened, _):
            return await read_story(opened, operation, tenant)

    found = asyncio.run(run())
    chapters = tell(found.record, found.kept, now=found.record.read_at, for_tenant=tenant is not None)
    rows = _rows(found.view.operation_id, found.kept, with_evidence=tenant is None)
    if as_json:
        write_object({**found.view.as_json(), **rows, "story": flat(chapters)})
    else:
        _print_story(chapters)
        _print_rows(found.view, rows)


def _rows(
    operation_id: str, kept: Mapping[str, list[dict[str, Any]]], *, with_evidence: bool
) -> dict[str, list[dict[str, object]]]:
    """What is kept about an operation, each row without the operation's own id and a message with the name it has outside."""
    rows: dict[str, list[dict[str, object]]] = {
        name: [{column: value for column, value in row.items() if column not in _HIDDEN} for row in found]
        for name, found in kept.items()
    }
    rows["messages"] = [{"message_id": f"{operation_id}.{row['lane']}", **row} for row in rows["messages"]]
    if with_evidence:
        told = zip(rows["dispatches"], kept["dispatches"], strict=True)
        rows["dispatches"] = [{**row, "evidence": _evidence(whole)} for row, whole in told]
    return rows


def _evidence(row: Mapping[str, Any]) -> dict[str, object]:
    """What the service wrote; the reply is bounded and without our credential since it was saved."""
    reply = None if row["reply"] is None else text_of(row["reply"])
    return {**{name: row[name] for name in _EVIDENCE}, "reply": reply}


async def _write_lines(found: AsyncIterator[Operation]) -> None:
    async for operation in found:
        write_object(operation.as_json())


async def _print_screens(found: AsyncIterator[Operation]) -> None:
    screen: list[Operation] = []
    count = 0
    async for operation in found:
        screen.append(operation)
        count += 1
        if len(screen) == _SCREEN:
            _print_screen(screen)
            screen = []
    if screen:
        _print_screen(screen)
    if count == 0:
        say("no operation matches")


def _print_screen(screen: Sequence[Operation]) -> None:
    from coatcheck.cli.tables import console, show, table  # noqa: PLC0415 - for people only

    if console().width < _NARROWEST_FOR_WIDE:
        show(table(_NARROW, ((each.operation_id, each.tenant_id, each.operation_key, _state(each)) for each in screen)))
        return
    rows = [
        (
            each.operation_id,
            each.tenant_id,
            each.operation_key,
            each.provider,
            each.phase,
            _render(each),
            each.delivery_state,
            each.remote_job_id,
            _delivered(each),
            each.created_at,
        )
        for each in screen
    ]
    show(table(_WIDE, rows))


def _state(operation: Operation) -> str:
    """The three axes in words, as far as they have begun."""
    words = [str(operation.phase)]
    if operation.render_state != RenderState.NONE:
        words.append(_render(operation))
    if operation.delivery_state != DeliveryState.NOT_STARTED:
        words.append(f"{operation.delivery_state} {_delivered(operation)}")
    return ", ".join(words)


def _delivered(operation: Operation) -> str:
    return f"{sum(output.state == 'delivered' for output in operation.outputs)}/{len(operation.outputs)}"


def _render(operation: Operation) -> str:
    said = operation.remote_status
    return operation.render_state if said in (None, operation.render_state) else f"{operation.render_state} ({said})"


def _print_story(chapters: Sequence[Chapter]) -> None:
    from coatcheck.cli.tables import show_lines  # noqa: PLC0415 - for people only

    for position, chapter in enumerate(chapters):
        if position:
            write_line("")
        show_lines(chapter.title, chapter.lines)


def _print_rows(operation: Operation, kept: Mapping[str, list[dict[str, object]]]) -> None:
    from coatcheck.cli.tables import show, show_fields, table  # noqa: PLC0415 - for people only

    show_fields(
        {name: getattr(operation, name) for name in Operation.__slots__ if name != "outputs"}, title="the record"
    )
    outputs: list[dict[str, object]] = [output.as_json() for output in operation.outputs]
    for title, name in _RECORDS.items():
        for row in {"outputs": outputs, **kept}[title]:
            fields = {field: value for field, value in row.items() if field not in _DETAILS and value is not None}
            show_fields(fields, title=f"{title}, {name} {row[name]}")
    if kept["incidents"]:
        columns = ("kind", "boundary", "count", "last_at", "detail")
        show(table(columns, ([row[name] for name in columns] for row in kept["incidents"]), title="\nincidents"))
    rows = [[row["at"], row["event"], _change(row), row["actor"], row["reason"]] for row in kept["history"]]
    used = 5 if any(row[-1] for row in rows) else 4
    heads = ("at", "event", "change", "by", "reason")
    show(table(heads[:used], (row[:used] for row in rows), title="\nhistory"))


def _change(row: Mapping[str, object]) -> str:
    """What a revision moved on the three axes; of the first one, where the operation begins."""
    if row["from_phase"] is None:
        return str(row["to_phase"])
    moved = [(row[f"from_{axis}"], row[f"to_{axis}"]) for axis in ("phase", "render_state", "delivery_state")]
    return ", ".join(f"{was} → {now}" for was, now in moved if was != now)
