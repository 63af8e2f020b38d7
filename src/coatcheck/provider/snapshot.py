"""A job as Genace describes it, read with distrust: what is kept is bounded, printable and checked; what is odd is left out.

Only two things make a whole snapshot worthless: it is not about the job that was asked for, or it does not say how that job stands. An
output that cannot be fetched is no output, but it is counted, and the others keep their places in the list.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, TypeVar
from urllib.parse import urlsplit

from coatcheck.core.events import Credits, Output, Snapshot
from coatcheck.core.foreign import Unreadable, at, plain_text
from coatcheck.core.operation import RemoteJobId, RenderState
from coatcheck.provider.instant import read_instant
from coatcheck.provider.port import Nonsense

STATUS_LIMIT: Final = 200
OUTPUT_LIMIT: Final = 100
URL_LIMIT: Final = 4096
WORD_LIMIT: Final = 200
REFERENCE_LIMIT: Final = 200
UNIT_LIMIT: Final = 64
BYTES_LIMIT: Final = 2**63 - 1
AMOUNT_LIMIT: Final = Decimal(10) ** 12
FRACTION_LIMIT: Final = 18

T = TypeVar("T")

_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(?:\s*;.*)?", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
_AMOUNT: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,18})?")


def read_snapshot(body: object, *, remote_job_id: RemoteJobId, words: Mapping[str, RenderState]) -> Snapshot | Nonsense:
    """The snapshot in a JSON value, or why there is none. `words` are the known status words, in lower case."""
    if isinstance(body, Unreadable):
        return Nonsense(kind="malformed", detail=body.cause)
    named: dict[str, object] = body if isinstance(body, dict) else {}
    told_id = named.get("id")
    if not isinstance(told_id, str):
        return Nonsense(kind="malformed", detail="id")
    if told_id != remote_job_id:
        return Nonsense(kind="wrong_id", detail="id")
    status = plain_text(named.get("status"), STATUS_LIMIT)
    if status is None:
        return Nonsense(kind="malformed", detail="status")
    outputs = named.get("outputs")
    listed = outputs if isinstance(outputs, list) else []
    if len(listed) > OUTPUT_LIMIT:
        # Taking the first hundred would lose paid outputs without a trace; an incident is seen.
        return Nonsense(kind="malformed", detail="too_many_outputs")
    usable = _outputs(listed)
    told_at = named.get("created_at")
    created_at = read_instant(told_at)
    return Snapshot(
        remote_job_id=remote_job_id,
        remote_status=status,
        render_state=words.get(status.lower()),
        outputs=usable,
        unusable_count=len(listed) - len(usable),
        error_code=_error_code(at(named.get("error"), ("code",))),
        credits=_credits(named.get("credits")),
        created_at=created_at,
        is_creation_unreadable=told_at is not None and created_at is None,
        reference=plain_text(named.get("client_reference"), REFERENCE_LIMIT),
    )


def _outputs(listed: list[object]) -> tuple[Output, ...]:
    found = (_output(index, item) for index, item in enumerate(listed))
    return tuple(output for output in found if output is not None)


def _output(index: int, item: object) -> Output | None:
    """One output; its index is its place in the service's list, so that a later snapshot means the same one."""
    named: dict[str, object] = item if isinstance(item, dict) else {"url": item}
    url = plain_text(named.get("url"), URL_LIMIT)
    if url is None or not _fetchable(url):
        return None
    return Output(
        index=index,
        url=url,
        content_type=_first(_media_type, named, ("content_type", "type")),
        bytes=_first(_size, named, ("bytes", "size")),
        sha256=_sha256(named.get("sha256")),
    )


def _fetchable(url: str) -> bool:
    """Whether delivery could make anything of it: absolute, http or https, with a host. Which hosts are allowed is delivery's policy."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _first(read: Callable[[object], T | None], named: dict[str, object], names: Iterable[str]) -> T | None:
    return next((found for name in names if (found := read(named.get(name))) is not None), None)


def _media_type(value: object) -> str | None:
    text = plain_text(value, WORD_LIMIT)
    return text if text is not None and _MEDIA_TYPE.fullmatch(text) else None


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= BYTES_LIMIT else None


def _sha256(value: object) -> str | None:
    return value.lower() if isinstance(value, str) and _SHA256.fullmatch(value) else None


def _error_code(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= BYTES_LIMIT:
        return str(value)
    return plain_text(value, WORD_LIMIT)


def _credits(value: object) -> Credits | None:
    """The accounting, or None if any of it is odd: half of a nonsensical account would be believed as a charge."""
    if not isinstance(value, dict):
        return None
    charged = _amount(value.get("charged"))
    refunded = value.get("refunded")
    returned = Decimal(0) if refunded is None else _amount(refunded)
    if charged is None or returned is None or returned > charged:
        return None
    return Credits(charged=charged, refunded=returned, unit=plain_text(value.get("unit"), UNIT_LIMIT))


def _amount(value: object) -> Decimal | None:
    """A sum of money as a JSON number or a plain decimal string; never negative, never huge, never finer than 18 places."""
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    try:
        amount = Decimal(value)
        return amount if 0 <= amount < AMOUNT_LIMIT and _places(amount) <= FRACTION_LIMIT else None
    except InvalidOperation:
        return None


def _places(amount: Decimal) -> int:
    exponent = amount.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else FRACTION_LIMIT + 1
