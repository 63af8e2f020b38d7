"""One specification, one text, one hash; and whatever would not survive the way is refused where it stands."""

import enum
import hashlib
import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.fingerprint import (
    DEPTH_LIMIT,
    INPUT_LIMIT_BYTES,
    SAFE_INTEGER,
    TEXT_LIMIT_BYTES,
    fingerprint,
    read_json,
)
from coatcheck.errors import SpecificationInvalid

NUMBERS = st.integers(-SAFE_INTEGER, SAFE_INTEGER) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not SAFE_INTEGER < abs(number) < 1e21
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
SPECIFICATIONS = st.dictionaries(TEXTS, VALUES, max_size=6)


def reordered(value: Any) -> Any:
    """The same value with every object's members the other way round."""
    match value:
        case dict():
            return {key: reordered(value[key]) for key in reversed(list(value))}
        case list():
            return [reordered(item) for item in value]
        case _:
            return value


@given(SPECIFICATIONS)
def test_order_and_white_space_never_change_the_hash(specification: dict[str, Any]) -> None:
    expected = fingerprint(specification)
    assert fingerprint(reordered(specification)) == expected
    for spaced in (json.dumps(reordered(specification), indent=3), json.dumps(specification, ensure_ascii=False)):
        assert fingerprint(read_json(spaced)) == expected
        assert fingerprint(read_json(spaced.encode())) == expected


@given(SPECIFICATIONS)
def test_the_text_reads_back_as_itself(specification: dict[str, Any]) -> None:
    first = fingerprint(specification)
    again = fingerprint(read_json(first.text))
    assert again.text == first.text
    assert first.sha256_hex == hashlib.sha256(first.text.encode()).hexdigest()
    assert json.loads(first.text) == specification


def test_the_text_is_that_of_rfc_8785() -> None:
    # Section 3.2.2 and 3.2.3 of the RFC, literal strings and numbers and the order of keys by UTF-16 units.
    found = fingerprint(
        {
            "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
            "literals": [None, True, False],
        }
    )
    assert found.text == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    keys = fingerprint({"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7})
    assert list(json.loads(keys.text)) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (-0.0, "0"),
        (0, "0"),
        (1e308, "1e+308"),
        (5e-324, "5e-324"),
        (1e21, "1e+21"),
        (SAFE_INTEGER, "9007199254740991"),
        (7.0, "7"),
    ],
)
def test_numbers_keep_their_value(number: float, text: str) -> None:
    assert fingerprint({"n": number}).text == f'{{"n":{text}}}'


class Plain(enum.Enum):
    RED = "red"


class Shared(TypedDict):
    left: list[int]
    right: list[int]


CYCLE: dict[str, Any] = {"frames": [{}]}
CYCLE["frames"][0]["parent"] = CYCLE
DEEP: list[Any] = []
for _ in range(DEPTH_LIMIT):
    DEEP = [DEEP]
BOMB: list[Any] = [0]
for _ in range(DEPTH_LIMIT - 2):
    BOMB = [BOMB, BOMB]


class ModelWithNan(pydantic.BaseModel):
    seed: float = math.nan


