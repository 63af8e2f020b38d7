"""`queue/claim`: lease a batch of what is due, in turns of tenants and within each account's budget.

The parts follow those of the SQL: budgets, suspects, turns, rest, expired, doubts, and what of them gets a place. Among messages that are
due since the same instant the SQL leaves the order open, and so does this.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memory.budgets import Budget, Kind, budgets_of, kinds_of, spend_looks
from memory.columns import words
from memory.leases import is_suspect
from memory.reading import OUTPUT, SUBJECT, subject_of
from memory.tables import Key, Row, Tables, after
from memory.turns import Walk, turns_of

_LAST = 2147483647
_NEVER = datetime.max.replace(tzinfo=UTC)
_SHARED = words("operation_id provider account tenant_id")
"""What message and operation both have: the message's are called `message_…`."""
_TIMES = words("not_before_at dispatch_by_at observe_by_at cancel_requested_at accepted_at final_at")
_MESSAGE = words(
    "lane action expected_revision expected_remote_job_id lease_token lease_count leased_at wait_reason wait_since_at wait_count"
)
_UNSAID = dict.fromkeys(
    (
        *(f"message_{name}" for name in _SHARED),
        *_MESSAGE,
        *words("lease_s is_suspect is_tried kind after_tenant after_precedence opens_in_s has_suspects"),
        *SUBJECT,
    )
)
"""The columns of an answer: a row is a message, or what the claim says of a kind."""


