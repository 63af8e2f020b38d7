"""Providers, pauses, budgets and allowances as people and workers' beginnings change them."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from memory.accounts import is_in_flight
from memory.columns import words
from memory.marking import is_astray
from memory.tables import Row, Tables, after, listed

_PAUSE = ("dispatch_paused_at", "dispatch_pause_reason", "dispatch_paused_by")


def register_providers(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/register_providers`: a pause that exists stays, and a new name of a paused account is paused with it."""
    before = {row["name"]: row for row in tables.providers}
    fresh = [each for each in listed(p, "name", "account", "kind") if not _is_known(tables, each)]
    told = _restored(tables)
    for each in fresh:
        if tables.accounts.get(each["account"]) is None:
            tables.accounts.insert(account=each["account"])
    for each in sorted(fresh, key=lambda each: str(each["name"])):
        if each["name"] in before:
            tables.providers.change(each["name"], account=each["account"], kind=each["kind"])
        else:
            own = {name: each[name] for name in ("name", "account", "kind")}
            tables.providers.insert(**own, **_inherited(tables, before, each["account"], told))
    return []


def _is_known(tables: Tables, each: Row) -> bool:
    known = tables.providers.get(each["name"]) or {}
    is_same = all(known.get(name) == each[name] for name in ("account", "kind"))
    return is_same and tables.accounts.get(each["account"]) is not None


def _restored(tables: Tables) -> str | None:
    (held,) = tables.installation.rows.values()
    if is_astray(tables):
        return "not compared yet"
    return held["restored_reason"] if held["restored_at"] is not None else None


def _inherited(tables: Tables, before: Mapping[str, Row], account: str, told: str | None) -> Row:
    """The pause that a new name begins with."""
    names = sorted((row for row in before.values() if row["account"] == account), key=lambda row: str(row["name"]))
    for row in names:
        if row["dispatch_paused_at"] is not None:
            return {name: row[name] for name in _PAUSE}
    if told is None or names:
        return {}
    values = (tables.now(), f"restored: new to this copy: {told}", "coatcheck")
    return dict(zip(_PAUSE, values, strict=True))


