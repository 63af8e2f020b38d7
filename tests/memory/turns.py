"""A walk around the ring of tenants, from where the last claim stopped: `parts/claim_turns.sql`, hop by hop."""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memory.budgets import Kind
from memory.tables import Key, Row, Tables

Spot = tuple[str, int]
"""A tenant and one of its precedences."""
_BEGINNING = -32768
_PASSED = 32767


@dataclass(slots=True, kw_only=True)
class Hop:
    """One step of the walk: where it came to, and whether somebody was met there who gets a place. Not frozen: it is made too often for that."""

    number: int
    is_second_leg: bool
    spot: Spot
    is_met: bool = False
    is_skipped: bool = False
    met_tenant: str | None = None
    fresh_count: int = 0
    other_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message that was met, with its rank among its tenant's."""

    row: Row
    tenant_id: str
    hop: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """All hops of one kind, and the messages that were met."""

    hops: Sequence[Hop]
    turns: Sequence[Turn]
    hop_limit: int

    def next_spot(self, taken: AbstractSet[Key]) -> Spot | None:
        """Where the next walk begins: before the first who was met and got nothing, else where this one ended."""
        passed = [hop.number for hop in self.hops if hop.is_skipped]
        for tenant_id in {turn.tenant_id for turn in self.turns}:
            own = [turn for turn in self.turns if turn.tenant_id == tenant_id]
            if not any((turn.row["operation_id"], turn.row["lane"]) in taken for turn in own):
                passed.append(min(turn.hop for turn in own))
        ends = [hop.number for hop in self.hops if hop.is_met or hop.number == self.hop_limit]
        if not passed and not ends:
            return None
        last = self.hops[min(passed) - 1 if passed else max(ends)]
        # of a tenant that was met what comes after is not due before the next round
        return (last.spot[0], _PASSED) if last.is_met and not passed else last.spot


def turns_of(tables: Tables, kind: Kind, served: AbstractSet[tuple[str, str]], schema_versions: Iterable[int]) -> Walk:
    """Walk, and share the free places among the tenants that were met."""
    hops = list(_hops(tables, kind, served)) if kind.free > 0 else []
    met = [hop for hop in hops if hop.is_met]
    if not met:
        return Walk(hops=hops, turns=[], hop_limit=kind.hop_limit)
    share = math.ceil(kind.free / max(hop.fresh_count + hop.other_count for hop in met))
    found = [(hop, row) for hop in met for row in _due_at(tables, kind, hop.spot, schema_versions)[:share]]
    found.sort(key=lambda each: (each[0].spot, each[1]["visible_at"]))
    ranks: dict[str, int] = {}
    turns = []
    for hop, row in found:
        ranks[hop.spot[0]] = ranks.get(hop.spot[0], 0) + 1
        turns.append(Turn(row=row, tenant_id=hop.spot[0], hop=hop.number, rank=ranks[hop.spot[0]]))
    return Walk(hops=hops, turns=turns, hop_limit=kind.hop_limit)


def _hops(tables: Tables, kind: Kind, served: AbstractSet[tuple[str, str]]) -> Iterable[Hop]:
    """Each step goes to the next tenant and precedence, due or not, and once over the end of the ring to its beginning."""
    start = (kind.want["after_tenant"], kind.want["after_precedence"])
    hop = Hop(number=0, is_second_leg=False, spot=start)
    yield hop
    first_due = _ring(tables, kind)
    while hop.number < kind.hop_limit and hop.fresh_count + hop.other_count < kind.free:
        spot = min((each for each in first_due if each > hop.spot), default=None)
        if hop.is_second_leg and spot is not None and spot > start:
            spot = None
        if spot is None and hop.is_second_leg:
            return
        hop = _step(kind, served, hop, spot, is_due=spot is not None and first_due[spot])
        yield hop


def _ring(tables: Tables, kind: Kind) -> dict[Spot, bool]:
    """Every spot of the kind, and whether something is due there."""
    ring: dict[Spot, bool] = {}
    provider, action, now = kind.want["provider"], kind.want["action"], tables.now()
    for row in tables.outbox.rows.values() if action != "reconcile" else ():
        if row["action"] == action and row["provider"] == provider and row["parked_at"] is None:
            spot = (row["tenant_id"], row["precedence"])
            ring[spot] = ring.get(spot, False) or row["visible_at"] <= now
    return ring


def _step(kind: Kind, served: AbstractSet[tuple[str, str]], hop: Hop, spot: Spot | None, *, is_due: bool) -> Hop:
    tenant_id = None if spot is None else spot[0]
    is_new = tenant_id != hop.met_tenant
    is_fresh = tenant_id is not None and (kind.want["action"], tenant_id) not in served
    has_place = hop.other_count < min(kind.free, kind.want["room"] - kind.want["reserve"])
    is_met = is_due and (not is_new or is_fresh or has_place)
    return Hop(
        number=hop.number + 1,
        is_second_leg=hop.is_second_leg or spot is None,
        spot=spot or ("", _BEGINNING),
        is_met=is_met,
        is_skipped=is_due and not is_met,
        met_tenant=tenant_id if is_met else hop.met_tenant,
        fresh_count=hop.fresh_count + (is_met and is_new and is_fresh),
        other_count=hop.other_count + (is_met and is_new and not is_fresh),
    )


def _due_at(tables: Tables, kind: Kind, spot: Spot, schema_versions: Iterable[int]) -> list[Row]:
    now = tables.now()
    rows = [
        row
        for row in tables.outbox.rows.values()
        if row["visible_at"] <= now
        and row["action"] == kind.want["action"]
        and row["provider"] == kind.want["provider"]
        and (row["tenant_id"], row["precedence"]) == spot
        and row["parked_at"] is None
        and (row["leased_by"] is None or row["lease_count"] < 2)
        and row["account"] in (None, kind.want["account"])
        and row["schema_version"] in schema_versions
        and kind.is_spaced(row, now)
    ]
    return sorted(rows, key=lambda row: row["visible_at"])
