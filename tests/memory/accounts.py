"""What is counted of accounts and allowances by the statements that move it: flights, rates, pauses that follow from replies, money."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from memory.tables import Row, Tables, after, later, seconds

RANKS = {"open": 0, "uncertain": 1, "rejected": 2, "throttled": 2, "not_sent": 2, "proven_absent": 2}


def outcome_rank(outcome: str) -> int:
    """An outcome only rises: open < uncertain < refused or absent < an id."""
    return RANKS.get(outcome, 3)


def is_in_flight(phase: str | None, render_state: str | None) -> bool:
    """Whether the service may be working on it."""
    if phase in ("dispatching", "uncertain"):
        return True
    return phase in ("accepted", "submission_failed") and render_state in ("none", "queued", "rendering")


def tokens(per_s: float | None, turn_at: datetime | None, shut_until: datetime | None, at: datetime) -> int | None:
    """How many requests a rate allows at this instant; None: any number."""
    if shut_until is not None and shut_until > at:
        return 0
    if per_s is None:
        return None
    return max(0, math.floor(max(1, per_s / 10) - per_s * _ahead_s(turn_at, at) + 1e-6))


def token_in_s(
    per_s: float | None, turn_at: datetime | None, shut_until: datetime | None, at: datetime, number: int
) -> float:
    """In how many seconds a rate allows so many requests, if none is made before."""
    waits = [0.0]
    if shut_until is not None:
        waits.append(seconds(shut_until - at))
    if per_s is not None:
        waits.append((number - max(1, per_s / 10)) / per_s + _ahead_s(turn_at, at))
    return max(waits)


def _ahead_s(turn_at: datetime | None, at: datetime) -> float:
    return 0.0 if turn_at is None else max(0.0, seconds(turn_at - at))


def move_accounts(tables: Tables, news: Iterable[tuple[str | None, float | None, int]]) -> None:
    """What a batch moves in and out of flight, and for how long a service asked to be left alone, by account."""
    sums: dict[str, tuple[int, float | None]] = {}
    for account, shut_s, flights in news:
        if account is not None:
            known, longest = sums.get(account, (0, None))
            sums[account] = known + flights, max((each for each in (longest, shut_s) if each is not None), default=None)
    for account, (flights, shut) in sums.items():
        kept = tables.accounts.get(account)
        is_shut = shut is not None and shut > 0
        if kept is None or not (flights or is_shut) or (kept["max_in_flight"] is None and not is_shut):
            continue
        counted = kept["in_flight_count"]
        tables.accounts.change(
            account,
            in_flight_count=counted if kept["max_in_flight"] is None else max(0, counted + flights),
            dispatch_shut_until=later(kept["dispatch_shut_until"], None if shut is None else after(tables.now(), shut)),
        )


Amount = tuple[str | None, str, Decimal | int, Decimal | int]
"""Of a tenant, in a unit: what is held more, and what is charged more."""


def move_allowances(tables: Tables, amounts: Iterable[Amount]) -> None:
    """What a batch holds and charges, added up, on the allowances that there are."""
    sums: dict[tuple[str, str], tuple[Decimal | int, Decimal | int]] = {}
    for tenant_id, unit, held, charged in amounts:
        if tenant_id is not None:
            before = sums.get((tenant_id, unit), (0, 0))
            sums[tenant_id, unit] = before[0] + held, before[1] + charged
    for key, (held, charged) in sums.items():
        kept = tables.allowances.get(key)
        if kept is not None and (held or charged):
            tables.allowances.change(key, held=kept["held"] + held, charged=kept["charged"] + charged)


def pause_accounts(tables: Tables, judged: Sequence[Row]) -> None:
    """What the replies of a batch say of each account, and the pause that follows."""
    replies = [
        step
        for step in judged
        if step["status"] != "stale"
        and step["is_news"]
        and (step["http_status"] is not None or step["outcome"] == "uncertain")
    ]
    for account in {step["account"] for step in replies}:
        _pause_account(tables, account, [step for step in replies if step["account"] == account])


def _pause_account(tables: Tables, account: str, replies: Sequence[Row]) -> None:
    others = [step["position"] for step in replies if step["http_status"] not in (None, 403)]
    sure = [step["position"] for step in replies if step["outcome"] != "uncertain"]
    refusals = [step for step in replies if step["outcome"] == "rejected"]
    denied = min((step["http_status"] for step in refusals if step["http_status"] in (401, 402)), default=None)
    forbidden = sum(step["http_status"] == 403 and step["position"] > max(others, default=0) for step in refusals)
    doubts = sum(step["outcome"] == "uncertain" and step["position"] > max(sure, default=0) for step in replies)
    for held in tables.providers:
        if held["account"] != account:
            continue
        if denied is None and not (forbidden or held["forbidden_count"] or doubts or held["doubt_count"]):
            continue
        forbidden_count = forbidden + (0 if others else held["forbidden_count"])
        doubt_count = doubts + (0 if sure else held["doubt_count"])
        reason = _pause_reason(denied, forbidden_count, doubt_count, held["doubt_limit"])
        tables.providers.change(held["name"], forbidden_count=forbidden_count, doubt_count=doubt_count)
        if reason is not None and held["dispatch_paused_at"] is None:
            tables.providers.change(
                held["name"],
                dispatch_paused_at=tables.now(),
                dispatch_pause_reason=reason,
                dispatch_paused_by="coatcheck",
            )


def _pause_reason(denied: int | None, forbidden_count: int, doubt_count: int, doubt_limit: int | None) -> str | None:
    if denied is not None:
        return f"the service answered {denied} to a dispatch"
    if forbidden_count >= 5:
        return "five dispatches in a row were answered 403"
    if doubt_limit is not None and doubt_count >= doubt_limit:
        return f"{doubt_count} dispatches in a row ended in doubt"
    return None
