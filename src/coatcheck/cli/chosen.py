"""Which operations a command is about, typed or out of a file, in whose name and why: the same for every command that changes one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from coatcheck.app.library import Coatcheck
from coatcheck.app.operating.operator import Operator
from coatcheck.app.reconciling.views import Decision
from coatcheck.cli.deciding import decide_all, decide_one
from coatcheck.cli.decision_file import Line, read_decisions, typed
from coatcheck.cli.options import actor_of, given
from coatcheck.errors import Refused

Operations: TypeAlias = Annotated[str, Parameter(help="Operations by their ids, op_….")]
From: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--from",
        allow_leading_hyphen=True,
        help="A file with a decision on each line, OP (to adopt: OP JOB) or an object in JSON; - reads stdin.",
    ),
]
Decide: TypeAlias = Callable[[Operator, Line, str], Awaitable[Decision]]


def lines_of(
    operations: Sequence[str], from_file: str | None, revision: int | None, *, with_job: bool = False
) -> list[Line]:
    """What was typed, or what a file says. Raises `Refused` for both, for neither, and for a file that is wrong anywhere."""
    if bool(operations) is (from_file is not None):
        got = "both" if operations else "neither"
        raise Refused(f"expected operations or --from, got {got}", next="name operations, or a file with --from")
    if from_file is None:
        return typed(operations, revision)
    if revision is not None:
        raise Refused(
            "--revision: expected one operation with it, got a file", next="give each line a revision of its own"
        )
    return read_decisions(from_file, with_job=with_job)


def is_bulk_of(operations: Sequence[str], from_file: str | None) -> bool:
    """Whether each operation gets a line of its own, however it ends."""
    return from_file is not None or len(operations) > 1


def decide_each(
    lines: Sequence[Line], decide: Decide, reason: str, actor: str | None, *, is_bulk: bool, as_json: bool
) -> int:
    """Decide about one or each, in the actor's name and for the reason given. The answer is the exit code."""
    why, who = given("--reason", reason), actor_of(actor)

    async def run() -> int:
        async with Coatcheck() as coatcheck:
            handle = coatcheck.for_operator(who)

            async def one(line: Line) -> Decision:
                return await decide(handle, line, line.reason or why)

            if is_bulk:
                return await decide_all(handle, lines, one, as_json=as_json)
            return await decide_one(lines[0], one, as_json=as_json)

    return asyncio.run(run())
