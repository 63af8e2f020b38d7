"""The incidents that the end of a POST reveals: a job of another operation, a vanished row, an id too late, a reply that contradicts."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from memory.lanes import count_incident
from memory.tables import Row, Tables

Job = tuple[str, str]
Fault = tuple[str, str]
"""Boundary and detail."""


def note_disputes(tables: Tables, steps: Sequence[Row], before: Mapping[Job, Row]) -> None:
    """Each operation and kind is named once, however many steps of the batch say so."""
    faults: dict[tuple[UUID, str], Fault] = {}
    for step in steps:
        for operation_id, kind, boundary, detail in _faults(tables, step, before):
            faults.setdefault((operation_id, kind), (boundary, detail))
    for (operation_id, kind), (boundary, detail) in sorted(faults.items()):
        count_incident(tables, operation_id, kind, boundary, detail)


def _faults(tables: Tables, step: Row, before: Mapping[Job, Row]) -> list[tuple[UUID, str, str, str]]:
    operation_id = step["operation_id"]
    found = []
    owner_id = _owner(step, before)
    if owner_id is not None:
        boundary = "ours" if _is_adopted(tables, owner_id) else "theirs"
        found += [
            (operation_id, "remote_id_owned", boundary, "the reply names a remote job of another operation"),
            (owner_id, "remote_id_disputed", boundary, "a reply to another operation names the remote job of this one"),
        ]
    if step["vanished"]:
        found.append((operation_id, "dispatch_vanished", "ours", "the dispatch row was gone when its reply was saved"))
    if step["status"] == "evidence":
        found += _of_evidence(step, owner_id)
    return found


def _of_evidence(step: Row, owner_id: UUID | None) -> list[tuple[UUID, str, str, str]]:
    job, saved = step["remote_job_id"], step["saved_job_id"]
    if owner_id is None and job is not None and job != saved:
        detail = "an id arrived that no longer concludes this operation"
        return [(step["operation_id"], "late_remote_job", "network", detail)]
    if job is None and saved is not None:
        detail = "a reply without an id arrived for an accepted operation"
        return [(step["operation_id"], "contradicting_reply", "theirs", detail)]
    return []


def _owner(step: Row, before: Mapping[Job, Row]) -> UUID | None:
    """The other operation that the named job is recorded with."""
    held = before.get((step["account"], step["remote_job_id"]))
    if step["status"] not in ("owned", "evidence") or held is None or held["operation_id"] == step["operation_id"]:
        return None
    owner_id: UUID = held["operation_id"]
    return owner_id


def _is_adopted(tables: Tables, operation_id: UUID) -> bool:
    return any(row["event"] == "adopted" for row in tables.history.of(operation_id))
