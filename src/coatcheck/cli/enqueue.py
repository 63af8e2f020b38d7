"""`enqueue`: one operation in a transaction of its own. For scripts that call it often, so it loads nothing that it does not use."""

import sys
from pathlib import Path
from typing import Annotated, Any

import psycopg
from cyclopts import Parameter

from coatcheck.app.place import database_of
from coatcheck.app.reading import view_of
from coatcheck.app.views import Operation
from coatcheck.cli.options import AsJson
from coatcheck.cli.output import write_line, write_object
from coatcheck.config import load_settings
from coatcheck.core.fingerprint import INPUT_LIMIT_BYTES, read_json
from coatcheck.core.identity import operation_text
from coatcheck.enqueue import Enqueued, EnqueueRequest, enqueue_sync, prepare
from coatcheck.errors import Refused
from coatcheck.seams import Seams
from coatcheck.store.blocking import connected, load


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
    with (
        database_of(load_settings(), Seams.real()) as url,
        connected(url, "enqueue") as connection,
        connection.transaction(),
    ):
        found = enqueue_sync(connection, request)
        record = _record(connection, found) if as_json else None
    if as_json:
        write_object({**(record.as_json() if record else _known(request, found)), "created": found.created})
    else:
        made = "created" if found.created else f"was there before, {found.phase}"
        write_line(f"{operation_text(found.operation_id)} {made}")


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
