"""Keeps a credential out of what is stored as evidence, however a service echoes it."""

import base64
from urllib.parse import quote

_MASK = b"[redacted]"
_SHORTEST = 4


def redacted(body: bytes, secret: str) -> bytes:
    """`body` without the secret, plain, percent-encoded or in base 64. A secret shorter than 4 characters cannot be told from text."""
    if len(secret) < _SHORTEST:
        return body
    plain = secret.encode()
    for form in (plain, quote(secret, safe="").encode(), base64.b64encode(plain), base64.b64encode(plain).rstrip(b"=")):
        body = body.replace(form, _MASK)
    return body
