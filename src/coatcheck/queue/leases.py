"""A lease covers one short, repeatable action, never a render. It limits duplicate effort; only guarded writes protect the operation.

Every guard names the token and the holder. A lease that was lost writes nothing: the number of rows says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final

from coatcheck.core.actions import Action, ParkReason, WaitReason
from coatcheck.core.events import Waited
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import OperationId
from coatcheck.queue.turns import Turns
from coatcheck.store.db import Database, Plan, Row
from coatcheck.store.statements import statement
from coatcheck.store.subjects import Subject, subject_of

NOWHERE: Mapping[str, str] = MappingProxyType({})
SCHEMA_VERSIONS = (1,)
"""Versions of a message that this code understands; others stay for a worker that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a worker has room for: up to `room` messages of an action for a provider whose account it has the credential of.

    The last `reserve` of the room are kept for tenants that the worker has nothing of in hand.
    """

    action: Action
    provider: str
    account: str
    room: int
    lease_s: float
    reserve: int = 0


@frozen
class Message:
    """A leased instruction. It refers to an operation and never says unconditionally what to do with it."""

    operation_id: OperationId
    lane: int
    action: Action
    provider: str
    account: str | None
    expected_revision: int
    expected_remote_job_id: str | None
    lease_token: int
    lease_count: int
    leased_at: datetime
    lease_s: float
    waited: Waited
    tenant_id: str = ""
    """Whose it is; empty for what was written before messages said so."""
    is_suspect: bool = False
    """Whether its leases kept ending without a word, so that it was leased alone."""
    is_tried: bool = False
    """Whether looks of its account failed lately, so that how this one ends is news."""
    has_suspects: bool = False
    """Whether another one is due that is leased only to who has nothing else in hand."""
    subject: Subject | None = field(default=None, repr=False, compare=False)
    """What it is about, as that stood when its claim began; None where the claim could not tell."""

    @property
    def slot(self) -> tuple[OperationId, int]:
        """The message's address: at most one action at a time works on it."""
        return self.operation_id, self.lane


