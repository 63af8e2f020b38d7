"""Output files: bytes that are a pure function of seed, job and index, made piece by piece and never held whole.

Every 64 KiB piece carries its own number, so pieces that were lost, doubled or swapped on the way change the checksum.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

PIECE_BYTES = 65_536

MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x01\x00\x08\x02\x00\x00\x00\xd3\x10\x3f\x31",
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00",
    "image/webp": b"RIFF\xff\xff\xff\x7fWEBPVP8 ",
    "video/mp4": b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42\x00\x00\x00\x08free",
    "audio/wav": b"RIFF\xff\xff\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x44\xac\x00\x00\x88\x58\x01\x00\x02\x00\x10\x00data",
    "audio/mpeg": b"ID3\x04\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x00",
}
"""The first bytes by which a reader tells the declared types apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """One file of `length` bytes (None: it never ends) whose filler is `block`. Iterate to get its pieces."""

    content_type: str
    length: int | None
    block: bytes

    def __iter__(self) -> Iterator[bytes]:
        start, number = 0, 0
        while self.length is None or start < self.length:
            piece = self._piece(number)
            yield piece if self.length is None else piece[: self.length - start]
            start, number = start + PIECE_BYTES, number + 1

    def sha256(self) -> str:
        """Lower-case hex over all pieces; 200 MB take about half a second, so large files are hashed in a thread."""
        digest = hashlib.sha256()
        for piece in self:
            digest.update(piece)
        return digest.hexdigest()

    def _piece(self, number: int) -> bytes:
        head = number.to_bytes(8) if number else MAGIC.get(self.content_type, b"\x00\x00\x00\x00")
        return head + self.block[len(head) :]
