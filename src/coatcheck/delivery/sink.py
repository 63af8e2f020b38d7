"""The port to durable storage: an object is absent or complete, and is named by ids of ours and by its own content.

No word of a remote service enters a name. The same bytes always get the same name, so a repeated delivery finds its own work done.
"""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Protocol

from coatcheck.errors import Refused

_OPERATION_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_TENANT_HASH_DIGITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an output belongs, before its content is known."""

    operation_id: str
    tenant_id: str = field(repr=False)
    index: int

    def __post_init__(self) -> None:
        if _OPERATION_ID.fullmatch(self.operation_id) is None:
            raise Refused(
                "expected an operation id of letters, digits, - and _, got something else",
                next="Pass the id as it was given.",
            )
        if self.index < 0:
            raise Refused(f"expected an output index from 0, got {self.index}", next="Pass the position in outputs.")

    @property
    def tenant_folder(self) -> str:
        """A name that does not tell who the tenant is: the first half of the SHA-256 of its id."""
        return hashlib.sha256(self.tenant_id.encode("utf-8", "surrogatepass")).hexdigest()[:_TENANT_HASH_DIGITS]

    def file_name(self, sha256: str, extension: str) -> str:
        """The last part of the name: `<index>-<sha256>.<extension>`."""
        return f"{self.index}-{sha256}.{extension}"


class Upload(Protocol):
    """One object on its way. Calls come in the order write*, publish once, discard; discard may come at any time, and after it only itself.

    Every method but `discard` raises `Stopped` with `sink_full`, `sink_failed` or `sink_conflict` for what the storage refuses.
    """

    async def write(self, data: bytes) -> None:
        """Append `data`. Nothing of it is visible under a final name."""

    async def publish(self, *, sha256: str, bytes_count: int, extension: str) -> str:
        """Make the bytes durable, then give the object its final name, durably and without overwriting; returns its URI.

        An object that has the name already counts as done if its bytes are the same; it is read to know.
        """

    async def discard(self) -> None:
        """Release the temporary, published or not. Never raises for a storage failure; a leftover is for `sweep`. May be repeated."""


class Sink(Protocol):
    """Where outputs are kept. Any number of uploads may run at once, of the same place as well."""

    def begin(self, place: Place) -> Upload:
        """An upload for `place`. Touches no storage yet, so that nothing can be left behind before the caller holds it."""

    async def sweep(self, older_than_s: float) -> int:
        """Remove temporaries untouched for `older_than_s` seconds (above any delivery's limit), and return how many."""
