"""`operations list` and `operations show`: what is recorded, for programs line by line and for people as tables."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from coatcheck.app.reading import phase_of, read_operation, read_operations
from coatcheck.app.views import Operation
from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson, Tenant, utf8
from coatcheck.cli.output import write_object
from coatcheck.core.identity import parse_operation_id
from coatcheck.errors import NotFound, Refused
from coatcheck.store.operations import story

_SCREEN = 100
"""Operations in one table on a terminal; a longer list is several, so that it begins at once."""
_HIDDEN = frozenset({"operation_id", "reply"})
_DETAILS = frozenset({"marks_ms", "send_by_at", "displaced", "schema_version", "lease_token"})
"""What only programs are shown."""
_COLUMNS = (
    "operation",
    "tenant",
    "key",
    "provider",
    "phase",
    "render",
    "delivery",
    "remote job",
    "outputs",
    "created at",
)


def list_operations(
    *,
    tenant: Tenant = None,
    phase: Annotated[str | None, Parameter(help="Only operations in this phase.")] = None,
    limit: Annotated[int | None, Parameter(help="At most so many; without it, every one.")] = None,
    as_json: AsJson = False,
) -> None:
    """List operations, oldest first, while they are read."""
    wanted = phase_of(phase)
    if limit is not None and limit < 0:
        raise Refused(
            f"--limit: expected a whole number from 0, got {limit}", next="leave --limit out to see every one"
        )
    if tenant is not None:
        utf8("--tenant", tenant)

    async def run() -> None:
        async with database() as (opened, _):
            found = read_operations(opened, tenant, wanted, limit)
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

    async def run() -> tuple[Operation, Mapping[str, list[dict[str, Any]]]]:
        async with database() as (opened, _):
            found = await read_operation(opened, operation, tenant)
            known = parse_operation_id(found.operation_id)
            if known is None:
                raise NotFound(f"no operation {found.operation_id}", next="check the id and the tenant")
            return found, await story(opened, known)

    found, kept = asyncio.run(run())
    if as_json:
        write_object({**found.as_json(), **_story(found.operation_id, kept)})
    else:
        _print_story(found, _story(found.operation_id, kept))


def _story(operation_id: str, kept: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, object]]]:
    """What is kept about an operation, each row without the operation's own id and a message with the name it has outside."""
    rows = {
        name: [{column: value for column, value in row.items() if column not in _HIDDEN} for row in found]
        for name, found in kept.items()
    }
    rows["messages"] = [{"message_id": f"{operation_id}.{row['lane']}", **row} for row in rows["messages"]]
    return rows


async def _write_lines(found: AsyncIterator[Operation]) -> None:
    async for operation in found:
        write_object(operation.as_json())


async def _print_screens(found: AsyncIterator[Operation]) -> None:
    screen: list[Operation] = []
    async for operation in found:
        screen.append(operation)
        if len(screen) == _SCREEN:
            _print_screen(screen)
            screen = []
    if screen:
        _print_screen(screen)


def _print_screen(screen: Sequence[Operation]) -> None:
    from coatcheck.cli.tables import console, table  # noqa: PLC0415 - for people only

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
            f"{sum(output.state == 'delivered' for output in each.outputs)}/{len(each.outputs)}",
            each.created_at,
        )
        for each in screen
    ]
    console().print(table(_COLUMNS, rows))


def _render(operation: Operation) -> str:
    said = operation.remote_status
    return operation.render_state if said in (None, operation.render_state) else f"{operation.render_state} ({said})"


def _print_story(operation: Operation, kept: Mapping[str, list[dict[str, object]]]) -> None:
    from coatcheck.cli.tables import console, table  # noqa: PLC0415 - for people only

    screen = console()
    facts = [(name, getattr(operation, name)) for name in Operation.__slots__ if name != "outputs"]
    screen.print(table(("field", "value"), facts))
    outputs: list[dict[str, object]] = [output.as_json() for output in operation.outputs]
    for title, rows in {"outputs": outputs, **kept}.items():
        if rows:
            used = [name for name in rows[0] if name not in _DETAILS and any(row[name] is not None for row in rows)]
            screen.print(table(used, ([row[name] for name in used] for row in rows), title=f"\n{title}"))
