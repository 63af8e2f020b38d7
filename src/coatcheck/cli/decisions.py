"""`reconcile adopt|prove-absent|redispatch|write-off|note`: each asks the library, and tells what was decided, what it cost and what follows.

One operation that is refused ends the command as any error does; of several, each has its own line, and the others are decided all the same.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

from cyclopts import Parameter

from coatcheck.app.library import Coatcheck
from coatcheck.app.reconciling import OperatorDecisions
from coatcheck.app.reconciling.outcome import cost_text
from coatcheck.app.reconciling.views import Cost, Decision
from coatcheck.app.story.wording import amount, count
from coatcheck.cli.chosen import From, Operations, decide_each, is_bulk_of, lines_of
from coatcheck.cli.decision_file import Line
from coatcheck.cli.options import Actor, AsJson, Reason, Revision, actor_of, given
from coatcheck.errors import CoatcheckError, Refused, Unconfirmed


def adopt(
    operation: Annotated[str | None, Parameter(help="The operation's id, op_….")] = None,
    job: Annotated[str | None, Parameter(help="The remote job's id at the service.")] = None,
    /,
    *,
    reason: Reason,
    force: Annotated[
        bool,
        Parameter(
            negative="",
            help="Also where another tenant's dispatch was open at the same time, or another account has a job of this id.",
        ),
    ] = False,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Say that JOB is the remote job of OPERATION. The service is asked for it first; nothing is sent again.

    An orphan of an earlier dispatch keeps its own money: what the present dispatch holds then counts as spent.
    """
    if operation is not None and job is None:
        raise Refused("expected OP and JOB, got OP alone", next="`coatcheck reconcile show OP` names candidates")

    async def decide(handle: OperatorDecisions, line: Line, why: str) -> Decision:
        named = line.remote_job_id if line.remote_job_id is not None else job or ""
        return await handle.adopt(line.operation_id, named, reason=why, force=force, revision=line.revision)

    lines = lines_of([] if operation is None else [operation], from_file, revision, with_job=True)
    return decide_each(lines, decide, reason, actor, is_bulk=from_file is not None, as_json=as_json)


def prove_absent(
    *operations: Operations,
    reason: Reason,
    force: Annotated[
        bool, Parameter(negative="", help="Also where the reply showed a job; the service is not asked for it.")
    ] = False,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Say that the service made no job: the hold is released and one more POST is authorised, which costs what it costs.

    Where the reply showed a job's id, the service is asked for it first.
    """

    async def decide(handle: OperatorDecisions, line: Line, why: str) -> Decision:
        return await handle.prove_absent(line.operation_id, reason=why, force=force, revision=line.revision)

    lines = lines_of(operations, from_file, revision)
    return decide_each(lines, decide, reason, actor, is_bulk=is_bulk_of(operations, from_file), as_json=as_json)


def redispatch(
    *operations: Operations,
    reason: Reason,
    yes: Annotated[bool, Parameter(negative="", help="Yes, spend again; without it the cost is stated.")] = False,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Spend again. COSTS MONEY: what the former dispatch holds counts as spent, and one more POST is authorised."""

    async def decide(handle: OperatorDecisions, line: Line, why: str) -> Decision:
        return await handle.redispatch(line.operation_id, reason=why, revision=line.revision)

    lines, is_bulk = lines_of(operations, from_file, revision), is_bulk_of(operations, from_file)
    if not yes:
        given("--reason", reason)
        asyncio.run(_state_cost(lines, actor_of(actor), is_bulk=is_bulk))
    return decide_each(lines, decide, reason, actor, is_bulk=is_bulk, as_json=as_json)


def write_off(
    *operations: Operations,
    reason: Reason,
    released: Annotated[
        bool, Parameter(negative="", help="What is held counts as not spent, because you know so.")
    ] = False,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Give up on what is uncertain, missing or stalled. Nothing is sent; what is held counts as spent."""

    async def decide(handle: OperatorDecisions, line: Line, why: str) -> Decision:
        return await handle.write_off(line.operation_id, reason=why, released=released, revision=line.revision)

    lines = lines_of(operations, from_file, revision)
    return decide_each(lines, decide, reason, actor, is_bulk=is_bulk_of(operations, from_file), as_json=as_json)


def note(
    *operations: Operations,
    reason: Reason,
    from_file: From = None,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Keep with an operation what you found out. Nothing else changes; the audit takes it as looked into."""

    async def decide(handle: OperatorDecisions, line: Line, why: str) -> Decision:
        return await handle.note(line.operation_id, reason=why, revision=line.revision)

    lines = lines_of(operations, from_file, revision)
    return decide_each(lines, decide, reason, actor, is_bulk=is_bulk_of(operations, from_file), as_json=as_json)


async def _state_cost(lines: Sequence[Line], actor: str, *, is_bulk: bool) -> None:
    """Raises `Unconfirmed`, which states the cost; of one operation, what refuses the redispatch itself."""
    costs: list[Cost] = []
    async with Coatcheck() as coatcheck:
        handle = coatcheck.for_operator(actor)
        for line in lines:
            try:
                costs.append(await handle.redispatch_cost(line.operation_id, revision=line.revision))
            except CoatcheckError:
                if not is_bulk:
                    raise
    told = _costs(costs) if is_bulk else cost_text(costs[0])
    refused = len(lines) - len(costs)
    more = f"; {refused} more would be refused" if refused else ""
    raise Unconfirmed(
        f"expected --yes, because it costs money: {told}{more}", next="add --yes to go on; nothing changed"
    )


def _costs(costs: Sequence[Cost]) -> str:
    spent: dict[str, Decimal] = defaultdict(Decimal)
    estimate: dict[str, Decimal] = defaultdict(Decimal)
    for each in costs:
        spent[each.unit] += each.spent
        estimate[each.unit] += each.estimate or 0
    unknown = sum(each.estimate is None for each in costs)
    known = ", ".join(amount(value, unit) for unit, value in sorted(estimate.items())) or "nothing"
    more = f", and {unknown} of them an amount that nobody estimated" if unknown else ""
    former = ", ".join(amount(value, unit) for unit, value in sorted(spent.items())) or "nothing"
    return f"{former} of former dispatches count as spent, and {count(len(costs), 'more POST')} will cost about {known}{more}"
