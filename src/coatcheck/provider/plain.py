"""The head of a reply in its plainest form, recognised in one step: JSON of a known length comes so, and h11 takes six times as long for it.

What is recognised here h11 reads alike (a property, tested). All else is left to h11: chunks, two lengths or none, a body that may not be
there, interim replies, another version, bytes that are not ASCII, a head that did not come in one piece.
"""

import re
from dataclasses import dataclass
from typing import Final

HEAD_LIMIT: Final = 64 * 1024
"""Bytes of the longest status line with headers."""

_FIELD: Final = rb"([-!#$%&'*+.^_`|~0-9A-Za-z]+):([\t -~]*+)\r\n"
_HEAD: Final = re.compile(rb"HTTP/1\.1 ([2-5][0-9]{2})(?: [\t -~]*+)?\r\n((?:" + _FIELD + rb")++)\r\n")
_FIELDS: Final = re.compile(_FIELD.decode("ascii"))
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_WITHOUT_BODY: Final = frozenset({204, 304})


@dataclass(slots=True)
class PlainHead:
    """A head whose body is framed by its length alone. Names in lower case; `size` is the head's own, `length` its body's, both in bytes."""

    status: int
    headers: tuple[tuple[str, str], ...]
    size: int
    length: int

    @property
    def leaves_open(self) -> bool:
        """Whether its sender goes on with the connection, as HTTP/1.1 has it unless somebody says otherwise."""
        return all(value.lower() == "keep-alive" for name, value in self.headers if name == "connection")


def plain_head(data: bytes) -> PlainHead | None:
    """The head with which `data` begins; None where that is for h11 to say: `plain_head(received)`."""
    found = _HEAD.match(data, 0, HEAD_LIMIT)
    if found is None:
        return None
    status = int(found[1])
    headers = tuple([(name.lower(), value.strip(" \t")) for name, value in _FIELDS.findall(found[2].decode("ascii"))])
    framing = [field for field in headers if field[0] in _FRAMING]
    if status in _WITHOUT_BODY or len(framing) != 1:
        return None
    name, length = framing[0]
    if name != "content-length" or not _LENGTH.fullmatch(length):
        return None
    return PlainHead(status, headers, found.end(), int(length))
