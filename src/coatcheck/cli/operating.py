"""`operations cancel|reobserve|redeliver`: each asks the library, and tells what was done and what follows. None of them sends anything.

One operation that is refused ends the command as any error does; of several, each has its own line, and the others are dealt with all the same.
"""

from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.operating.operator import Operator
from coatcheck.app.reconciling.views import Decision
from coatcheck.cli.chosen import From, Operations, decide_each, is_bulk_of, lines_of
from coatcheck.cli.decision_file import Line
from coatcheck.cli.options import Actor, AsJson, Reason, Revision, Tenant, utf8


def cancel(
    *operations: Operations,
    reason: Reason,
    tenant: Tenant = None,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Cancel what was not sent yet. Later only the wish is recorded, which promises neither that a render stops nor a refund."""
    if tenant is not None:
        utf8("--tenant", tenant)

    async def decide(handle: Operator, line: Line, why: str) -> Decision:
        return await handle.cancel(line.operation_id, reason=why, revision=line.revision, tenant_id=tenant)

    lines = lines_of(operations, from_file, revision)
    return decide_each(lines, decide, reason, actor, is_bulk=is_bulk_of(operations, from_file), as_json=as_json)


def reobserve(
    *operations: Operations,
    reason: Reason,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Look at the remote job now, and until a new deadline, also where it is missing or stalled. Free."""

    async def decide(handle: Operator, line: Line, why: str) -> Decision:
        return await handle.reobserve(line.operation_id, reason=why, revision=line.revision)

    lines = lines_of(operations, from_file, revision)
    return decide_each(lines, decide, reason, actor, is_bulk=is_bulk_of(operations, from_file), as_json=as_json)


def redeliver(
    *operations: Operations,
    reason: Reason,
    output: Annotated[int | None, Parameter(help="Only the output of this number, from 0.")] = None,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Try to store outputs again whose delivery failed, with all their tries. Free; nothing is rendered again."""

    async def decide(handle: Operator, line: Line, why: str) -> Decision:
        return await handle.redeliver(line.operation_id, reason=why, output=output, revision=line.revision)

    lines = lines_of(operations, from_file, revision)
    return decide_each(lines, decide, reason, actor, is_bulk=is_bulk_of(operations, from_file), as_json=as_json)