@pytest.mark.parametrize(
    ("specification", "path"),
    [
        ({"frames": [{}, {}, {}, {"seed": math.nan}]}, "$.frames[3].seed:"),
        ({"a": math.inf}, "$.a:"),
        ({"a": [-math.inf]}, "$.a[0]:"),
        ({"a b": {"c": 2**53}}, '$["a b"].c:'),
        ({"a": -(2**53)}, "$.a:"),
        ({"a": float(2**60)}, "$.a:"),
        ({"a": 1e20}, "$.a:"),
        ({"a": 10**400}, "$.a:"),
        ({"prompt": "s3cret\0"}, "$.prompt:"),
        ({"x": {"s3cret\0": 1}}, "$.x (a key):"),
        ({"prompt": "s3cret\ud800"}, "$.prompt:"),
        ({"\udfff": 1}, "$ (a key):"),
        ({"a": {1: 2}}, "$.a: expected keys that are strings, got one of type int"),
        ({"a": Decimal("1.5")}, "$.a: expected a JSON value, got Decimal"),
        ({"a": {1, 2}}, "$.a: expected a JSON value, got set"),
        ({"a": b"s3cret"}, "$.a: expected a JSON value, got bytes"),
        ({"a": Plain.RED}, "$.a: expected a JSON value, got Plain"),
        ({"a": ModelWithNan}, "$.a:"),
        ({"a": ModelWithNan()}, "$.a.seed:"),
        (CYCLE, "$.frames[0].parent: expected a tree"),
        ({"deep": DEEP}, "$.deep[0]"),
        ({"bomb": BOMB}, "$: expected at most 1048576 bytes"),
        ({"a": "s3cret" * TEXT_LIMIT_BYTES}, "$: expected at most 1048576 bytes"),
        ({"a": "\x01" * (TEXT_LIMIT_BYTES // 2)}, "$: expected at most 1048576 bytes"),
        ('{"prompt": "s3cret"}', "$: expected an object or an array, got str"),
        (None, "$: expected an object or an array, got NoneType"),
    ],
)
def test_a_refusal_names_the_path_and_never_the_value(specification: object, path: str) -> None:
    with pytest.raises(SpecificationInvalid) as refused:
        fingerprint(specification)
    assert refused.value.message.startswith(path)
    assert "s3cret" not in str(refused.value)
    assert len(refused.value.message) < 1000


class Scene(pydantic.BaseModel):
    prompt: str
    seed: int


@dataclass
class Frame:
    scene: Scene
    size: tuple[int, int]


class Struct(msgspec.Struct, rename="camel", omit_defaults=True):
    frame_count: int
    note: str = ""


class Size(NamedTuple):
    width: int
    height: int


class Tone(enum.StrEnum):
    WARM = "warm"


class Level(enum.IntEnum):
    HIGH = 3


def test_models_structs_and_dataclasses_are_their_fields() -> None:
    given: dict[str, Any] = {
        "frame": Frame(scene=Scene(prompt="coat", seed=7), size=(1, 2)),
        "struct": Struct(frame_count=3),
        "size": Size(4, 5),
        "tone": Tone.WARM,
        "level": Level.HIGH,
        "ordered": OrderedDict(b=1, a=2),
    }
    assert json.loads(fingerprint(given).text) == {
        "frame": {"scene": {"prompt": "coat", "seed": 7}, "size": [1, 2]},
        "struct": {"frameCount": 3},
        "size": [4, 5],
        "tone": "warm",
        "level": 3,
        "ordered": {"b": 1, "a": 2},
    }
    assert fingerprint(Scene(prompt="coat", seed=7)) == fingerprint({"seed": 7, "prompt": "coat"})


def test_a_model_that_no_longer_fits_its_own_type_is_refused_without_its_value() -> None:
    scene = Scene(prompt="coat", seed=7)
    scene.seed = "s3cret"  # type: ignore[assignment] # what a careless caller does
    with pytest.raises(SpecificationInvalid, match="got Scene") as refused:
        fingerprint({"scene": scene})
    assert "s3cret" not in str(refused.value)


def test_a_value_that_is_merely_shared_is_no_cycle() -> None:
    numbers = [1, 2]
    assert fingerprint(Shared(left=numbers, right=numbers)).text == '{"left":[1,2],"right":[1,2]}'


def test_the_text_is_never_shown() -> None:
    assert "coat" not in repr(fingerprint({"prompt": "coat"}))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"a": {"s3cret": 1, "b": [{"k": 1, "k": 2}]}}', "$.a.b[0].k: expected each key once"),
        ('{"a": NaN}', "$.a: expected a finite number"),
        ('{"a": [1, -Infinity]}', "$.a[1]: expected a finite number"),
        ('{"a": 1e400}', "$.a: expected a finite number"),
        ('{"a": 9007199254740992}', "$.a: expected an integer within"),
        ('{"a": -9007199254740993}', "$.a: expected an integer within"),
        ('{"a": ' + "9" * 5000 + "}", "$.a: expected an integer within"),
        ('{"a": "\\u0000"}', "$.a: expected text without NUL"),
        ('{"a": "\\ud800"}', "$.a: expected Unicode text"),
        ('\ufeff{"a": 1}', "expected JSON, got a byte order mark"),
        (b'\xef\xbb\xbf{"a": 1}', "expected JSON, got a byte order mark"),
        (b'{"a": "\xff"}', "expected UTF-8, got another encoding at byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "expected UTF-8"),
        ('{"a": s3cret}', "line 1, column 7"),
        ('{"a": 1} {"s3cret": 2}', "line 1, column 10"),
        ("", "line 1, column 1"),
        ("[" * 100_000, "expected at most 64 levels"),
        (" " * (INPUT_LIMIT_BYTES + 1), "bytes of JSON"),
    ],
)
def test_strict_reading_mends_nothing(document: str | bytes, said: str) -> None:
    with pytest.raises(SpecificationInvalid) as refused:
        read_json(document)
    assert said in refused.value.message
    assert "s3cret" not in refused.value.message.replace("$.a.s3cret", "")
    assert refused.value.__cause__ is None


def test_strict_reading_returns_plain_values() -> None:
    assert read_json('{"b": [1, 2.5, "x", null, true], "a": {}}') == {"b": [1, 2.5, "x", None, True], "a": {}}
