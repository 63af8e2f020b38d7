"""A specification has one text and one hash: the RFC 8785 form is what is stored, hashed and sent, byte for byte.

Whatever that form cannot carry without loss is refused before anything is written, with the path to the value and never the value. The
text always reads back as the same specification, which is why numbers that RFC 8785 would write as integers beyond 2^53 are refused even
when they arrive as floats: another reader would take 1152921504606847000 for something else than the float it came from.
"""

import hashlib
import json
import math
import re
import sys
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TypeAlias

import rfc8785

from coatcheck.errors import SpecificationInvalid

TEXT_LIMIT_BYTES = 1024 * 1024
"""A specification is a form, not a file: references to images belong in it, their bytes do not."""
INPUT_LIMIT_BYTES = 4 * TEXT_LIMIT_BYTES
"""White space may swell the text that people write, within reason."""
DEPTH_LIMIT = 64
SAFE_INTEGER = 2**53 - 1
"""Beyond it, doubles skip integers (RFC 8785 section 3.2.2.3, I-JSON)."""
_EXPONENT_FROM = 1e21
"""From here on RFC 8785 writes an exponent, so a reader knows the number for a float."""

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}", re.ASCII)
_SHOWN_KEY_CHARACTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The canonical text and the lower-case hex SHA-256 of its UTF-8 bytes. The text is never shown."""

    text: str = field(repr=False)
    sha256_hex: str


class _Pairs(list[tuple[str, object]]):
    """An object as it stands in JSON text: its members in order, a repeated key included."""


def fingerprint(specification: object) -> Fingerprint:
    """The canonical text and hash of a specification, as `fingerprint({"prompt": "a red coat", "seed": 7}).sha256_hex`.

    Takes a dict, list, tuple, dataclass, pydantic model or msgspec struct. Raises `SpecificationInvalid` for NaN, infinities, NUL, lone
    surrogates, numbers beyond 2^53, `Decimal`, other types, cycles, more than 64 levels or 1 MiB.
    """
    value = _Walk().value(specification, "$")
    if not isinstance(value, (dict, list)):
        raise SpecificationInvalid(
            f"$: expected an object or an array, got {_kind(specification)}",
            next="pass the specification itself; JSON text goes through read_json first",
        )
    text = rfc8785.dumps(value)
    if len(text) > TEXT_LIMIT_BYTES:
        raise _too_large()
    return Fingerprint(text=text.decode(), sha256_hex=hashlib.sha256(text).hexdigest())


def read_json(document: str | bytes) -> JsonValue:
    """Read JSON strictly, as `read_json('{"prompt": "a red coat"}')`.

    Raises `SpecificationInvalid` for what a lenient reader would mend in silence: repeated keys, NaN, numbers that do not fit a double,
    invalid UTF-8, a byte order mark; and for whatever `fingerprint` refuses.
    """
    text = _decoded(document)
    try:
        parsed = json.loads(text, object_pairs_hook=_Pairs, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise SpecificationInvalid(
            f"expected JSON, got something else at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None  # the original carries the whole document
    except RecursionError:
        raise _too_deep("$") from None
    return _Walk().value(parsed, "$")


def _decoded(document: str | bytes) -> str:
    if len(document) > INPUT_LIMIT_BYTES:
        raise SpecificationInvalid(f"expected at most {INPUT_LIMIT_BYTES} bytes of JSON, got {len(document)}")
    if isinstance(document, bytes):
        try:
            document = document.decode()
        except UnicodeDecodeError as error:
            raise SpecificationInvalid(f"expected UTF-8, got another encoding at byte {error.start}") from None
    if document.startswith("\ufeff"):
        raise SpecificationInvalid("expected JSON, got a byte order mark", next="save the file as UTF-8 without one")
    return document


def _integer(digits: str) -> int:
    """Python refuses texts of thousands of digits; one beyond the limit says the same, and the walk then tells where it stands."""
    return int(digits) if len(digits) <= len(f"-{SAFE_INTEGER}") else SAFE_INTEGER + 1


class _Walk:
    """One pass over a specification that turns it into plain JSON values, knowing the path at every step."""

    def __init__(self) -> None:
        self._containers: list[int] = []
        self._least_bytes = 0

    def value(self, value: object, path: str) -> JsonValue:
        self._spend(2)  # itself and what separates it from its neighbour
        match value:
            case None | bool():
                return value
            case str():
                return self._string(value, path)
            case int():
                return _whole(value, path)
            case float():
                return _real(value, path)
            case _:
                return self._container(value, path)

    def _container(self, value: object, path: str) -> JsonValue:
        if id(value) in self._containers:
            raise SpecificationInvalid(f"{path}: expected a tree, got a value that contains itself")
        if len(self._containers) >= DEPTH_LIMIT:
            raise _too_deep(path)
        self._containers.append(id(value))
        try:
            match value:
                case _Pairs():
                    return self._members(value, path)
                case dict():
                    return self._members(list(value.items()), path)
                case list() | tuple():
                    return [self.value(item, f"{path}[{index}]") for index, item in enumerate(value)]
                case _:
                    return self.value(_unfolded(value, path), path)
        finally:
            self._containers.pop()

    def _members(self, members: list[tuple[str, object]], path: str) -> JsonValue:
        plain: dict[str, JsonValue] = {}
        for key, item in members:
            if not isinstance(key, str):
                raise SpecificationInvalid(f"{path}: expected keys that are strings, got one of type {_kind(key)}")
            name = self._string(key, f"{path} (a key)")
            step = f"{path}{_segment(name)}"
            if name in plain:
                raise SpecificationInvalid(f"{step}: expected each key once, got it again")
            plain[name] = self.value(item, step)
        return plain

    def _string(self, value: str, path: str) -> str:
        text = str.__str__(value)  # an enum's member is its text, not its name
        self._spend(len(text))
        if "\0" in text:
            raise SpecificationInvalid(f"{path}: expected text without NUL, which PostgreSQL cannot keep, got one")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise SpecificationInvalid(f"{path}: expected Unicode text, got a lone surrogate") from None
        return text

    def _spend(self, least_bytes: int) -> None:
        """Count what the text will need at least, so that shared references cannot unfold without end."""
        self._least_bytes += least_bytes
        if self._least_bytes > TEXT_LIMIT_BYTES:
            raise _too_large()


def _whole(value: int, path: str) -> int:
    if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
        raise SpecificationInvalid(
            f"{path}: expected an integer within ±(2^53 - 1), got one that a double cannot hold exactly",
            next="give the number as a string, if the service takes one",
        )
    return int(value)


def _real(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise SpecificationInvalid(
            f"{path}: expected a finite number, got NaN or an infinity (or a number beyond the range of doubles)"
        )
    if SAFE_INTEGER < abs(value) < _EXPONENT_FROM:
        raise SpecificationInvalid(
            f"{path}: expected a number within ±(2^53 - 1), got a float that would be written as a larger integer"
        )
    return float(value)


def _unfolded(value: object, path: str) -> object:
    """The fields of a model, struct or dataclass; its values are walked like any others."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        try:
            return dump(mode="json", warnings="error")
        except (TypeError, ValueError):
            # The original may quote the value.
            raise SpecificationInvalid(
                f"{path}: expected a model that dumps to JSON, got {_kind(value)}, which does not"
            ) from None
    msgspec = sys.modules.get("msgspec")  # who passes a struct has loaded it
    if msgspec is not None and isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise SpecificationInvalid(
        f"{path}: expected a JSON value, got {_kind(value)}",
        next="give numbers as int or float, or as strings where digits matter; give dates and bytes as text",
    )


def _segment(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    return f"[{json.dumps(key[:_SHOWN_KEY_CHARACTERS])}]"


def _kind(value: object) -> str:
    return type(value).__name__


def _too_deep(path: str) -> SpecificationInvalid:
    shown = path if len(path) <= 4 * DEPTH_LIMIT else f"{path[: 4 * DEPTH_LIMIT]}…"
    return SpecificationInvalid(f"{shown}: expected at most {DEPTH_LIMIT} levels, got more")


def _too_large() -> SpecificationInvalid:
    return SpecificationInvalid(
        f"$: expected at most {TEXT_LIMIT_BYTES} bytes of canonical text, got more",
        next="put files where the service can fetch them and name them in the specification",
    )
