"""Both books side by side: the service's ledger and files, the store, the shop's own rows, and the files in the sink, read again."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from coatcheck.core.operation import Operation, OperationId, Outcome
from coatcheck.demo.shop import Placed, Shop
from coatcheck.demo.strike import Strike
from coatcheck.sim import PostRecord, SimulatedService
from coatcheck.store.db import Database
from coatcheck.store.operations import Delivery, scan
from coatcheck.store.statements import statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """One dispatch as the store tells it. `ended` says whether its worker lived to save the end of the POST, whatever the end was.

    `basis` tells whose figure `charged` is: the service's own or an assumed one.
    """

    operation_id: OperationId
    authorisation: int
    worker: str
    outcome: Outcome
    cause: str | None
    ended: bool
    held: Decimal
    charged: Decimal | None
    basis: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One remote job as the service itself tells it. `files` maps an output's index to its SHA-256; `net` is charged less refunded."""

    id: str
    operation_hash: str
    final: bool
    files: Mapping[int, str]
    net: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that the account rests on. `found` maps an object in the sink to the SHA-256 of its bytes; what is not there is missing."""

    placed: tuple[Placed, ...]
    left: tuple[str, str]
    """Tenant and key of the order that was rolled back."""
    repeated: tuple[OperationId, OperationId]
    """What an order got, and what the same order got the second time."""
    shop: Mapping[int, str]
    operations: Mapping[OperationId, Operation]
    outputs: Mapping[OperationId, tuple[Delivery, ...]]
    dispatches: tuple[Dispatched, ...]
    posts: tuple[PostRecord, ...] = field(repr=False)
    jobs: tuple[Job, ...]
    strikes: tuple[Strike, ...]
    found: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the run itself has to say."""

    placed: tuple[Placed, ...]
    left: tuple[str, str]
    repeated: tuple[OperationId, OperationId]
    strikes: tuple[Strike, ...]


async def gathered(told: Told, shop: Shop, store: Database, service: SimulatedService) -> Evidence:
    """Read everything once, when nobody works any more."""
    operations: dict[OperationId, Operation] = {}
    outputs: dict[OperationId, tuple[Delivery, ...]] = {}
    async for operation, delivered in scan(store, tenant_id=None, phase=None, limit=None):
        operations[operation.operation_id], outputs[operation.operation_id] = operation, delivered
    posts = service.ledger.posts
    return Evidence(
        placed=told.placed,
        left=told.left,
        repeated=told.repeated,
        shop=await shop.rows(),
        operations=operations,
        outputs=outputs,
        dispatches=await _dispatches(store),
        posts=posts,
        jobs=tuple(_job(job, posts) for job in await service.jobs_json()),
        strikes=told.strikes,
        found=_read({each.uri for kept in outputs.values() for each in kept if each.uri is not None}),
    )


async def _dispatches(store: Database) -> tuple[Dispatched, ...]:
    rows = await store.fetch(statement("demo", "dispatches"))
    return tuple(Dispatched(**{**row, "outcome": Outcome(row["outcome"])}) for row in rows)


def _job(told: Mapping[str, Any], posts: tuple[PostRecord, ...]) -> Job:
    return Job(
        id=told["id"],
        operation_hash=posts[told["post"] - 1].body_sha256,
        final=told["final"],
        files={output["index"]: output["sha256"] for output in told["outputs"]},
        net=Decimal(str(told["charged"])) - Decimal(str(told["refunded"])),
    )


def _read(uris: set[str]) -> dict[str, str]:
    """Hash what lies in the sink now."""
    files = {uri: Path(unquote(urlsplit(uri).path)) for uri in uris}
    return {uri: hashlib.sha256(path.read_bytes()).hexdigest() for uri, path in files.items() if path.is_file()}
