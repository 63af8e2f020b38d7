"""One tenant's handle: what it reads, and the one thing it may ask for. Another tenant's operation is an unknown one, to both."""

from collections.abc import Awaitable, Callable

from coatcheck.app.operating.cancelling import cancel
from coatcheck.app.reading import Opened, TenantOperations
from coatcheck.app.reconciling.deciding import Decider
from coatcheck.app.reconciling.views import Decision
from coatcheck.app.reconciling.words import words_of
from coatcheck.seams import Seams
from coatcheck.store.db import Database
from coatcheck.store.doubts import Standing


class Tenant(TenantOperations):
    """What one tenant's session reads and cancels; made by `Coatcheck.for_tenant`."""

    def __init__(
        self, tenant_id: str, opened: Opened, *, writing: Callable[[], Awaitable[Database]], seams: Seams
    ) -> None:
        super().__init__(tenant_id, opened)
        self._writing = writing
        self._seams = seams

    async def cancel(self, operation_id: str, *, reason: str) -> Decision:
        """Cancel what was not sent yet, as `await coatcheck.for_tenant("t1").cancel("op_01m8kq…", reason="order withdrawn")`.

        The history names the tenant as the actor. Raises `NotCancellable` for anything else: while the remote job is not final the wish is
        recorded (`is_recorded`), which promises neither a stop nor a refund. Raises `NotFound` for an unknown id and another tenant's alike,
        `Unavailable` when nothing changed, `CommitUnknown` when nobody saw whether it did.
        """
        why = words_of("reason", reason)
        decider = Decider(reading=await self._opened(), writing=await self._writing(), seams=self._seams)

        async def load() -> Standing:
            return await decider.load(operation_id, None, tenant_id=self._tenant_id)

        return await cancel(decider, load, actor=f"tenant {self._tenant_id}", reason=why)
