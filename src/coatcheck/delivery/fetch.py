"""One output from its URL into the sink: judge, stream, verify, publish. Every failure is a value, and none leaves an object behind.

A delivery never asks for a render; all it can do is GET. The body passes in pieces, so its size costs disk and time but no memory.
"""

import asyncio
import hashlib
import ssl
from dataclasses import dataclass
from typing import Final

from coatcheck.delivery import replies
from coatcheck.delivery.addresses import HostPolicy
from coatcheck.delivery.body import Body
from coatcheck.delivery.hops import Hops
from coatcheck.delivery.limits import Limits
from coatcheck.delivery.outcome import NotStored, OutputSource, Reason, Stopped, Stored
from coatcheck.delivery.sink import Place, Sink, Upload
from coatcheck.delivery.sniff import HEAD_BYTES, Kind, refusal, sniff
from coatcheck.seams import Point, Seams

AT_ONCE_BYTES: Final = 64 * 1024
"""A smaller part is digested sooner than a thread begins (under a tenth of a millisecond)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Poured:
    bytes_count: int
    sha256: str


class Deliverer:
    """Delivers outputs of one service. Keeps no state between calls: any number may run at once, and nothing is to be closed.

    One call: `await Deliverer(sink=sink, policy=policy, limits=Limits(), seams=seams).deliver(output)`.
    `tls` replaces the system's trust store, for services behind an authority of one's own.
    """

    def __init__(
        self, *, sink: Sink, policy: HostPolicy, limits: Limits, seams: Seams, tls: ssl.SSLContext | None = None
    ) -> None:
        self._sink = sink
        self._hops = Hops(policy=policy, limits=limits, seams=seams, tls=tls)
        self._limits = limits
        self._seams = seams

    async def deliver(self, output: OutputSource) -> Stored | NotStored:
        """Store one output within `limits.total_s` seconds. Raises `Refused` only for an id or index that is not ours."""
        place = Place(operation_id=output.operation_id, tenant_id=output.tenant_id, index=output.index)
        limit = asyncio.timeout(self._limits.total_s)
        try:
            async with limit:
                return await self._store(output, place)
        except TimeoutError:
            if not limit.expired():
                raise
            return NotStored(reason=Reason.TIMED_OUT, detail=f"not done in {self._limits.total_s:g} s")
        except Stopped as stopped:
            return stopped.outcome

    async def _store(self, output: OutputSource, place: Place) -> Stored:
        replies.check_declared(output, self._limits)
        async with self._hops.opened(output.url) as reply:
            replies.check_status(reply.status, reply.headers, self._seams.clock.now(), self._limits)
            promised = replies.check_headers(reply.headers, output, self._limits)
            body = Body(reply, promised=promised, limits=self._limits, faults=self._seams.faults)
            head = await body.head()
            kind = _judged(output.content_type, head)
            upload = self._sink.begin(place)
            try:
                poured = await self._pour(head, body, upload)
                self._verify(poured, output)
                uri = await upload.publish(
                    sha256=poured.sha256, bytes_count=poured.bytes_count, extension=kind.extension
                )
                self._seams.faults.reached(Point.V8_PUBLISHED)
            finally:
                await upload.discard()
        return Stored(
            uri=uri,
            sha256=poured.sha256,
            bytes=poured.bytes_count,
            declared_type=output.content_type,
            sniffed_type=kind.media_type,
        )

    async def _pour(self, head: bytes, body: Body, upload: Upload) -> _Poured:
        digest, count = hashlib.sha256(), 0
        batch = head
        while batch:
            await upload.write(batch)
            if len(batch) <= AT_ONCE_BYTES:
                digest.update(batch)
            else:
                await asyncio.to_thread(digest.update, batch)
            count += len(batch)
            batch = await body.batch()
        self._seams.faults.reached(Point.V6_BODY_COMPLETE)
        return _Poured(bytes_count=count, sha256=digest.hexdigest())

    def _verify(self, poured: _Poured, output: OutputSource) -> None:
        if output.bytes is not None and poured.bytes_count != output.bytes:
            raise Stopped(Reason.LENGTH_MISMATCH, f"{output.bytes} bytes declared, {poured.bytes_count} came")
        if output.sha256 is not None and poured.sha256 != output.sha256.strip().lower():
            raise Stopped(Reason.CHECKSUM_MISMATCH, "the body does not have the declared SHA-256")
        self._seams.faults.reached(Point.V7_VERIFIED)


def _judged(declared: str | None, head: bytes) -> Kind:
    kind = sniff(head[:HEAD_BYTES])
    why = refusal(declared, kind)
    if why is not None:
        raise Stopped(Reason.UNEXPECTED_TYPE, why)
    return kind
