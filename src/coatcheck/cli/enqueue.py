"""`enqueue`: one operation in a transaction of its own. For scripts that call it often, so it loads nothing that it does not use."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import psycopg
from cyclopts import Parameter

from coatcheck.app.place import database_of
from coatcheck.app.reading import view_of
from coatcheck.app.views import Operation
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import say, write_line, write_object
from coatcheck.cli.visible import visible
from coatcheck.config import load_settings
from coatcheck.core.fingerprint import INPUT_LIMIT_BYTES, read_json
from coatcheck.core.identity import operation_text
from coatcheck.core.operation import OperationId
from coatcheck.enqueue import Enqueued, EnqueueRequest, enqueue_sync, prepare
from coatcheck.errors import CommitUnknown, Refused, Unavailable
from coatcheck.seams import Seams
from coatcheck.store.acquaintance import is_known
from coatcheck.store.blocking import connected, load
from coatcheck.store.committing import committing

_PAUSES_S = (0.0, 0.0, 0.5, 2.0)
"""Before each try. Only an unseen commit is tried again, and that may have been a server that restarts."""
_AGAIN = "run the same command again: the same key never becomes a second operation"


def enqueue(
    spec: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="A file with the specification as JSON; - reads stdin.")
    ],
    /,
    *,
    tenant: Annotated[str, Parameter(help="Whose operation it is.")],
    key: Annotated[
        str, Parameter(help="The tenant's own name for this intent; the same key never becomes a second one.")
    ],
    provider: Annotated[str, Parameter(help="The configured service.")] = "genace",
    estimate: Annotated[str | None, Parameter(help="What it may cost: a decimal amount.")] = None,
    as_json: AsJson = False,
) -> None:
    """Commit the intent to render SPEC. The same key and specification give the same operation again."""
    request = prepare(
        tenant_id=tenant, key=key, provider=provider, specification=read_json(_document(spec)), estimate=estimate
    )
    seams = Seams.real()
    with database_of(load_settings(), seams) as url:
        found, record, is_served = _committed(url, request, seams, is_told=as_json)
    if not is_served:
        say(
            f"note: no worker has had the provider {visible(provider)} yet, and nothing is sent before one has;"
            " `coatcheck providers list` tells which there are"
        )
    if as_json:
        write_object({**(record.as_json() if record else _known(request, found)), "created": found.created})
    else:
        made = "created" if found.created else f"was there before, {found.phase}"
        write_line(f"{operation_text(found.operation_id)} {made}")


def _committed(
    url: str, request: EnqueueRequest, seams: Seams, *, is_told: bool
) -> tuple[Enqueued, Operation | None, bool]:
    """Enqueue until the commit was seen; with the record, and whether its provider is known as far as the role may see.

    After a commit that was not seen, the same key finds what is there, or makes it now.
    """
    made: set[OperationId] = set()
    doubt: CommitUnknown | None = None
    for pause_s in _PAUSES_S:
        seams.pause(pause_s)
        try:
            with connected(url, "enqueue") as connection, committing(connection, confirms=doubt is not None):
                found = enqueue_sync(connection, request)
                made |= {found.operation_id} if found.created else set()
                record = _record(connection, found) if is_told else None
                is_served = _is_served(connection, request.provider)
        except CommitUnknown as error:
            doubt = error
        except (Unavailable, psycopg.Error):
            if doubt is None:
                raise
        else:
            return replace(found, created=found.operation_id in made), record, is_served
    raise CommitUnknown(f"expected to see the commit, got none: {doubt}", next=_AGAIN) from doubt


def _document(spec: str) -> bytes:
    if spec.startswith("-") and spec != "-":
        raise Refused(f"expected SPEC and known options, got {spec!a}", next="run `coatcheck enqueue --help`")
    try:
        if spec == "-":
            return sys.stdin.buffer.read(INPUT_LIMIT_BYTES + 1)
        with Path(spec).open("rb") as file:
            return file.read(INPUT_LIMIT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise Refused(
            f"SPEC: expected a file that can be read, or -, got {spec!a} ({reason})",
            next="name a file with JSON, or write - and pipe it in",
        ) from None


def _record(connection: psycopg.Connection[Any], found: Enqueued) -> Operation | None:
    """The operation as it stands in this transaction; None for a role that may enqueue and not read."""
    try:
        with connection.transaction():
            return view_of(*load(connection, found.operation_id))
    except psycopg.errors.InsufficientPrivilege:
        return None


def _is_served(connection: psycopg.Connection[Any], provider: str) -> bool:
    """Whether somebody made the provider known; a role that may not read hears nothing of it."""
    try:
        with connection.transaction():
            return is_known(connection, provider)
    except psycopg.errors.InsufficientPrivilege:
        return True


def _known(request: EnqueueRequest, found: Enqueued) -> dict[str, object]:
    """What the answer alone tells. Of an operation that was there before, the rest is null."""
    answered = {
        "operation_id": operation_text(found.operation_id),
        "tenant_id": request.tenant_id,
        "operation_key": request.operation_key,
        "provider": request.provider,
        "specification_hash": found.specification_hash,
        "phase": found.phase,
        "revision": found.revision,
    }
    new = {"render_state": "none", "delivery_state": "not_started", "outputs": ()} if found.created else {}
    return {**dict.fromkeys(Operation.__slots__), **answered, **new}