TOLD_LIMIT: Final = 200
"""Of how many messages a claim says what they are about: of two portions."""
ANSWER_LIMIT_BYTES: Final = 200_000
"""A claim holds its locks until its answer is on its way, also to a worker that stopped. Of PostgreSQL's pieces of 8 kB a local socket takes 196 kB,
and its own buffer one more (measured with Linux 6.18 and its usual buffers: with 204 kB the transaction ends, with 208 it waits)."""
ROW_BYTES: Final = 650
"""Of the answer for each message, beside its text, names and times."""
TEXT_LIMIT_BYTES: Final = 1000
"""The longest specification, and the longest source of an output, that a claim tells; less where many come together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give a message back, visible again after `delay_s`. `forgives`: an orderly end, so the count of bad leases starts anew.

    `error`: the class of what ended a lease badly, never its text.
    Without a `reason` it goes back with what it was waiting for: a look that is owed (accounting, a fresh source) stays owed.
    """

    message: Message
    delay_s: float
    reason: WaitReason | None = None
    forgives: bool = True
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """The lane has nothing left to do and the operation did not change."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Park a message for a person."""

    message: Message
    reason: ParkReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left to do, apart from what waits for a person or for accounting.

    `waiting_count` waits for an allowance or a pause, `left_count` is the rest, of which the first is due in `next_s` seconds.
    """

    left_count: int
    waiting_count: int
    next_s: float | None


class Leases:
    """Claims and ends leases in batches for one worker.

    Example: `messages = await leases.claim([Wanted(action=Action.OBSERVE, provider="genace", account="genace", room=100, lease_s=45)])`.
    """

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker

    async def claim(
        self,
        wanted: Sequence[Wanted],
        *,
        doubts: int,
        doubt_lease_s: float,
        lookups: Mapping[str, str] = NOWHERE,
        is_free: bool = True,
        away_s: tuple[float, float] | None = None,
        turns: Turns | None = None,
    ) -> list[Message]:
        """Lease what is due: at most `room` of each wanted kind, and up to `doubts` dispatches whose lease ended, of any provider.

        Among the latter are operations that wait to be looked up, but only of the providers in `lookups` (name to account). A worker that
        has nothing in hand (`is_free`) may get one message alone, a suspect; no other gets one. Leases that ended while the database was away,
        from and until so many seconds ago (`away_s`), say nothing about their messages: the count begins anew.

        Tenants take turns, and each account's budget is kept: of dispatches as far as it is seen here, of looks exactly. `turns` says who is
        served already, and learns where the next claim goes on and when a budget opens.
        """
        turns = turns or Turns()
        spots = [turns.after(want.action, want.provider) for want in wanted]
        parameters = {
            "action": [want.action for want in wanted],
            "provider": [want.provider for want in wanted],
            "account": [want.account for want in wanted],
            "room": [want.room for want in wanted],
            "reserve": [want.reserve for want in wanted],
            "after_tenant": [tenant_id for tenant_id, _ in spots],
            "after_precedence": [precedence for _, precedence in spots],
            "served_action": [action for action, _ in turns.served],
            "served_tenant": [tenant_id for _, tenant_id in turns.served],
            "lease_s": [want.lease_s for want in wanted],
            "schema_version": list(SCHEMA_VERSIONS),
            "doubts": doubts,
            "doubt_lease_s": doubt_lease_s,
            "lookup_provider": list(lookups),
            "lookup_account": list(lookups.values()),
            "is_free": is_free,
            "away_from_s": None if away_s is None else away_s[0],
            "away_until_s": None if away_s is None else away_s[1],
            "worker": self._worker,
            "told_limit": TOLD_LIMIT,
            "text_limit_bytes": TEXT_LIMIT_BYTES,
            "answer_limit_bytes": ANSWER_LIMIT_BYTES,
            "row_bytes": ROW_BYTES,
        }
        rows = await self._database.fetch(statement("queue", "claim"), parameters, plan=Plan.GENERIC)
        _learned(turns, wanted, {row["kind"]: row for row in rows if row["message_operation_id"] is None})
        return [_message(row) for row in rows if row["message_operation_id"] is not None]

    async def has_suspects(self, wanted: Sequence[Wanted]) -> bool:
        """Whether a message of these kinds is due that is leased only to who has nothing else in hand."""
        parameters = {
            "action": [want.action for want in wanted],
            "provider": [want.provider for want in wanted],
            "account": [want.account for want in wanted],
            "schema_version": list(SCHEMA_VERSIONS),
        }
        (row,) = await self._database.fetch(statement("queue", "suspects"), parameters)
        return bool(row["has_suspects"])

    async def renew(self, messages: Sequence[Message]) -> set[tuple[OperationId, int]]:
        """Keep leases longer; returns the slots that were kept. A slot that is missing may belong to another worker now."""
        rows = await self._database.fetch(
            statement("queue", "renew"), {**self._held(messages), "lease_s": [message.lease_s for message in messages]}
        )
        return {(row["operation_id"], row["lane"]) for row in rows}

    async def release(self, batch: Sequence[Release]) -> list[bool]:
        """Give messages back; False where the lease was lost already."""
        parameters = {
            **self._held([item.message for item in batch]),
            "delay_s": [item.delay_s for item in batch],
            "reason": [item.reason for item in batch],
            "forgives": [item.forgives for item in batch],
            "error": [item.error for item in batch],
        }
        return _kept(
            await self._database.fetch(statement("queue", "release"), parameters), [item.message for item in batch]
        )

    async def acknowledge(self, batch: Sequence[Acknowledge]) -> list[bool]:
        """Delete finished messages; False where the lease was lost already."""
        messages = [item.message for item in batch]
        return _kept(await self._database.fetch(statement("queue", "acknowledge"), self._held(messages)), messages)

    async def park(self, batch: Sequence[SetAside]) -> list[bool]:
        """Set messages aside; False where the lease was lost already."""
        messages = [item.message for item in batch]
        parameters = {**self._held(messages), "reason": [item.reason for item in batch]}
        return _kept(await self._database.fetch(statement("queue", "park"), parameters), messages)

    async def left(self, actions: Sequence[Action], providers: Sequence[str], accounts: Sequence[str]) -> Left:
        """Count what is left for these roles, as `await leases.left([Action.OBSERVE], ["genace"], ["genace"])`.

        Ended dispatches count always, what is to be looked up only among the roles that reconcile.
        """
        parameters = {
            "action": list(actions),
            "provider": list(providers),
            "account": list(accounts),
            "schema_version": list(SCHEMA_VERSIONS),
        }
        (row,) = await self._database.fetch(statement("queue", "left"), parameters)
        return Left(**row)

    async def wake_waiting(self, providers: Sequence[str]) -> None:
        """Make what waits for an allowance or a pause due once more."""
        await self._database.fetch(statement("queue", "retry_waiting"), {"provider": list(providers)})

    async def announce_sleep(self, sleep_s: float) -> None:
        """Tell enqueue that a worker sleeps for `sleep_s` seconds, so that it notifies."""
        await self._database.fetch(statement("queue", "sleep"), {"sleep_s": sleep_s})

    def _held(self, messages: Sequence[Message]) -> dict[str, object]:
        return {
            "operation_id": [message.operation_id for message in messages],
            "lane": [message.lane for message in messages],
            "lease_token": [message.lease_token for message in messages],
            "worker": self._worker,
        }


def _learned(turns: Turns, wanted: Sequence[Wanted], told: Mapping[int, Row]) -> None:
    """What the claim said of its kinds; of most it has nothing to say."""
    turns.asked()
    for kind, said in told.items():
        want = wanted[kind - 1]
        after = None if said["after_tenant"] is None else (said["after_tenant"], said["after_precedence"])
        turns.learn(want.action, want.provider, after=after, opens_in_s=said["opens_in_s"])


def _kept(rows: Sequence[Row], messages: Sequence[Message]) -> list[bool]:
    kept = {(row["operation_id"], row["lane"]) for row in rows}
    return [message.slot in kept for message in messages]


def _message(row: Row) -> Message:
    """What message and operation both have, a claim's row calls `message_…` where it is the message's."""
    return Message(
        operation_id=row["message_operation_id"],
        lane=row["lane"],
        action=Action(row["action"]),
        provider=row["message_provider"],
        account=row["message_account"],
        expected_revision=row["expected_revision"],
        expected_remote_job_id=row["expected_remote_job_id"],
        lease_token=row["lease_token"],
        lease_count=row["lease_count"],
        leased_at=row["leased_at"],
        lease_s=row["lease_s"],
        waited=Waited(reason=row["wait_reason"], since_at=row["wait_since_at"], count=row["wait_count"]),
        tenant_id=row["message_tenant_id"],
        is_suspect=row["is_suspect"],
        is_tried=row["is_tried"],
        has_suspects=row["has_suspects"],
        subject=_subject(row),
    )


def _subject(row: Row) -> Subject | None:
    """None where it was not told or is gone, where its row is older than the message, and where a text or a source is too long to come along."""
    if row["operation_id"] is None or row["revision"] < row["expected_revision"]:
        return None
    needed = {Action.DISPATCH: "specification_text", Action.DELIVER: "output_index"}.get(row["action"])
    return None if needed is not None and row[needed] is None else subject_of(row)
