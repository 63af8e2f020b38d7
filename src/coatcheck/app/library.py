"""The library's front door. Enqueue borrows the caller's connection; reads have one of their own, opened when the first is asked.

No driver is loaded until a connection is there or a read is made.
"""

import asyncio
from contextlib import ExitStack
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack
from weakref import finalize

from coatcheck import enqueue as room
from coatcheck.app.place import database_of
from coatcheck.app.views import EnqueuedOperation
from coatcheck.config import Settings, load_settings
from coatcheck.core.identity import made_at, operation_text
from coatcheck.core.operation import DeliveryState, RenderState
from coatcheck.errors import MissingExtra
from coatcheck.seams import Seams

if TYPE_CHECKING:
    from coatcheck.app.operating.operator import Operator
    from coatcheck.app.operating.tenant import Tenant
    from coatcheck.store.db import Database


class Coatcheck:
    """Enqueue operations and read them back. Without arguments it takes the settings of the environment and `coatcheck.toml`.

    Usable at once; nothing is opened before it is needed. Used as an asynchronous context manager, or closed with `aclose()`, it lets go
    of its connection. One object belongs to one event loop.

        coatcheck = Coatcheck()
        async with connection.transaction():
            operation = await coatcheck.enqueue(
                connection, tenant_id="t1", key="order-7", provider="genace", specification={"prompt": "a red coat"}
            )
        print(await coatcheck.for_tenant("t1").get(operation.operation_id))

    Raises `SettingUnknown` and `SettingInvalid` when it is made.
    """

    def __init__(self, settings: Settings | None = None, *, seams: Seams | None = None) -> None:
        self._settings = load_settings() if settings is None else settings
        self._seams = Seams.real() if seams is None else seams
        self._url: str | None = None
        self._databases: dict[str, Database] = {}
        self._opening = asyncio.Lock()
        self._embedded = ExitStack()
        # Whoever forgets to close must not leave an embedded server behind: this runs at the interpreter's exit at the latest.
        finalize(self, self._embedded.close)

    async def enqueue(
        self,
        connection: object,
        *,
        tenant_id: str,
        key: str,
        specification: object,
        provider: str,
        estimate: Decimal | int | str | None = None,
        **wishes: Unpack[room.Wishes],
    ) -> EnqueuedOperation:
        """Write the intent and its first message in the caller's open transaction; the caller commits both or neither.

        `connection` is asynchronous: psycopg, asyncpg or SQLAlchemy. `estimate` is an amount of money; `wishes` are `unit`, `priority`,
        `not_before_at` and `dispatch_by_at`. The same key and specification give the same operation with `created` False, as far as the
        answer tells it (`EnqueuedOperation`). Raises `KeyReused` for another specification under the key, `SpecificationInvalid`,
        `NoTransaction` and `Refused`; after each the transaction is still usable.
        """
        request = room.prepare(
            tenant_id=tenant_id, key=key, provider=provider, specification=specification, estimate=estimate, **wishes
        )
        return _answer(request, await room.enqueue(connection, request, faults=self._seams.faults))

    def enqueue_sync(
        self,
        connection: object,
        *,
        tenant_id: str,
        key: str,
        specification: object,
        provider: str,
        estimate: Decimal | int | str | None = None,
        **wishes: Unpack[room.Wishes],
    ) -> EnqueuedOperation:
        """`enqueue` for a blocking connection of psycopg or SQLAlchemy."""
        request = room.prepare(
            tenant_id=tenant_id, key=key, provider=provider, specification=specification, estimate=estimate, **wishes
        )
        return _answer(request, room.enqueue_sync(connection, request, faults=self._seams.faults))

    def for_tenant(self, tenant_id: str) -> "Tenant":
        """What one tenant reads, and cancels: `await coatcheck.for_tenant("t1").get(operation_id)`. An application needs no other handle.

        Raises `Refused` for an empty tenant and `MissingExtra` without the extra `coatcheck[psycopg]`.
        """
        try:
            from coatcheck.app.operating.tenant import Tenant  # noqa: PLC0415 - a process that only enqueues loads no second driver
        except ModuleNotFoundError as error:
            raise MissingExtra.of("psycopg", str(error.name)) from None

        return Tenant(tenant_id, self._opened, writing=self._opened_for_writes, seams=self._seams)

    def for_operator(self, actor: str) -> "Operator":
        """All tenants' operations: what is in doubt, waits or was set aside, and what is decided about it: `coatcheck.for_operator("ada").doubts()`.

        `actor` is the person who decides, kept with every decision. Adopting asks the service, so the provider's settings are needed.
        Raises `Refused` for a blank actor and `MissingExtra` without the extra `coatcheck[psycopg]`.
        """
        try:
            from coatcheck.app.operating.operator import Operator  # noqa: PLC0415 - as above
        except ModuleNotFoundError as error:
            raise MissingExtra.of("psycopg", str(error.name)) from None

        return Operator(
            actor, settings=self._settings, seams=self._seams, reading=self._opened, writing=self._opened_for_writes
        )

    async def aclose(self) -> None:
        """Close what was opened; a later read opens it again."""
        async with self._opening:
            databases, self._databases = self._databases, {}
            for database in databases.values():
                await database.close()
            self._url = None
            await asyncio.to_thread(self._embedded.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _opened(self) -> "Database":
        from coatcheck.app.reading import RereadingDatabase  # noqa: PLC0415 - as above

        return await self._opened_as("library", RereadingDatabase)

    async def _opened_for_writes(self) -> "Database":
        """A connection whose statements are never repeated by themselves."""
        from coatcheck.store.db import Database  # noqa: PLC0415 - as above

        return await self._opened_as("library decisions", Database)

    async def _opened_as(self, name: str, kind: "type[Database]") -> "Database":
        async with self._opening:
            if self._url is None:
                # An embedded server takes its time to start, and the application's loop goes on meanwhile.
                place = database_of(self._settings, self._seams)
                self._url = await asyncio.to_thread(self._embedded.enter_context, place)
            if name not in self._databases:
                self._databases[name] = kind(self._url, seams=self._seams, name=name)
            return self._databases[name]


def _answer(request: room.EnqueueRequest, found: room.Enqueued) -> EnqueuedOperation:
    return EnqueuedOperation(
        operation_id=operation_text(found.operation_id),
        tenant_id=request.tenant_id,
        operation_key=request.operation_key,
        provider=request.provider,
        specification_hash=found.specification_hash,
        phase=found.phase,
        render_state=RenderState.NONE,
        remote_status=None,
        delivery_state=DeliveryState.NOT_STARTED,
        remote_job_id=None,
        revision=found.revision,
        created_at=made_at(found.operation_id),
        updated_at=made_at(found.operation_id),
        outputs=(),
        created=found.created,
    )
