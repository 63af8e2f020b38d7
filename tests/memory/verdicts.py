"""What decisions make of dispatches: an outcome that rises, and money that is spent, freed or held again."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from memory.accounts import Amount, outcome_rank
from memory.tables import Row, Tables

Money = Decimal | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What one verdict moved of one dispatch."""

    operation_id: UUID
    verdict: str
    charged: Money | None
    released: Money | None
    amount: Amount


def settle(tables: Tables, applied: Sequence[Row]) -> list[Settled]:
    """Write the dispatches that the decisions are about; the answer is the money that moved."""
    found = [
        (verdict, tables.dispatches.get(verdict["dispatch_id"])) for step in applied for verdict in _verdicts(step)
    ]
    return [money for verdict, held in found if held is not None and (money := _settle(tables, verdict, held))]


def _verdicts(step: Row) -> list[Row]:
    """An id that concludes opens its dispatch; if that is an earlier one, the present one bought something that nobody has."""
    verdicts = []
    names = ("operation_id", "tenant_id", "dispatch_id", "outcome", "reason", "remote_job_id")
    if step["outcome"] is not None or step["settles"] is not None:
        verdict = step["settles"] if step["remote_job_id"] is None else "open"
        verdicts.append({**{name: step[name] for name in names}, "verdict": verdict})
    present = step["present_dispatch_id"]
    if present is not None and step["dispatch_id"] is not None and present != step["dispatch_id"]:
        verdicts.append(
            {
                **{name: step[name] for name in ("operation_id", "tenant_id", "reason")},
                "dispatch_id": present,
                "outcome": None,
                "remote_job_id": None,
                "verdict": "spent",
            }
        )
    return verdicts


def _settle(tables: Tables, verdict: Row, held: Row) -> Settled | None:
    word = verdict["verdict"]
    # what is settled already stays, so that nothing is spent twice; what is opened holds again
    moves = word is not None and (word == "open") == (held["settled_at"] is not None)
    values: dict[str, Any] = {"remote_job_id": held["remote_job_id"] or verdict["remote_job_id"]}
    if verdict["outcome"] is not None and outcome_rank(verdict["outcome"]) > outcome_rank(held["outcome"]):
        values["outcome"] = verdict["outcome"]
    if held["cause"] is None and verdict["outcome"] == "uncertain":
        values["cause"] = verdict["reason"]
    charged = _charged(word, held) if moves else None
    if moves and word == "open":
        values |= dict.fromkeys(("charged", "basis", "settled_at"))
    elif moves:
        values |= {"charged": charged, "basis": "assumed", "settled_at": tables.now()}
    tables.dispatches.change(held["dispatch_id"], **values)
    if not moves:
        return None
    amount: Amount = (
        verdict["tenant_id"],
        held["unit"],
        held["held"] if word == "open" else -held["held"],
        (charged or 0) - (held["charged"] or 0),
    )
    released = None if charged is None else held["held"] - charged
    return Settled(
        operation_id=verdict["operation_id"], verdict=word, charged=charged, released=released, amount=amount
    )


def _charged(word: str, held: Row) -> Money | None:
    if word == "open":
        return None
    charged: Money = (held["held"] if word == "spent" else 0) + held["orphaned"]
    return charged
