"""Whether a reply quotes the specification that it answers: what is kept outside the database must hold none of that text."""

import json
from collections.abc import Iterator

_SHORTEST = 8
"""Shorter texts are words of the trade, as a media type is, and a reply has them of its own accord."""
_BEGINNING = 24
"""Characters by which a text is known: a reply that was cut may end within it."""


def quotes(body: bytes, specification_text: str) -> bool:
    """Whether a text of the specification stands in `body`, as UTF-8 or as JSON escapes it: `quotes(reply, '{"prompt":"a red bird"}')`."""
    return any(form in body for text in _texts(json.loads(specification_text)) for form in _forms(text[:_BEGINNING]))


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            if len(value) >= _SHORTEST:
                yield value
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
        case _:
            pass


def _forms(text: str) -> tuple[bytes, ...]:
    return (
        text.encode(errors="replace"),
        json.dumps(text)[1:-1].encode(),
        json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="replace"),
    )
