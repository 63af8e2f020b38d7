"""Reads for one tenant: the tenant is named in every statement, so a foreign id gets the answer of an unknown one."""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from coatcheck.app.views import Operation, Output
from coatcheck.core import operation as core
from coatcheck.core.identity import operation_text, parse_operation_id
from coatcheck.core.operation import OperationId, Phase
from coatcheck.errors import CommitUnknown, NotFound, Refused, Unavailable
from coatcheck.store.db import Database, Plan, Row, Trouble, trouble
from coatcheck.store.failures import meaning
from coatcheck.store.operations import Delivery, find, load_deliveries, scan, story

Opened = Callable[[], Awaitable[Database]]
"""Hands out the database, opening it at the first call."""


class RereadingDatabase(Database):
    """A database that is only read: a statement whose connection broke is asked once more, and what fails is of our own tree."""

    async def fetch(
        self, text: str, parameters: Mapping[str, Any] | None = None, *, plan: Plan = Plan.AUTO
    ) -> Sequence[Row]:
        """The rows. A connection that lay idle may have been cut by a restart or a gateway, which the reader need not notice."""
        try:
            return await super().fetch(text, parameters, plan=plan)
        except (psycopg.Error, CommitUnknown) as error:
            if isinstance(error, psycopg.Error) and trouble(error) is not Trouble.UNKNOWN:
                raise meaning(error) from None
        try:
            return await super().fetch(text, parameters, plan=plan)
        except psycopg.Error as error:
            raise meaning(error) from None
        except CommitUnknown as error:
            raise Unavailable(error.message, next="try again: reading changes nothing") from None


class OperationList:
    """Operations of one tenant, oldest first: `async for` streams them however many there are, `await` gathers them."""

    def __init__(self, pages: Callable[[], AsyncIterator[Operation]]) -> None:
        self._pages = pages

    def __aiter__(self) -> AsyncIterator[Operation]:
        return self._pages()

    def __await__(self) -> Generator[Any, None, list[Operation]]:
        return self._gathered().__await__()

    async def _gathered(self) -> list[Operation]:
        return [operation async for operation in self._pages()]


class TenantOperations:
    """The read handle of one tenant, made by `Coatcheck.for_tenant`."""

    def __init__(self, tenant_id: str, opened: Opened) -> None:
        self._tenant_id = _tenant(tenant_id)
        self._opened = opened

    async def get(self, operation_id: str) -> Operation:
        """One operation, as `await coatcheck.for_tenant("t1").get("op_01m8kq…")`.

        Raises `NotFound` for an unknown id, another tenant's and one that is none, all alike; `Unavailable` when the database is away.
        """
        return await read_operation(await self._opened(), operation_id, self._tenant_id)

    def list(self, *, phase: Phase | str | None = None, limit: int | None = None) -> OperationList:
        """The tenant's operations, oldest first: `async for operation in handle.list(phase="uncertain")`, or `await handle.list(limit=20)`.

        Raises `Refused` for a word that is no phase and for a negative limit.
        """
        wanted = phase_of(phase)
        if limit is not None and limit < 0:
            raise Refused(f"limit: expected a whole number from 0, got {limit}", next="leave it out to read every one")
        return OperationList(lambda: self._stream(wanted, limit))

    async def _stream(self, phase: Phase | None, limit: int | None) -> AsyncIterator[Operation]:
        async for found in read_operations(await self._opened(), self._tenant_id, phase, limit):
            yield found


async def read_operation(database: Database, operation_id: str, tenant_id: str | None) -> Operation:
    """One operation under its tenant, or for the operator under none. Raises `NotFound`."""
    return await _viewed(database, await _found(database, operation_id, tenant_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One operation as it is recorded and as it is shown, with everything kept about it: dispatches, messages, incidents, history."""

    record: core.Operation
    view: Operation
    kept: Mapping[str, list[Row]] = field(repr=False)


async def read_story(database: Database, operation_id: str, tenant_id: str | None) -> Recorded:
    """One operation with all that its story is told from. Raises `NotFound`."""
    found = await _found(database, operation_id, tenant_id)
    return Recorded(record=found, view=await _viewed(database, found), kept=await story(database, found.operation_id))


async def _found(database: Database, operation_id: str, tenant_id: str | None) -> core.Operation:
    known = _id(operation_id)
    found = None if known is None else await find(database, known, tenant_id)
    if found is None:
        raise NotFound(
            "expected the id of an operation, got one that names none here", next="check the id and the tenant"
        )
    return found


async def _viewed(database: Database, found: core.Operation) -> Operation:
    return view_of(found, (await load_deliveries(database, [found.operation_id]))[found.operation_id])


async def read_operations(
    database: Database, tenant_id: str | None, phase: Phase | None, limit: int | None
) -> AsyncIterator[Operation]:
    """Every matching operation in keyset order."""
    async for found, outputs in scan(database, tenant_id=tenant_id, phase=phase, limit=limit):
        yield view_of(found, outputs)


def phase_of(word: str | None) -> Phase | None:
    """A phase by its word. Raises `Refused` with the words there are."""
    if word is None or word in tuple(Phase):
        return None if word is None else Phase(word)
    raise Refused(f"phase: expected one of {', '.join(Phase)}, got {word!a}", next="give one of them, or none")


def _tenant(tenant_id: object) -> str:
    """A tenant. No value of a caller's may ever turn into the operator's view, which names none."""
    if not isinstance(tenant_id, str) or not tenant_id:
        raise Refused(
            "tenant_id: expected text that is not empty, got something else",
            next="name the tenant of the caller's session",
        )
    return tenant_id


def _id(operation_id: object) -> OperationId | None:
    return parse_operation_id(operation_id) if isinstance(operation_id, str) else None


def view_of(operation: core.Operation, outputs: Sequence[Delivery]) -> Operation:
    """The public form of a record."""
    return Operation(
        operation_id=operation_text(operation.operation_id),
        tenant_id=operation.tenant_id,
        operation_key=operation.operation_key,
        provider=operation.provider,
        specification_hash=operation.specification_hash,
        phase=operation.phase,
        render_state=operation.render_state,
        remote_status=operation.remote_status,
        delivery_state=operation.delivery_state,
        remote_job_id=operation.remote_job_id,
        revision=operation.revision,
        created_at=operation.created_at,
        updated_at=operation.updated_at,
        outputs=tuple(_output(each) for each in outputs),
    )


def _output(delivery: Delivery) -> Output:
    return Output(
        index=delivery.index,
        state=delivery.state,
        uri=delivery.uri,
        sha256=delivery.sha256,
        bytes=delivery.bytes,
        content_type=delivery.sniffed_type or delivery.declared_type,
    )
