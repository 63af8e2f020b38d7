"""How much each account and each wanted kind has leave for at this instant, as `parts/claim_budgets.sql` says it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memory.accounts import token_in_s, tokens
from memory.tables import Row, Tables, after, later, listed, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An account's row with what it lets a claim take."""

    row: Row
    is_counted: bool
    dispatch_leave: int | None
    look_leave: int | None
    dispatch_in_s: float | None
    look_in_s: float | None

    @property
    def is_paused(self) -> bool:
        """Whether its looks are paused."""
        return self.row["observation_paused_at"] is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A wanted action of a provider, with its account's leave."""

    number: int
    want: Row
    floor_s: float | None
    leave_count: int | None
    free: int
    per_s: float | None
    opens_in_s: float | None
    hop_limit: int

    def is_spaced(self, row: Row, now: datetime) -> bool:
        """Whether the last look at a job is long enough ago."""
        if self.floor_s is None or row["last_leased_at"] is None:
            return True
        return bool(row["last_leased_at"] <= after(now, -self.floor_s))


def budgets_of(tables: Tables, p: Mapping[str, Any]) -> dict[str, Budget]:
    """The accounts that the claim is about."""
    wanted = listed(p, "action", "provider", "account", "room")
    lookups = list(zip(p["lookup_provider"], p["lookup_account"], strict=True))
    names = {want["account"] for want in wanted} | {account for _, account in lookups}
    rows = [row for row in tables.accounts if row["account"] in names]
    return {row["account"]: _budget(tables, row, _is_counted(tables, row, wanted, lookups)) for row in rows}


def _is_counted(tables: Tables, row: Row, wanted: Sequence[Row], lookups: Sequence[tuple[str, str]]) -> bool:
    """Whether looks of the account are counted or tried, and somebody is about to look."""
    now, account = tables.now(), row["account"]
    is_tried = row["observation_probe_at"] is not None and row["observation_probe_at"] <= now
    if row["looks_per_s"] is None and not is_tried:
        return False
    has_room = any(want["account"] == account and want["action"] == "observe" and want["room"] > 0 for want in wanted)
    if not has_room and account not in {each for _, each in lookups}:
        return False
    due = [each for each in tables.outbox if each["parked_at"] is None and each["visible_at"] <= now]
    watched = {want["provider"] for want in wanted if want["account"] == account and want["action"] == "observe"}
    searched = {provider for provider, each in lookups if each == account}
    return any(
        (each["action"] == "observe" and each["provider"] in watched)
        or (each["action"] == "reconcile" and each["wait_reason"] == "lookup" and each["provider"] in searched)
        for each in due
    )


def _budget(tables: Tables, row: Row, is_counted: bool) -> Budget:
    now = tables.now()
    dispatches = (row["dispatches_per_s"], row["dispatch_turn_at"], row["dispatch_shut_until"], now)
    limit = row["max_in_flight"]
    free = None if limit is None else max(0, limit - row["in_flight_count"])
    leave = tokens(*dispatches)
    return Budget(
        row=row,
        is_counted=is_counted,
        dispatch_leave=min((each for each in (free, leave) if each is not None), default=None),
        look_leave=_look_leave(row, is_counted, now),
        dispatch_in_s=_dispatch_in_s(row, now),
        look_in_s=_look_in_s(row, is_counted, now),
    )


def _batch(per_s: float | None) -> int:
    return 1 if per_s is None else max(1, math.floor(per_s / 10))


def _dispatch_in_s(row: Row, now: datetime) -> float | None:
    """Whose places in flight are taken opens when a render ends, which nobody knows."""
    limit, per_s, shut_until = row["max_in_flight"], row["dispatches_per_s"], row["dispatch_shut_until"]
    if limit is not None and row["in_flight_count"] >= limit:
        return None
    if per_s is None and (shut_until is None or shut_until <= now):
        return None
    return token_in_s(per_s, row["dispatch_turn_at"], shut_until, now, _batch(per_s))


def _look_leave(row: Row, is_counted: bool, now: datetime) -> int | None:
    leave = tokens(row["looks_per_s"], row["look_turn_at"], row["look_shut_until"], now)
    if row["observation_paused_at"] is not None:
        # a pause is tried with one look, which keeps to the rate and to the patience that was asked for
        if row["observation_probe_at"] is None or row["observation_probe_at"] > now:
            return 0
        return int(is_counted) * (1 if leave is None else min(1, leave))
    if row["looks_per_s"] is not None and not is_counted:
        return 0
    return leave


def _look_in_s(row: Row, is_counted: bool, now: datetime) -> float | None:
    if row["observation_paused_at"] is not None:
        if row["observation_probe_at"] is None:
            return None
        waits = [row["observation_probe_at"] - now]
        if row["look_shut_until"] is not None:
            waits.append(row["look_shut_until"] - now)
        return seconds(max(waits, default=timedelta(0)))
    per_s = row["looks_per_s"]
    if per_s is not None and not is_counted:
        return None
    return token_in_s(per_s, row["look_turn_at"], row["look_shut_until"], now, _batch(per_s))


def kinds_of(tables: Tables, p: Mapping[str, Any], budgets: Mapping[str, Budget]) -> list[Kind]:
    """What is wanted, in its order, each with its account's leave."""
    names = ("action", "provider", "account", "room", "reserve", "lease_s", "after_tenant", "after_precedence")
    return [_kind(tables, want, budgets.get(want["account"])) for want in listed(p, *names)]


def _kind(tables: Tables, want: Row, budget: Budget | None) -> Kind:
    leave: tuple[int | None, float | None, float | None] = (None, None, None)
    if budget is not None and want["action"] == "dispatch":
        leave = (budget.dispatch_leave, budget.row["dispatches_per_s"], budget.dispatch_in_s)
    elif budget is not None and want["action"] == "observe":
        leave = (budget.look_leave, budget.row["looks_per_s"], budget.look_in_s)
    leave_count, per_s, opens_in_s = leave
    free = want["room"] if leave_count is None else min(want["room"], leave_count)
    now, provider, action = tables.now(), want["provider"], want["action"]
    due = [row for row in tables.outbox.rows.values() if row["visible_at"] <= now and row["action"] == action]
    due_count = sum(row["provider"] == provider and row["parked_at"] is None for row in due if action != "reconcile")
    return Kind(
        number=want["position"],
        want=want,
        floor_s=budget.row["look_floor_s"] if budget is not None and want["action"] == "observe" else None,
        leave_count=leave_count,
        free=free,
        per_s=per_s,
        opens_in_s=None if opens_in_s is None or opens_in_s < 0 else opens_in_s,
        # where not all that is due gets a place, tenants are looked for behind a crowd that has nothing due, too
        hop_limit=500 if due_count > free else 33,
    )


def spend_looks(tables: Tables, budgets: Mapping[str, Budget], taken: Sequence[Row]) -> None:
    """Count the looks that are leased; the one that tries a pause has until its lease ends."""
    now = tables.now()
    for account, budget in budgets.items():
        leases_s = [each["lease_s"] for each in taken if each["account"] == account and each["action"] == "observe"]
        if not leases_s or not budget.is_counted:
            continue
        kept = budget.row
        turn_at = kept["look_turn_at"]
        if kept["looks_per_s"] is not None:
            turn_at = after(later(turn_at, now) or now, len(leases_s) / kept["looks_per_s"])
        probe_at = after(now, max(leases_s)) if budget.is_paused else kept["observation_probe_at"]
        tables.accounts.change(account, look_turn_at=turn_at, observation_probe_at=probe_at)
