"""Uploads into a file sink, as the tests of the sink and of its uploads make them."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from coatcheck.delivery.file_sink import BUFFERED_BYTES, FileSink, FileUpload
from coatcheck.delivery.outcome import Reason, Stopped
from coatcheck.delivery.sink import Place
from coatcheck.seams import Seams

BODY = b"the very bytes" * 10_000
SMALL = BODY[:BUFFERED_BYTES]
SHA256 = hashlib.sha256(BODY).hexdigest()
PLACE = Place(operation_id="op-1", tenant_id="tenant-a", index=2)


async def put(sink: FileSink, place: Place = PLACE, body: bytes = BODY) -> str:
    upload = sink.begin(place)
    try:
        return await stored(upload, body)
    finally:
        await upload.discard()


async def stored(upload: FileUpload, body: bytes) -> str:
    await upload.write(body)
    digest = hashlib.sha256(body).hexdigest()
    return await upload.publish(sha256=digest, bytes_count=len(body), extension="png")


def reason_of(root: Path, place: Place = PLACE, body: bytes = BODY) -> Reason:
    """Why a put into `root` is refused; nothing may be left of it."""
    with pytest.raises(Stopped) as stopped:
        asyncio.run(put(FileSink(root, seams=Seams.real()), place, body))
    return stopped.value.outcome.reason


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))
