"""What the end of a POST leaves in its dispatch: evidence that only rises, and the money that follows from it."""

from collections.abc import Sequence
from typing import Any

from memory.accounts import Amount, outcome_rank
from memory.columns import words
from memory.tables import Row, Tables, after


def write_evidence(tables: Tables, steps: Sequence[Row]) -> list[Amount]:
    """Write the dispatch of each step, its settlement included; the answer is what that moves on allowances."""
    amounts: list[Amount] = []
    for step in steps:
        money = _money(tables, step)
        _upsert(tables, step, money)
        was_open = step["was_settled_at"] is None and not step["vanished"]
        held = (step["held"] if money["settled_at"] is None else 0) - (step["held"] if was_open else 0)
        charged = (money["charged"] or 0) - (step["was_charged"] or 0)
        amounts.append((step["tenant_id"], step["unit"], held, charged))
    return amounts


def _word(step: Row) -> str:
    """What becomes of the money."""
    if step["status"] in ("applied", "owned") and step["remote_job_id"] is not None:
        return "open"
    if not step["rises"]:
        return "as_it_was"
    if outcome_rank(step["outcome"]) == 2:
        return "nothing"
    if step["status"] == "evidence" and (step["remote_job_id"] is not None or step["vanished"]):
        return "spent"
    return "open" if step["vanished"] else "as_it_was"


def _money(tables: Tables, step: Row) -> dict[str, Any]:
    settled_at = step["was_settled_at"] or tables.now()
    match _word(step):
        case "open":
            return {"charged": None, "basis": None, "settled_at": None}
        case "nothing":
            return {"charged": 0, "basis": "assumed", "settled_at": settled_at}
        case "spent":
            return {"charged": step["was_charged"] or step["held"], "basis": "assumed", "settled_at": settled_at}
        case _:
            return {
                "charged": step["was_charged"],
                "basis": step["was_basis"],
                "settled_at": step["was_settled_at"],
            }


def _upsert(tables: Tables, step: Row, money: Row) -> None:
    now = tables.now()
    told = {name: step[name] for name in ("stage", "marks_ms", "bytes_sent", "bytes_received")}
    quiescent_at = after(now, step["settle_s"])
    held = tables.dispatches.get(step["dispatch_id"])
    if held is None:
        names = (
            "dispatch_id operation_id authorisation authorised_by account outcome cause http_status request_ids candidate_id"
            " remote_job_id reply displaced held unit"
        )
        tables.dispatches.insert(
            number=step["row_number"],
            worker=step["actor"],
            begun_at=after(now, -step["begun_ago_s"]),
            send_by_at=after(now, -step["begun_ago_s"]),
            quiescent_at=quiescent_at,
            ended_at=now,
            **{name: step[name] for name in words(names)},
            **told,
            **money,
        )
        return
    rises = outcome_rank(step["outcome"]) > outcome_rank(held["outcome"])
    newest = {name: _or(step[name], held[name]) for name in ("cause", "http_status", "request_ids", "reply")}
    first = {name: _or(held[name], step[name]) for name in ("remote_job_id", "candidate_id")}
    tables.dispatches.change(
        step["dispatch_id"],
        outcome=step["outcome"] if rises else held["outcome"],
        displaced=held["displaced"] or (step["displaced"] and rises),
        quiescent_at=min(held["quiescent_at"], quiescent_at),
        ended_at=held["ended_at"] or now,
        **newest,
        **first,
        **told,
        **money,
    )


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value