def list_providers(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/list_providers`."""
    names = sorted(row["name"] for row in tables.providers if p["name"] in (None, row["name"]))
    return [_listed(tables, tables.providers.rows[name]) for name in names]


def _listed(tables: Tables, provider: Row) -> Row:
    budget = tables.accounts.get(provider["account"]) or {}
    own = (
        "name account kind default_estimate unit doubt_limit doubt_count dispatch_paused_at dispatch_pause_reason"
        " dispatch_paused_by dispatch_resumed_at dispatch_resume_reason dispatch_resumed_by"
    )
    shared = (
        "max_in_flight dispatches_per_s looks_per_s look_floor_s observation_paused_at observation_pause_reason"
        " observation_paused_by observation_probe_at observation_resumed_at observation_resume_reason observation_resumed_by"
        " failed_look_count"
    )
    return {
        **{name: provider[name] for name in words(own)},
        **{name: budget.get(name) for name in words(shared)},
        "in_flight_count": budget.get("in_flight_count") if budget.get("max_in_flight") is not None else None,
        "dispatch_shut_until": _ahead(tables, budget.get("dispatch_shut_until")),
        "look_shut_until": _ahead(tables, budget.get("look_shut_until")),
    }


def _ahead(tables: Tables, instant: datetime | None) -> datetime | None:
    return instant if instant is not None and instant > tables.now() else None


def _names_of(tables: Tables, name: str) -> list[Row]:
    """Every name of the account that a name belongs to."""
    known = tables.providers.get(name)
    return [] if known is None else [row for row in tables.providers if row["account"] == known["account"]]


def pause_provider(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/pause_provider`."""
    for row in _names_of(tables, p["name"]):
        tables.providers.change(
            row["name"],
            dispatch_paused_at=row["dispatch_paused_at"] or tables.now(),
            dispatch_pause_reason=p["reason"],
            dispatch_paused_by=p["actor"],
        )
    return []


def resume_provider(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/resume_provider`: what waited for the pause is due."""
    affected = _names_of(tables, p["name"])
    _wake(tables, [row["name"] for row in affected], ("pause",))
    for row in affected:
        tables.providers.change(
            row["name"],
            **dict.fromkeys(_PAUSE),
            dispatch_resumed_at=tables.now(),
            dispatch_resume_reason=p["reason"],
            dispatch_resumed_by=p["actor"],
            forbidden_count=0,
            doubt_count=0,
        )
    return []


def _wake(tables: Tables, providers: list[str], reasons: tuple[str, ...]) -> None:
    for row in tables.outbox:
        is_idle = row["action"] == "dispatch" and row["parked_at"] is None and row["leased_by"] is None
        if is_idle and row["provider"] in providers and row["wait_reason"] in reasons:
            _make_due(tables, row, tables.now())


def _make_due(tables: Tables, row: Row, at: datetime) -> None:
    key = tables.outbox.key(row)
    tables.outbox.change(key, visible_at=at, wait_reason=None, wait_since_at=None, wait_count=0)


def pause_observation(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/pause_observation`: a pause that began by itself becomes a person's."""
    known = tables.providers.get(p["name"])
    if known is None:
        return []
    budget = tables.accounts.get(known["account"]) or tables.accounts.insert(account=known["account"])
    tables.accounts.change(
        known["account"],
        observation_paused_at=budget["observation_paused_at"] or tables.now(),
        observation_pause_reason=p["reason"],
        observation_paused_by=p["actor"],
        observation_probe_at=None,
    )
    return []


def resume_observation(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/resume_observation`."""
    known = tables.providers.get(p["name"])
    if known is not None and tables.accounts.get(known["account"]) is not None:
        cleared = ("observation_paused_at", "observation_pause_reason", "observation_paused_by", "observation_probe_at")
        tables.accounts.change(
            known["account"],
            **dict.fromkeys(cleared),
            observation_resumed_at=tables.now(),
            observation_resume_reason=p["reason"],
            observation_resumed_by=p["actor"],
            failed_look_count=0,
            failed_probe_count=0,
        )
    return []


def change_provider(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/change_provider`."""
    known = tables.providers.get(p["name"])
    if known is not None:
        kept = {name: p[name] for name in ("default_estimate", "doubt_limit") if p[f"sets_{name}"]}
        tables.providers.change(p["name"], unit=p["unit"] or known["unit"], **kept)
    return []


def change_budget(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/change_budget`: what is in flight is counted anew where its limit is given."""
    known = tables.providers.get(p["name"])
    if known is None:
        return []
    account, now = known["account"], tables.now()
    budget = tables.accounts.get(account)
    if budget is None:
        names = ("max_in_flight", "dispatches_per_s", "looks_per_s", "look_floor_s")
        count = _in_flight(tables, account) if p["sets_max_in_flight"] else 0
        tables.accounts.insert(account=account, in_flight_count=count, **{name: p[name] for name in names})
        return []
    values: Row = {}
    if p["sets_max_in_flight"]:
        values |= {"max_in_flight": p["max_in_flight"], "in_flight_count": _in_flight(tables, account)}
    for rate, turn in (("dispatches_per_s", "dispatch_turn_at"), ("looks_per_s", "look_turn_at")):
        if p[f"sets_{rate}"]:
            values |= {rate: p[rate], turn: _turn(now, budget[turn], budget[rate], p[rate])}
    if p["sets_look_floor_s"]:
        values["look_floor_s"] = p["look_floor_s"]
    tables.accounts.change(account, **values)
    return []


def _turn(now: datetime, turn_at: datetime | None, before: float | None, after_it: float | None) -> datetime | None:
    """What is used up is so many requests, at the new rate as at the old one."""
    if turn_at is None or before is None or after_it is None:
        return None
    return after(now, (turn_at - now).total_seconds() * (before / after_it))


def _in_flight(tables: Tables, account: str) -> int:
    count = 0
    for course in tables.outbox:
        operation = tables.operations.get(course["operation_id"]) or {}
        is_its = course["lane"] == 0 and operation.get("account") == account
        count += is_its and is_in_flight(operation["phase"], operation["render_state"])
    return count


def wake_budgeted(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/wake_budgeted`."""
    _wake(tables, [row["name"] for row in _names_of(tables, p["name"])], ("cap", "rate"))
    tables.notify()
    return [{"pg_notify": ""}]


def open_allowance(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/open_allowance`: it begins with what its tenant's dispatches hold and cost already."""
    own = {row["operation_id"] for row in tables.operations if row["tenant_id"] == p["tenant_id"]}
    sent = [row for row in tables.dispatches if row["operation_id"] in own and row["unit"] == p["unit"]]
    told = {"ceiling": p["ceiling"], "set_by": p["actor"], "updated_at": tables.now()}
    if tables.allowances.get((p["tenant_id"], p["unit"])) is not None:
        tables.allowances.change((p["tenant_id"], p["unit"]), **told)
        return []
    tables.allowances.insert(
        tenant_id=p["tenant_id"],
        unit=p["unit"],
        held=sum((row["held"] for row in sent if row["settled_at"] is None), Decimal(0)),
        charged=sum((row["charged"] or 0 for row in sent), Decimal(0)),
        **told,
    )
    return []


def change_allowance(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/change_allowance`."""
    key = (p["tenant_id"], p["unit"])
    if tables.allowances.get(key) is None:
        return []
    tables.allowances.change(key, ceiling=p["ceiling"], set_by=p["actor"], updated_at=tables.now())
    return [{"tenant_id": p["tenant_id"]}]


def wake_allowance(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/wake_allowance`: the oldest operation first."""
    waiting = []
    for row in tables.outbox:
        operation = tables.operations.get(row["operation_id"]) or {}
        is_its = (operation.get("tenant_id"), operation.get("unit")) == (p["tenant_id"], p["unit"])
        is_idle = row["parked_at"] is None and row["leased_by"] is None
        if is_its and is_idle and row["action"] == "dispatch" and row["wait_reason"] == "allowance":
            waiting.append(row)
    for number, row in enumerate(sorted(waiting, key=tables.outbox.key), 1):
        _make_due(tables, row, after(tables.now(), number * 1e-6))
    tables.notify()
    return [{"pg_notify": ""}]
