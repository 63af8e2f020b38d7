"""What `coatcheck.enqueue_v1` answers, and what a failed statement means.

A refusal is raised after the statement succeeded, so the caller's transaction goes on.
"""

import json
from dataclasses import dataclass
from typing import Final

from coatcheck.core.identity import parse_operation_id
from coatcheck.core.operation import OperationId, Phase
from coatcheck.enqueue.request import EnqueueRequest
from coatcheck.errors import CoatcheckError, KeyReused, NoTransaction, Refused, SchemaMismatch

_MIGRATE: Final = "run `coatcheck migrate up` with this version of coatcheck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """The operation of this key. `created` is False when an earlier call had made it, whatever became of it since."""

    operation_id: OperationId
    created: bool
    revision: int
    phase: Phase
    specification_hash: str


def read_answer(text: str, request: EnqueueRequest) -> Enqueued:
    """The answer as a value. Raises `KeyReused`, `Refused`, and `SchemaMismatch` for an answer that this code does not know."""
    answer = json.loads(text)
    match answer["result"]:
        case "created" | "existing":
            return _enqueued(answer, request)
        case "key_reused":
            same = answer["specification_hash"] == request.specification_hash
            raise KeyReused(
                f"expected the {'provider' if same else 'specification'} that this key was first used with, got another"
                f" (operation {answer['operation_id']})",
                next="give a new intent a new key; to read the operation of this one, ask for its id",
            )
        case "refused":
            raise Refused(
                f"expected a request that enqueue_v1 takes, got a refusal: {answer['reason']}",
                next="correct the field that is named",
            )
        case _:
            raise _unknown_answer()


def explained(sqlstate: str | None) -> CoatcheckError | None:
    """Our own word for a failure that is about coatcheck; None for one that is the caller's, such as 40001: rerun the transaction."""
    match sqlstate:
        case "25P02":
            return NoTransaction(
                "expected a transaction that can still commit, got one in which a statement has failed",
                next="roll back, begin again, and enqueue before or after the statement that failed",
            )
        case "3F000" | "42883":
            return SchemaMismatch(
                "expected the function coatcheck.enqueue_v1, got a database without it", next=_MIGRATE
            )
        case "42501":
            return Refused(
                "expected a role that may execute coatcheck.enqueue_v1, got one that may not",
                next="grant coatcheck_app to the role that the application connects as",
            )
        case _:
            return None


def _enqueued(answer: dict[str, str], request: EnqueueRequest) -> Enqueued:
    operation_id = parse_operation_id(answer["operation_id"])
    # What is stored is what will be paid for: it must be what was asked, to the byte.
    if operation_id is None or answer["specification_hash"] != request.specification_hash:
        raise _unknown_answer()
    return Enqueued(
        operation_id=operation_id,
        created=answer["result"] == "created",
        revision=int(answer["revision"]),
        phase=Phase(answer["phase"]),
        specification_hash=answer["specification_hash"],
    )


def _unknown_answer() -> SchemaMismatch:
    return SchemaMismatch("expected an answer of enqueue_v1 as this version knows it, got another", next=_MIGRATE)
