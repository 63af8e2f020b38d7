"""Options that several commands share, each with one meaning."""

from typing import Annotated, TypeAlias

from cyclopts import Parameter

from coatcheck.errors import Refused

AsJson: TypeAlias = Annotated[
    bool, Parameter(name="--json", negative="", help="Write JSON: one object, or one per line for lists.")
]
Tenant: TypeAlias = Annotated[str | None, Parameter(help="Only what belongs to this tenant.")]
Limit: TypeAlias = Annotated[int | None, Parameter(help="At most so many; without it, every one.")]
Reason: TypeAlias = Annotated[str, Parameter(help="Why; kept with the decision.")]
Actor: TypeAlias = Annotated[str | None, Parameter(help="Who decides; by default the account that runs this.")]
Revision: TypeAlias = Annotated[
    int | None, Parameter(help="The revision that you looked at; decided only if it is still that one.")
]


def limit_of(limit: int | None) -> int | None:
    """How long a list may become. Raises `Refused` for less than nothing."""
    if limit is not None and limit < 0:
        raise Refused(
            f"--limit: expected a whole number from 0, got {limit}", next="leave --limit out to see every one"
        )
    return limit


def utf8(name: str, value: str) -> str:
    """An argument that is text. Raises `Refused` for bytes that are not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(
            f"{name}: expected UTF-8, got other bytes", next="type it in a terminal whose encoding is UTF-8"
        ) from None
    return value


def given(name: str, text: str) -> str:
    """An argument that has to say something. Raises `Refused` for nothing and for bytes that are not UTF-8."""
    if not text.strip():
        raise Refused(f"{name}: expected some words, got nothing", next=f"add {name} 'some words'")
    return utf8(name, text)


def actor_of(actor: str | None) -> str:
    """Who decides: who was named, else the account that runs this. Raises `Refused` as `given` does."""
    from getpass import getuser  # noqa: PLC0415 - `enqueue` never asks

    return given("--actor", getuser() if actor is None else actor)
