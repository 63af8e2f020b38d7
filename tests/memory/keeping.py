"""What a worker keeps beside its operations: where the database lies, its own account of itself, incidents, and how looks ended."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memory.marking import is_astray
from memory.tables import Row, Tables, after, later, listed


def read_installation(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/read_installation`."""
    return [{"installation_id": row["installation_id"]} for row in tables.installation]


def check_installation(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/check_installation`: another server, timeline or table than the last time pauses every account."""
    (held,) = tables.installation.rows.values()
    if not is_astray(tables):
        return []
    here = dict(zip(("system_identifier", "timeline", "made_as"), tables.place, strict=True))
    is_here = (held["system_identifier"], held["made_as"]) == (here["system_identifier"], here["made_as"])
    is_safe, told = bool(p["promotion_is_safe"]) and is_here, _told(held, here)
    tables.installation.change(
        True,
        **here,
        changed_at=tables.now(),
        restored_at=held["restored_at"] if is_safe else tables.now(),
        restored_reason=held["restored_reason"] if is_safe else told,
    )
    affected = [] if is_safe else list(tables.providers)
    for row in affected:
        tables.providers.change(
            row["name"],
            dispatch_paused_at=row["dispatch_paused_at"] or tables.now(),
            dispatch_pause_reason=f"restored: {told}{_before(row['dispatch_pause_reason'])}",
            dispatch_paused_by=row["dispatch_paused_by"] or p["worker"],
        )
    return [{"told": told, "is_safe": is_safe, "paused_count": len(affected)}]


def _told(held: Row, here: Row) -> str:
    if held["system_identifier"] != here["system_identifier"]:
        return f"another cluster: expected {held['system_identifier']}, got {here['system_identifier']}"
    if held["made_as"] != here["made_as"]:
        return "the tables were made anew in this cluster"
    return f"promoted: expected timeline {held['timeline']}, got {here['timeline']}"


def _before(reason: str | None) -> str:
    """What a pause was for before, which whoever ends it reads, too."""
    if reason is None:
        return ""
    mark = "; paused before: "
    if mark in reason:
        return reason[reason.index(mark) :]
    return "" if reason.startswith("restored: ") else mark + reason


def report_worker(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/report_worker`."""
    now = tables.now()
    told = {
        "seen_at": now,
        "stopped_at": now if p["stopped"] else None,
        "stale": json.loads(p["stale"]),
        "lease_renewal_failures_count": p["lease_renewal_failures_count"],
        "action_ms": json.loads(p["action_ms"]),
    }
    if tables.workers.get(p["incarnation"]) is None:
        own = {name: p[name] for name in ("incarnation", "version", "roles")}
        tables.workers.insert(started_at=now, **own, **told)
    else:
        tables.workers.change(p["incarnation"], **told)
    return []


def note_incidents(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/note_incidents`: a repeated kind raises its count and has the newest words."""
    now = tables.now()
    for each in listed(p, "operation_id", "kind", "boundary", "detail"):
        key = (each["operation_id"], each["kind"])
        held = tables.incidents.get(key)
        if held is None:
            del each["position"]
            tables.incidents.insert(first_at=now, last_at=now, **each)
        else:
            tables.incidents.change(key, count=held["count"] + 1, detail=each["detail"], last_at=now)
    return []


def report_looks(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """`store/report_looks`: failures in a row and the pause that follows, its end, and patience that was asked for."""
    reports = listed(p, "account", "leased_at", "failure", "shut_s", "is_made")
    for account in sorted({each["account"] for each in reports}):
        kept = tables.accounts.get(account)
        if kept is not None:
            _look_report(tables, p, kept, [each for each in reports if each["account"] == account])
    return []


def _look_report(tables: Tables, p: Mapping[str, Any], kept: Row, reports: Sequence[Row]) -> None:
    now = tables.now()
    last_success = max((each["position"] for each in reports if each["failure"] is None and each["is_made"]), default=0)
    failures = [each for each in reports if each["failure"] is not None]
    shut_s = max((each["shut_s"] for each in reports if each["shut_s"] is not None), default=None)
    failed = sum(each["position"] > last_success for each in failures)
    failed_look_count = failed + (0 if last_success else kept["failed_look_count"])
    values: Row = {
        "failed_look_count": failed_look_count,
        "look_shut_until": later(kept["look_shut_until"], None if shut_s is None else after(now, shut_s)),
    }
    match _verdict(kept, reports, is_success=bool(last_success), is_over=failed_look_count >= p["limit"]):
        case "ends":
            cleared = (
                "observation_paused_at",
                "observation_pause_reason",
                "observation_paused_by",
                "observation_probe_at",
            )
            values |= {**dict.fromkeys(cleared), "failed_probe_count": 0}
        case "stays":
            probes = kept["failed_probe_count"] + 1
            delay_s = min(p["last_s"], p["first_s"] * 2.0 ** min(probes, 10))
            values |= {"failed_probe_count": probes, "observation_probe_at": after(now, delay_s)}
        case "is due":
            values |= {"observation_probe_at": now}
        case "begins":
            last = failures[-1]["failure"] if failures else ""
            values |= {
                "failed_probe_count": 0,
                "observation_paused_at": now,
                "observation_pause_reason": f"{failed_look_count} looks in a row failed, the last one with: {last}",
                "observation_paused_by": "coatcheck",
                "observation_probe_at": after(now, p["first_s"]),
            }
        case _:
            pass
    tables.accounts.change(kept["account"], **values)


def _verdict(kept: Row, reports: Sequence[Row], *, is_success: bool, is_over: bool) -> str | None:
    """A look from before a pause does not prolong it, and no look ends what a person paused."""
    paused_at: datetime | None = kept["observation_paused_at"]
    if kept["observation_probe_at"] is None or paused_at is None:
        return "begins" if paused_at is None and is_over else None
    if is_success:
        return "ends"
    if any(each["failure"] is not None and each["leased_at"] > paused_at for each in reports):
        return "stays"
    spared = any(not each["is_made"] and each["leased_at"] > paused_at for each in reports)
    return "is due" if spared else None
