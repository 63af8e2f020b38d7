"""Keeps a credential out of what is stored as evidence, however a service echoes it, and also where the echo was cut."""

import base64
import json
from functools import lru_cache
from urllib.parse import quote

_MASK = b"[redacted]"
_SHORTEST = 4
_SECRETS = 16
"""Of so many accounts the forms are kept; of more they are made anew."""


def redacted(body: bytes, secret: str) -> bytes:
    """`body` without the secret, plain, percent-encoded, as JSON or in base 64. One shorter than 4 characters cannot be told from text."""
    if len(secret) < _SHORTEST:
        return body
    for form in _forms(secret):
        body = body.replace(form, _MASK)
    if body.endswith(_beginnings(secret)):
        for form in _forms(secret):
            body = _without_begun(body, form)
    return body


@lru_cache(maxsize=_SECRETS)
def _forms(secret: str) -> tuple[bytes, ...]:
    plain, in_json = secret.encode(), json.dumps(secret)[1:-1]
    encoded = base64.b64encode(plain)
    return (
        plain,
        quote(secret, safe="").encode(),
        in_json.encode(),
        in_json.replace("/", "\\/").encode(),
        encoded,
        encoded.rstrip(b"="),
    )


@lru_cache(maxsize=_SECRETS)
def _beginnings(secret: str) -> tuple[bytes, ...]:
    """All with which a body could end that was cut within the secret."""
    return tuple(form[:length] for form in _forms(secret) for length in range(_SHORTEST, len(form)))


def _without_begun(body: bytes, form: bytes) -> bytes:
    """A body that was cut within the secret ends with its beginning."""
    for length in range(len(form) - 1, _SHORTEST - 1, -1):
        if body.endswith(form[:length]):
            return body[:-length] + _MASK
    return body
