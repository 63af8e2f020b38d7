"""Wishes to cancel: a POST or a DELETE about one job, never with a body, so what goes out here can order nothing (S9)."""

from typing import Final

from coatcheck.core.evidence import Exchange, Request
from coatcheck.provider.http import Client

METHODS: Final = frozenset({"POST", "DELETE"})


class Cancels(Client):
    """`async with Cancels(tls=secure_context(), seams=seams) as line: await line.cancel(request, timeout_s=5)`."""

    async def cancel(self, request: Request, *, timeout_s: float) -> Exchange:
        """What came back within `timeout_s` in all. Remote faults are in the value, never raised; redirects are not followed.

        Raises ValueError for a request with a body or another method, and RuntimeError outside the `async with` block.
        """
        if request.method not in METHODS or request.body:
            raise ValueError(f"expected a POST or DELETE without a body, got {request.method}")
        return await self._exchange(request, timeout_s)
