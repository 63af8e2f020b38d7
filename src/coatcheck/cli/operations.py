"""`operations list` and `operations show`: what is recorded, for programs line by line, for people in tables; of one operation as a story."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.reading import Recorded, phase_of, read_operations, read_story
from coatcheck.app.views import Operation
from coatcheck.cli.opening import database
from coatcheck.cli.options import AsJson, Limit, Tenant, limit_of, utf8
from coatcheck.cli.output import say, write_object
from coatcheck.core.operation import DeliveryState, Phase, RenderState

_SCREEN = 100
"""Operations in one table on a terminal; a longer list is several, so that it begins at once."""
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

    from coatcheck.cli.record import write  # noqa: PLC0415 - a list tells no story

    write(asyncio.run(run()), for_tenant=tenant is not None, as_json=as_json)


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