def claim(tables: Tables, p: Mapping[str, Any]) -> list[Row]:
    """The leased messages, and what the claim has to say of its kinds."""
    budgets = budgets_of(tables, p)
    kinds = kinds_of(tables, p, budgets)
    has_suspects = any(
        (kind.leave_count is None or kind.leave_count > 0) and is_suspect(tables, row, kind.want, p["schema_version"])
        for kind in kinds
        for row in tables.outbox.rows.values()
    )
    found, walks = _found(tables, p, kinds, budgets)
    taken = _taken(found)
    for each in taken:
        budget = budgets.get(each["account"])
        each["is_tried"] = budget is not None and budget.row["failed_look_count"] > 0
    spend_looks(tables, budgets, taken)
    outage = _outage(tables, p)
    claimed = [{**_claimed(tables, each, p["worker"], outage), "has_suspects": has_suspects} for each in taken]
    texts = sum(message["action"] in ("dispatch", "deliver") for message in claimed)
    sizes = [_size_bytes(tables, message, p["row_bytes"]) for message in claimed]
    text_limit_bytes = min(p["text_limit_bytes"], (p["answer_limit_bytes"] - sum(sizes)) // max(1, texts))
    for number, message in enumerate(claimed[: p["told_limit"]], 1):
        if sum(sizes[:number]) <= p["answer_limit_bytes"]:
            message.update(_about(tables, message, text_limit_bytes))
    return [{**row, "read_at": tables.now()} for row in (*claimed, *_said(kinds, walks, taken))]


def _found(
    tables: Tables, p: Mapping[str, Any], kinds: Sequence[Kind], budgets: Mapping[str, Budget]
) -> tuple[list[Row], dict[int, Walk]]:
    """All that could be leased, each with its number among its account's; and of each kind, the walk that met it."""
    suspect = _suspect(tables, p, kinds)
    if suspect is not None:
        return [suspect], {}
    served = set(zip(p["served_action"], p["served_tenant"], strict=True))
    found: list[Row] = []
    walks: dict[int, Walk] = {}
    for kind in kinds:
        walk = turns_of(tables, kind, served, p["schema_version"])
        walks[kind.number] = walk
        found += _placed(tables, kind, walk, served, p["schema_version"])
        found += _expired(tables, kind, p["schema_version"])
    return [*found, *_doubtful(tables, p, budgets)], walks


def due(tables: Tables, kind: Kind, schema_versions: Sequence[int]) -> list[Row]:
    """What is due of a kind and not suspect, the longest first."""
    now = tables.now()
    rows = [
        row
        for row in tables.outbox.rows.values()
        if row["visible_at"] <= now
        and row["action"] == kind.want["action"] != "reconcile"
        and row["provider"] == kind.want["provider"]
        and row["parked_at"] is None
        and (row["leased_by"] is None or row["lease_count"] < 2)
        and row["account"] in (None, kind.want["account"])
        and row["schema_version"] in schema_versions
    ]
    return sorted(rows, key=lambda row: row["visible_at"])


def _suspect(tables: Tables, p: Mapping[str, Any], kinds: Sequence[Kind]) -> Row | None:
    """A message that may take its worker with it is leased alone, to whoever has nothing else in hand."""
    for kind in kinds if p["is_free"] else ():
        rows = [row for row in tables.outbox if is_suspect(tables, row, kind.want, p["schema_version"])]
        if rows and kind.want["action"] != "reconcile" and (kind.leave_count is None or kind.leave_count > 0):
            first = min(rows, key=lambda row: row["visible_at"])
            return {**_entry(first, kind), "kind": None, "is_suspect": True, "number": 0, "leave_count": None}
    return None


def _entry(row: Row, kind: Kind) -> Row:
    return {
        "slot": (row["operation_id"], row["lane"]),
        "account": kind.want["account"],
        "action": kind.want["action"],
        "lease_s": kind.want["lease_s"],
        "kind": kind.number,
        "is_suspect": False,
        "leave_count": kind.leave_count,
    }


def _placed(
    tables: Tables, kind: Kind, walk: Walk, served: set[tuple[str, str]], schema_versions: Sequence[int]
) -> list[Row]:
    """Tenants with nothing in hand first; the last places are kept for them. Then what is due besides."""
    met = [
        (turn.rank != 1 or (kind.want["action"], turn.tenant_id) in served, False, turn.rank, turn.hop, turn.row)
        for turn in walk.turns
    ]
    slots = {tables.outbox.key(turn.row) for turn in walk.turns}
    rest: list[Row] = []
    if len(walk.turns) < kind.free:
        rest = [row for row in due(tables, kind, schema_versions) if tables.outbox.key(row) not in slots]
        rest = [row for row in rest if kind.is_spaced(row, tables.now())][: kind.free]
    places = sorted(
        [*met, *((True, True, rank, 0, row) for rank, row in enumerate(rest, 1))], key=lambda place: place[:4]
    )
    return [
        {**_entry(row, kind), "number": number, "due_at": row["visible_at"]}
        for number, (is_served, _, _, _, row) in enumerate(places, 1)
        if number <= kind.free and (not is_served or number <= kind.want["room"] - kind.want["reserve"])
    ]


def _expired(tables: Tables, kind: Kind, schema_versions: Sequence[int]) -> list[Row]:
    """Dispatches whose deadline passed while their account has no leave for any: ending them asks the service nothing."""
    if kind.want["action"] != "dispatch" or kind.leave_count != 0:
        return []
    rows = [
        row
        for row in due(tables, kind, schema_versions)
        if row["dispatch_by_at"] is not None and row["dispatch_by_at"] <= tables.now()
    ]
    rows.sort(key=lambda row: row["dispatch_by_at"])
    return [
        {**_entry(row, kind), "kind": None, "number": 0, "leave_count": None}
        for row in rows[: min(kind.want["room"], 16)]
    ]


def _doubtful(tables: Tables, p: Mapping[str, Any], budgets: Mapping[str, Budget]) -> list[Row]:
    """Dispatches whose lease ended, of any provider, and doubt that can be looked up here."""
    lookups = set(zip(p["lookup_provider"], p["lookup_account"], strict=True))
    rows = []
    now = tables.now()
    for row in tables.outbox.rows.values():
        if row["action"] != "reconcile" or row["visible_at"] > now or row["parked_at"] is not None:
            continue
        budget = budgets.get(row["account"])
        is_look = row["wait_reason"] == "lookup"
        has_leave = budget is None or budget.look_leave is None or budget.look_leave > 0
        if not is_look or ((row["provider"], row["account"]) in lookups and has_leave):
            rows.append(
                {
                    "slot": (row["operation_id"], row["lane"]),
                    "account": row["account"],
                    "action": "observe" if is_look else "reconcile",
                    "lease_s": p["doubt_lease_s"],
                    "kind": None,
                    "is_suspect": False,
                    "number": _LAST if budget is not None and budget.is_paused else 0,
                    "leave_count": budget.look_leave if is_look and budget is not None else None,
                    "visible_at": row["visible_at"],
                }
            )
    return sorted(rows, key=lambda row: row["visible_at"])[: p["doubts"]]


def _taken(found: Sequence[Row]) -> list[Row]:
    """An account may have several names, and looking up is looking: each account's are counted together, the longest due first."""
    numbers: dict[tuple[str, str], int] = {}
    taken = []
    for each in sorted(found, key=lambda each: (each["number"], each.get("due_at", _NEVER), each["slot"])):
        place = (each["account"], each["action"])
        numbers[place] = numbers.get(place, 0) + 1
        if each["leave_count"] is None or numbers[place] <= each["leave_count"]:
            taken.append(each)
    return taken


Outage = tuple[datetime, datetime] | None


def _outage(tables: Tables, p: Mapping[str, Any]) -> Outage:
    """When the claimer could not reach the database, as far as it was away at all."""
    if p["away_from_s"] is None or p["away_until_s"] is None:
        return None
    return after(tables.now(), -p["away_from_s"]), after(tables.now(), -p["away_until_s"])


def _claimed(tables: Tables, each: Row, worker: str, outage: Outage) -> Row:
    """The message under its new lease."""
    key: Key = each["slot"]
    held, now = tables.outbox.rows[key], tables.now()
    was_away = outage is not None and outage[0] <= held["visible_at"] <= outage[1]
    was_leased = held["leased_by"] is not None
    first_leased_at = now
    if held["lease_count"] != 0:
        first_leased_at = held["first_leased_at"] or held["leased_at"] or now
    row = tables.outbox.change(
        key,
        visible_at=after(now, each["lease_s"]),
        lease_token=tables.next_token(),
        # a lease that ended while the database was away says nothing about its message
        lease_count=1 if was_leased and was_away else held["lease_count"] + 1,
        last_error="lease_ended" if was_leased and not was_away else held["last_error"],
        first_leased_at=first_leased_at,
        last_leased_at=now,
        leased_by=worker,
        leased_at=now,
    )
    own = {name: each[name] for name in ("lease_s", "is_suspect", "is_tried", "kind")}
    shared = {f"message_{name}": row[name] for name in _SHARED}
    return {**_UNSAID, **shared, **{name: row[name] for name in _MESSAGE}, **own}


def _size_bytes(tables: Tables, message: Row, row_bytes: int) -> int:
    """What it takes with its operation, beside its text. Nothing is counted for one that is gone."""
    operation = tables.operations.get(message["message_operation_id"])
    if operation is None:
        return 0
    once = [operation["operation_key"], operation["remote_status"]]
    twice = [message[f"message_{name}"] for name in ("tenant_id", "provider", "account")]
    names = [*once, *2 * [*twice, message["expected_remote_job_id"]]]
    return row_bytes + sum(29 for name in _TIMES if operation[name]) + sum(len((name or "").encode()) for name in names)


def _about(tables: Tables, message: Row, text_limit_bytes: int) -> Row:
    """What it is about: nothing where that is gone, and neither a text nor an output with a source that is too long."""
    address = {"operation_id": message["message_operation_id"], "lane": message["lane"], "action": message["action"]}
    found = subject_of(tables, address) or {}
    for name, with_it in (("specification_text", ("specification_text",)), ("source", OUTPUT)):
        text = found.get(name)
        if text is not None and len(text.encode()) > text_limit_bytes:
            found |= dict.fromkeys(with_it)
    return found


def _said(kinds: Sequence[Kind], walks: Mapping[int, Walk], taken: Sequence[Row]) -> list[Row]:
    """Of each wanted kind where its next walk begins, and when its budget opens, should that be what stopped it."""
    slots = {each["slot"] for each in taken}
    said = []
    for kind in kinds:
        count = sum(each["kind"] == kind.number for each in taken)
        opens_in_s = None
        if kind.leave_count is not None and count >= kind.leave_count and kind.opens_in_s is not None:
            opens_in_s = kind.opens_in_s + (0 if kind.per_s is None else count / kind.per_s)
        walk = walks.get(kind.number)
        spot = None if walk is None else walk.next_spot(slots)
        if spot is not None or opens_in_s is not None:
            after_tenant, after_precedence = spot or (None, None)
            said.append(
                {
                    **_UNSAID,
                    "kind": kind.number,
                    "after_tenant": after_tenant,
                    "after_precedence": after_precedence,
                    "opens_in_s": opens_in_s,
                }
            )
    return said
