"""`messages list|parked|resume`: what waits and for what, what was set aside and why, and taking that up again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from coatcheck.cli.lists import limited, tell
from coatcheck.cli.opening import database
from coatcheck.cli.options import Actor, AsJson, Limit, Reason, Revision, limit_of, utf8
from coatcheck.core.actions import Action, ParkReason, WaitReason
from coatcheck.errors import Refused
from coatcheck.store.db import Database
from coatcheck.store.messages import Message, messages, parked

if TYPE_CHECKING:
    from coatcheck.app.operating.operator import Operator
    from coatcheck.app.reconciling.views import Decision

_LIVE = ("message", "tenant", "provider", "action", "phase", "due at", "waits for", "times", "leased by")
_PARKED = (
    "message",
    "tenant",
    "action",
    "phase",
    "reason",
    "parked at",
    "leases",
    "last error",
    "first lease",
    "last lease",
)


def list_messages(
    *,
    action: Annotated[str | None, Parameter(help=f"Only this action: {', '.join(Action)}.")] = None,
    provider: Annotated[str | None, Parameter(help="Only of this provider.")] = None,
    waiting: Annotated[str | None, Parameter(help=f"Only what waits for this: {', '.join(WaitReason)}.")] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List messages, live and set aside, by operation."""
    _known("--action", action, tuple(Action))
    _known("--waiting", waiting, tuple(WaitReason))
    if provider is not None:
        utf8("--provider", provider)
    _list(
        lambda opened: messages(opened, action=action, provider=provider, waiting=waiting),
        _LIVE,
        _live,
        limit=limit,
        as_json=as_json,
    )


def list_parked(
    *,
    reason: Annotated[str | None, Parameter(help=f"Only for this reason: {', '.join(ParkReason)}.")] = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List messages that were set aside for a person, with how their leases ended."""
    _known("--reason", reason, tuple(ParkReason))
    _list(lambda opened: parked(opened, reason=reason), _PARKED, _parked, limit=limit, as_json=as_json)


def resume(
    *messages: Annotated[str, Parameter(help="Messages by their ids, op_….0.")],
    reason: Reason,
    revision: Revision = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> int:
    """Take up messages that were set aside, under the rules that held before. Free; doubt is decided and not taken up."""
    if not messages:
        raise Refused(
            "expected the ids of messages, got none", next="`coatcheck messages parked` lists what is set aside"
        )
    if len(set(messages)) < len(messages):
        raise Refused("expected each message once, got one of them twice", next="remove it; nothing was resumed yet")
    if revision is not None and len(messages) > 1:
        raise Refused(
            f"--revision: expected one message with it, got {len(messages)}", next="resume them one after the other"
        )

    from coatcheck.cli.chosen import decide_each  # noqa: PLC0415 - a list decides nothing
    from coatcheck.cli.decision_file import Line  # noqa: PLC0415 - as above

    async def decide(handle: "Operator", line: Line, why: str) -> "Decision":
        return await handle.resume(line.message_id or "", reason=why, revision=line.revision)

    lines = [
        Line(operation_id=utf8("MESSAGE", each).rpartition(".")[0], message_id=each, revision=revision)
        for each in messages
    ]
    return decide_each(lines, decide, reason, actor, is_bulk=len(messages) > 1, as_json=as_json)


def _known(name: str, word: str | None, words: Sequence[str]) -> None:
    if word is not None and word not in words:
        raise Refused(
            f"{name}: expected one of {', '.join(words)}, got {word!a}", next="give one of them, or leave it out"
        )


def _list(
    ask: Callable[[Database], AsyncIterator[Message]],
    columns: Sequence[str],
    row: Callable[[Message], Sequence[object]],
    *,
    limit: int | None,
    as_json: bool,
) -> None:
    most = limit_of(limit)

    async def run() -> None:
        async with database() as (opened, _):
            await tell(limited(ask(opened), most), columns, row, empty="no message", as_json=as_json)

    asyncio.run(run())


def _live(each: Message) -> Sequence[object]:
    waits = f"its account: {each.account_wait}" if each.account_wait is not None else each.wait_reason
    if each.park_reason is not None:
        waits = f"a person: {each.park_reason}"
    return (
        each.message_id,
        each.tenant_id,
        each.provider,
        each.action,
        each.phase,
        each.visible_at,
        waits,
        each.wait_count or None,
        each.leased_by,
    )


def _parked(each: Message) -> Sequence[object]:
    return (
        each.message_id,
        each.tenant_id,
        each.action,
        each.phase,
        each.park_reason,
        each.parked_at,
        each.lease_count,
        each.last_error,
        each.first_leased_at,
        each.last_leased_at,
    )
