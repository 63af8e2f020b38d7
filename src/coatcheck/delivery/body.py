"""The body of an answer in bounded pieces, counted as it comes and never past a cap."""

import aiohttp

from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import Reason, Stopped
from coatcheck.delivery.sniff import HEAD_BYTES
from coatcheck.seams import Faults, Point

_BATCH_BYTES = 1024 * 1024


class Body:
    """Reads one body once. `promised` is its length in bytes where somebody named one."""

    def __init__(self, reply: aiohttp.ClientResponse, *, promised: int | None, limits: Limits, faults: Faults) -> None:
        self._content = reply.content
        self._promised = promised
        self._max_bytes = limits.max_bytes
        self._faults = faults
        self._count = 0

    async def head(self) -> bytes:
        """The beginning: as much as a sniff needs, or all there is."""
        return await self._gather(HEAD_BYTES)

    async def batch(self) -> bytes:
        """The next mebibyte or so; empty at the end. Raises `Stopped`."""
        return await self._gather(_BATCH_BYTES)

    async def _gather(self, at_least: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while size < at_least and (piece := await self._piece()):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    async def _piece(self) -> bytes:
        try:
            piece = await self._content.readany()
        except TimeoutError:
            raise Stopped(Reason.TIMED_OUT, "the body fell silent") from None
        except (aiohttp.ClientError, OSError) as error:
            name = type(error).__name__
            raise Stopped(Reason.CUT_SHORT, f"the connection ended after {self._count} bytes ({name})") from None
        self._count += len(piece)
        if self._count > self._max_bytes:
            raise Stopped(Reason.TOO_LARGE, f"more than {self._max_bytes} bytes")
        if self._promised is not None and self._count > self._promised:
            raise Stopped(Reason.LENGTH_MISMATCH, f"{self._promised} bytes declared, more came")
        if piece:
            self._faults.reached(Point.V5_BODY_BYTES, self._count)
        return piece
