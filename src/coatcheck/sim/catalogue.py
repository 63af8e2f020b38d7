"""The catalogue of faults: every kind with the requests it can strike, its parameters and their defaults, in one table.

A kind that is not in `TRAITS` does not exist; the script parser, the documentation and the tests all read this table, so a new kind
cannot be half added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from coatcheck.sim.kinds import End, Kind, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """What a kind can do.

    `early` acts before the body is read; `at_once` does not wait for a long poll's window; `after_final` strikes only once the
    job's final state has been told.
    """

    does: str
    roles: tuple[Role, ...]
    parameters: Mapping[str, object] = field(default_factory=dict)
    forms: tuple[str, ...] = ()
    early: bool = False
    at_once: bool = False
    after_final: bool = False


_CREATE = (Role.CREATE,)
_LOOK = (Role.LOOK,)
_OUTPUT = (Role.OUTPUT,)
_LIST = (Role.LIST,)
_ANY = (Role.CREATE, Role.LOOK, Role.LIST, Role.OUTPUT)
_SHAPES = ("json", "html", "text", "empty")
_MALFORMED = (
    "html",
    "invalid_json",
    "truncated_json",
    "no_id",
    "id_number",
    "id_null",
    "id_empty",
    "id_huge",
    "id_control",
    "id_surrogate",
    "duplicate_keys",
    "array",
    "not_utf8",
    "deep",
)

TRAITS: Mapping[Kind, Trait] = {
    Kind.ACCEPT_THEN_DROP: Trait(
        does="creates the job, then ends the connection without a byte of reply",
        roles=_CREATE,
        parameters={"end": End.FIN},
    ),
    Kind.DROP_BEFORE_ACCEPT: Trait(
        does="reads the whole request, creates nothing, ends the connection", roles=_CREATE, parameters={"end": End.FIN}
    ),
    Kind.DROP_BEFORE_BODY: Trait(
        does="ends the connection as soon as the head arrived", roles=_CREATE, parameters={"end": End.RST}, early=True
    ),
    Kind.STALL_BEFORE_BODY: Trait(
        does="stops reading after the head (zero window) for `seconds` (null: for ever), then reads on and answers",
        roles=_CREATE,
        parameters={"seconds": None},
        early=True,
    ),
    Kind.EARLY_REPLY: Trait(
        does="answers after the head, before the body was read; creates nothing",
        roles=_CREATE,
        parameters={"status": 413, "form": "json"},
        forms=_SHAPES,
        early=True,
    ),
    Kind.DROP: Trait(
        does="ends the connection without a byte of reply",
        roles=(Role.LOOK, Role.LIST, Role.OUTPUT),
        parameters={"end": End.FIN},
    ),
    Kind.CUT: Trait(
        does="sends `at` bytes of the reply (negative: counted from its end), then ends the connection",
        roles=_ANY,
        parameters={"at": 0, "end": End.FIN, "created": True},
    ),
    Kind.STALL: Trait(
        does="sends nothing for `seconds` (null: for ever), then the normal reply",
        roles=_ANY,
        parameters={"seconds": None, "created": True},
    ),
    Kind.SLOW: Trait(
        does="sends the normal reply `chunk_bytes` at a time with `interval_s` between",
        roles=_ANY,
        parameters={"chunk_bytes": 1, "interval_s": 0.001, "created": True},
    ),
    Kind.INFORMATIONAL: Trait(
        does="sends the 1xx `statuses` before the normal reply",
        roles=_ANY,
        parameters={"statuses": (100, 102, 103), "created": True},
    ),
    Kind.CHUNKED: Trait(
        does="normal reply in chunked transfer encoding; `broken` ends it without the last chunk",
        roles=_ANY,
        parameters={"chunk_bytes": 7, "broken": False, "created": True},
    ),
    Kind.GZIP: Trait(
        does="normal reply, gzip-encoded; `broken` damages the compressed bytes",
        roles=_ANY,
        parameters={"broken": False, "created": True},
    ),
    Kind.NO_LENGTH: Trait(
        does="normal reply without Content-Length, ended by FIN", roles=_ANY, parameters={"created": True}
    ),
    Kind.WRONG_LENGTH: Trait(
        does="declares a Content-Length that is off by `delta`, then ends by FIN",
        roles=_ANY,
        parameters={"delta": 10, "created": True},
    ),
    Kind.GARBAGE_STATUS_LINE: Trait(
        does="puts `text` where the status line belongs, then ends by FIN",
        roles=_ANY,
        parameters={"text": "BANANA/9.9 two hundred", "created": True},
    ),
    Kind.HUGE_HEADERS: Trait(
        does="normal reply with one header of `size_bytes`",
        roles=_ANY,
        parameters={"size_bytes": 1_048_576, "created": True},
    ),
    Kind.STATUS: Trait(
        does="answers `status`; `created` says whether the job exists all the same",
        roles=_ANY,
        parameters={
            "status": 500,
            "form": "json",
            "created": False,
            "retry_after": None,
            "code": None,
            "message": None,
        },
        forms=_SHAPES,
        at_once=True,
    ),
    Kind.ERROR_WITH_JOB_ID: Trait(
        does="creates the job and answers `status` with `error.job_id`; the job then ends in `outcome`",
        roles=_CREATE,
        parameters={"status": 502, "outcome": "failed"},
    ),
    Kind.THROTTLED: Trait(
        does="answers 429; `retry_after` is sent verbatim, `retry_after_date_s` as an HTTP date that far ahead",
        roles=_ANY,
        parameters={"status": 429, "retry_after": "1", "retry_after_date_s": None, "created": False},
        at_once=True,
    ),
    Kind.REDIRECT: Trait(
        does="answers `status` with a Location: `to`, or (null) this service again, where a followed POST creates; `hops` in a chain",
        roles=_ANY,
        parameters={"status": 307, "to": None, "hops": 1, "created": False},
        at_once=True,
    ),
    Kind.MALFORMED: Trait(
        does="a success status whose body is not what it should be",
        roles=(Role.CREATE, Role.LOOK, Role.LIST),
        parameters={"form": "html", "status": 200, "created": True},
        forms=_MALFORMED,
        at_once=True,
    ),
    Kind.CLOSED_WINDOW: Trait(
        does="holds the look for its whole window, then answers `status` with no body",
        roles=_LOOK,
        parameters={"status": 204},
    ),
    Kind.WRONG_ID: Trait(
        does="a snapshot whose `id` is `other_id` (null: an id that no job has)",
        roles=_LOOK,
        parameters={"other_id": None},
        at_once=True,
    ),
    Kind.WRONG_REFERENCE: Trait(
        does="every job repeats `other_reference` (null: one that nobody sent) in place of its own",
        roles=_LIST,
        parameters={"other_reference": None},
    ),
    Kind.UNFILTERED: Trait(does="lists all the account's jobs, whatever was asked for", roles=_LIST),
    Kind.REGRESSION: Trait(
        does="says `word` again after a final state was told",
        roles=_LOOK,
        parameters={"word": "queued"},
        at_once=True,
        after_final=True,
    ),
    Kind.UNKNOWN_WORD: Trait(
        does="a snapshot whose status is `word`", roles=_LOOK, parameters={"word": "dreaming"}, at_once=True
    ),
    Kind.NO_OUTPUTS: Trait(
        does="success without a usable output",
        roles=_LOOK,
        parameters={"form": "empty"},
        forms=("empty", "missing", "null", "blank_url"),
    ),
    Kind.DECLARE_WRONG: Trait(
        does="success whose outputs declare a wrong sha256, size or type",
        roles=_LOOK,
        parameters={"form": "sha256"},
        forms=("sha256", "bytes", "type"),
    ),
    Kind.EXPIRED: Trait(
        does="answers `status` to the job's URLs told so far; a look brings fresh ones",
        roles=_OUTPUT,
        parameters={"status": 403},
    ),
    Kind.REPLACED: Trait(
        does="something else in place of the media, under its declared type",
        roles=_OUTPUT,
        parameters={"form": "html"},
        forms=("html", "svg", "script", "empty"),
    ),
    Kind.ENDLESS: Trait(does="the file never ends (no Content-Length)", roles=_OUTPUT),
    Kind.LARGE: Trait(
        does="the file is `size_bytes` long, whatever was declared",
        roles=_OUTPUT,
        parameters={"size_bytes": 200_000_000},
    ),
    Kind.COURSE: Trait(
        does="no fault: sets how the job goes (outcome, queued_s, processing_s, price, refund, outputs, final_word, ...)",
        roles=(Role.JOB,),
    ),
}


def kinds_for(role: Role) -> list[Kind]:
    """The kinds that can strike `role`, in the order of the table."""
    return [kind for kind, trait in TRAITS.items() if role in trait.roles]


def described(kind: Kind) -> str:
    """The kind's row in docs/simulator.md."""
    trait = TRAITS[kind]
    roles = ", ".join(trait.roles)
    shown = ", ".join(f"`{name}` {_shown(value)}" for name, value in trait.parameters.items()) or "-"
    forms = f" Forms: {', '.join(trait.forms)}." if trait.forms else ""
    return f"| `{kind}` | {roles} | {trait.does}.{forms} | {shown} |"


def _shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(map(str, value)) + "]"
        case _:
            return str(value)
