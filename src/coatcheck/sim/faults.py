"""A fault as a value: its kind and the parameters that the catalogue gives that kind, all checked before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coatcheck.errors import Refused
from coatcheck.sim.catalogue import TRAITS, kinds_for
from coatcheck.sim.checks import (
    OUTCOMES,
    Check,
    Number,
    checked,
    end,
    flag,
    header,
    integer,
    kind_of,
    list_of,
    number,
    one_of,
    or_null,
    text,
)
from coatcheck.sim.course import course_changes
from coatcheck.sim.kinds import End, Kind, Role

PARAMETERS: Mapping[str, Check] = {
    "at": integer(),
    "broken": flag,
    "chunk_bytes": integer(1),
    "code": or_null(text),
    "created": flag,
    "delta": integer(),
    "end": end,
    "form": text,
    "hops": integer(1, 100),
    "interval_s": number(),
    "message": or_null(text),
    "other_id": or_null(text),
    "other_reference": or_null(text),
    "outcome": one_of(*OUTCOMES),
    "retry_after": or_null(header),
    "retry_after_date_s": or_null(number(-1e9)),
    "seconds": or_null(number()),
    "size_bytes": integer(0),
    "status": integer(200, 999),
    "statuses": list_of(integer(100, 199)),
    "text": text,
    "to": or_null(text),
    "word": text,
}
"""The check of every parameter that some kind has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind with its parameters; those the kind does not have keep values that mean nothing."""

    kind: Kind
    at: int = 0
    broken: bool = False
    chunk_bytes: int = 1
    code: str | None = None
    course: Mapping[str, Any] = field(default_factory=dict)
    created: bool = False
    delta: int = 0
    end: End = End.FIN
    form: str = ""
    hops: int = 1
    interval_s: Number = 0
    message: str | None = None
    other_id: str | None = None
    other_reference: str | None = None
    outcome: str = ""
    retry_after: str | None = None
    retry_after_date_s: Number | None = None
    seconds: Number | None = None
    size_bytes: int = 0
    status: int = 0
    statuses: tuple[int, ...] = ()
    text: str = ""
    to: str | None = None
    word: str = ""

    @property
    def creates(self) -> bool:
        """Whether the job comes to exist although its POST is struck."""
        always = {Kind.ACCEPT_THEN_DROP, Kind.ERROR_WITH_JOB_ID, Kind.STALL_BEFORE_BODY}
        return self.created or self.kind in always


def parse_fault(data: Mapping[str, Any], role: Role, *, where: str) -> Fault:
    """The fault in `data`, fit to strike `role`. Raises Refused naming the place and the kinds or parameters that exist."""
    given = dict(data)
    kind = _kind(given.pop("kind", "course" if role is Role.JOB else None), role, where=where)
    if kind is Kind.COURSE:
        return Fault(kind=kind, course=course_changes(given, where=where))
    trait = TRAITS[kind]
    checks = {name: PARAMETERS[name] for name in trait.parameters}
    if trait.forms:
        checks["form"] = one_of(*trait.forms)
    return Fault(kind=kind, **{**trait.parameters, **checked(given, checks, where=f"{where} ({kind})")})


def _kind(word: object, role: Role, *, where: str) -> Kind:
    known = kinds_for(role)
    if word not in known:
        got = "nothing" if word is None else kind_of(word)
        raise Refused(
            f"{where}: expected a kind that can strike {role}, got {got}", next=f"known kinds: {', '.join(known)}"
        )
    return Kind(str(word))
