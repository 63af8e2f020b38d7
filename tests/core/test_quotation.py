"""A reply that quotes the specification is recognised, in whatever form JSON gives the text and also where it was cut."""

import json

import pytest

from coatcheck.core.quotation import quotes

PROMPT = 'a "red"\tb\u00edrd \u2028 over a very long and quiet lake in the north of the country'
TEXT = json.dumps({"model": "m-1", "parts": [{"prompt": PROMPT}], "size": "64x64", "n": 3, "loop": True, "seed": None})


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"message": f"refused: {PROMPT}"}}).encode(),
        json.dumps({"echo": PROMPT}, ensure_ascii=False).encode(),
        f"<p>{PROMPT}</p>".encode(),
        json.dumps({"echo": PROMPT}).encode()[:60],
    ],
    ids=["escaped", "not escaped", "plain", "cut"],
)
def test_a_quotation_is_found(body: bytes) -> None:
    assert quotes(body, TEXT)


@pytest.mark.parametrize(
    "body", [b"", b'{"job_id":"job-1","model":"m-1","size":"64x64"}', b"\xff\xfe", b'{"prompt":"another one"}']
)
def test_what_a_service_says_of_its_own_accord_is_none(body: bytes) -> None:
    assert not quotes(body, TEXT)


@pytest.mark.parametrize(
    "text", ['"a specification of one text"', "7", "null", "[]", '{"a":{"b":["a specification of one text"]}}']
)
def test_any_canonical_value_may_be_a_specification(text: str) -> None:
    assert quotes(b"... a specification of one text ...", text) is ("one text" in text)
