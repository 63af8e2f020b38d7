"""Tenants take turns: an equal share of each claim's room for everyone with something due, whatever one tenant's backlog."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import LiteralString
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import postgres
from coatcheck.core.actions import Action
from coatcheck.queue.leases import Message, Wanted
from coatcheck.queue.turns import BEGINNING, Turns
from store.ground import ACCOUNT, Ground
from store.test_plans import Planner

ROWS: LiteralString = """
insert into coatcheck.outbox (operation_id, lane, action, provider, expected_revision, visible_at, tenant_id, precedence)
select coatcheck.new_id(), 0, %s, %s, 0, coatcheck.lease_now() + make_interval(secs => %s + n * 1e-3), %s, %s
from generate_series(1, %s) as n"""
EARLIER_S = -3600.0
LATER_S = 3600.0


class Ring(Ground):
    """A ground with rows of many tenants, and one claimer that remembers whose turn it was."""

    def __init__(self, database: postgres.Database, worker: str = "worker-1") -> None:
        super().__init__(database, worker)
        self.turns = Turns()

    def rows(
        self,
        tenant_id: str,
        count: int,
        *,
        in_s: float = EARLIER_S,
        priority: int = 0,
        action: Action = Action.DISPATCH,
        provider: str = "genace",
    ) -> None:
        """Messages of one tenant, `in_s` seconds from now, a millisecond apart."""
        self.sql(ROWS, action, provider, in_s, tenant_id, -priority, count)

    def wanted(self, room: int, *, reserve: int = 0, providers: Sequence[str] = ("genace",)) -> list[Wanted]:
        """Room for dispatches, for each of an account's names."""
        return [
            Wanted(action=Action.DISPATCH, provider=each, account=ACCOUNT, room=room, lease_s=90, reserve=reserve)
            for each in providers
        ]

    def take(self, room: int, *, reserve: int = 0, providers: Sequence[str] = ("genace",)) -> list[Message]:
        """One claim; what it brings is in hand from now on."""
        wanted = self.wanted(room, reserve=reserve, providers=providers)
        found = self.run(self.leases.claim(wanted, doubts=0, doubt_lease_s=30, turns=self.turns))
        for message in found:
            self.turns.take(message.action, message.tenant_id)
        return found

    def finish(self, messages: Sequence[Message]) -> None:
        """What was in hand is done and gone."""
        self.sql("delete from coatcheck.outbox where operation_id = any(%s)", [each.operation_id for each in messages])
        for message in messages:
            self.turns.give_back(message.action, message.tenant_id)

    def shares(self, room: int, *, reserve: int = 0) -> Counter[str]:
        """How many of a claim's messages each tenant got; they are done then."""
        found = self.take(room, reserve=reserve)
        self.finish(found)
        return Counter(each.tenant_id for each in found)


@pytest.fixture
def ring(database: postgres.Database) -> Iterator[Ring]:
    with Ring(database) as made:
        yield made


def test_whoever_has_something_due_gets_an_equal_share_whatever_one_has_waiting(ring: Ring) -> None:
    ring.rows("flood", 2000, in_s=10 * EARLIER_S)
    for name in ("b", "c", "z"):
        ring.rows(name, 20)
    assert ring.shares(20) == {"flood": 5, "b": 5, "c": 5, "z": 5}
    # what somebody has no use for is the others'
    ring.finish([each for each in ring.take(1000) if each.tenant_id != "flood"])
    ring.rows("b", 2)
    assert ring.shares(20) == {"flood": 18, "b": 2}


def test_with_room_for_one_tenants_alternate_from_where_the_last_claim_stopped(ring: Ring) -> None:
    for name in ("c", "a", "b"):
        ring.rows(name, 500 if name == "a" else 3)
    served = [next(iter(ring.shares(1))) for _ in range(9)]
    assert served == ["a", "b", "c"] * 3
    assert [next(iter(ring.shares(1))) for _ in range(3)] == ["a"] * 3


def test_rooms_that_do_not_divide_are_evened_out_by_the_next_claims(ring: Ring) -> None:
    for name in ("a", "b", "c", "d", "e"):
        ring.rows(name, 300)
    total: Counter[str] = sum((ring.shares(3) for _ in range(50)), Counter())
    assert total == dict.fromkeys("abcde", 30)


def test_many_priorities_are_no_way_to_a_larger_share(ring: Ring) -> None:
    for priority in range(40):
        ring.rows("crafty", 50, priority=priority)
    ring.rows("plain", 500)
    total: Counter[str] = sum((ring.shares(4) for _ in range(20)), Counter())
    assert abs(total["crafty"] - total["plain"]) <= 4, total


def test_within_a_tenant_the_higher_priority_goes_first_and_the_earlier_of_equals(ring: Ring) -> None:
    keys = {"low early": (-5, 1), "high late": (7, 3), "high early": (7, 2), "middle": (0, 0)}
    for key, (priority, second) in keys.items():
        one = ring.enqueue(key, priority=priority)
        ring.sql(
            "update coatcheck.outbox set visible_at = now() - interval '1 h' + make_interval(secs => %s) where operation_id = %s",
            second,
            one,
        )
    order = [message.operation_id for _ in keys for message in ring.take(1)]
    names = {row["operation_id"]: row["operation_key"] for row in ring.sql("select * from coatcheck.operations")}
    assert [names[each] for each in order] == ["high early", "high late", "middle", "low early"]


def test_not_before_is_never_early_and_holds_up_nobody_behind_it(database: postgres.Database, ring: Ring) -> None:
    (row,) = ring.sql("select now() + interval '1 h' as later")
    first = ring.enqueue("first, later", priority=9, not_before_at=row["later"].isoformat())
    now = ring.enqueue("now")
    assert [each.operation_id for each in ring.take(5)] == [now]
    database.move_time(3590)
    ring.sql("delete from coatcheck.outbox where operation_id = %s", now)
    assert ring.take(5) == []
    database.move_time(11)
    assert [each.operation_id for each in ring.take(5)] == [first]


def test_a_ring_longer_than_one_walk_is_walked_whole_and_everybody_is_served_once_before_anybody_again(
    ring: Ring,
) -> None:
    names = {f"t{number:03}" for number in range(150)}
    for name in names:
        ring.rows(name, 3)
    assert sum((ring.shares(50) for _ in range(5)), Counter()).keys() == names
    total: Counter[str] = sum((ring.shares(10) for _ in range(15)), Counter())
    assert max(total.values()) <= 2


def test_a_crowd_with_nothing_due_keeps_nobody_for_long_from_a_turn(ring: Ring) -> None:
    """Behind and before a hundred tenants, and behind a hundred priorities of their own, all of them in the future."""
    for number in range(100):
        ring.rows(f"m{number:03}", 1, in_s=LATER_S)
        ring.rows("last", 1, in_s=LATER_S, priority=number)
    ring.rows("aaa flood", 300, in_s=10 * EARLIER_S)
    ring.rows("last", 2, priority=-1)
    ring.rows("zzz", 2)
    served: Counter[str] = sum((ring.shares(5) for _ in range(15)), Counter())
    assert served == {"aaa flood": 71, "last": 2, "zzz": 2}


def test_a_crowd_of_thousands_with_nothing_due_is_passed_by_in_a_few_claims_of_a_backlog(ring: Ring) -> None:
    """Scheduled for tomorrow, by tenants or in priorities of one: a small tenant behind them waits for a few places, not for hundreds."""
    ring.sql(
        "insert into coatcheck.outbox (operation_id, lane, action, provider, expected_revision, visible_at, tenant_id, precedence)"
        " select coatcheck.new_id(), 0, 'dispatch', 'genace', 0, now() + interval '1 d', case when n % 2 = 0 then 'crafty' else 'm' || n end, n"
        " from generate_series(1, 3000) as n"
    )
    ring.rows("flood", 300, in_s=10 * EARLIER_S)
    ring.rows("zzz", 3)
    served = [next(iter(ring.shares(1))) for _ in range(24)]
    assert served.count("zzz") == 3, served


def test_messages_from_before_there_were_turns_take_one_together(ring: Ring) -> None:
    ring.rows("flood", 500, in_s=10 * EARLIER_S)
    ring.sql(
        "insert into coatcheck.outbox (operation_id, lane, action, provider, expected_revision, visible_at)"
        " select coatcheck.new_id(), 0, 'dispatch', 'genace', 0, now() from generate_series(1, 30)"
    )
    assert ring.shares(20) == {"flood": 10, "": 10}


@pytest.mark.parametrize(
    "names",
    [
        ("a", "A", "\N{LATIN SMALL LETTER A WITH ACUTE}", "a\N{COMBINING ACUTE ACCENT}", "a "),
        ("-", "_", " ", "\N{ZERO WIDTH SPACE}", "\N{FAMILY}"),
        ("\N{LATIN SMALL LETTER SHARP S}", "ss", "SS", "10", "9"),
        ("\U0010ffff", "\N{FULLWIDTH LATIN SMALL LETTER A}", "%s", "\\", "'"),
    ],
)
def test_names_that_a_collation_finds_alike_or_odd_are_tenants_of_their_own(ring: Ring, names: tuple[str, ...]) -> None:
    for name in names:
        ring.rows(name, 100)
    total: Counter[str] = sum((ring.shares(2) for _ in range(2 * len(names) + 5)), Counter())
    assert set(total.values()) <= {5, 6, 7}, total
    assert total.keys() == set(names)


# -- the reserve --------------------------------------------------------------------------------------------------------


def test_the_reserve_is_for_the_first_message_of_whoever_has_nothing_in_hand(ring: Ring) -> None:
    ring.rows("flood", 500, in_s=10 * EARLIER_S)
    assert len(ring.take(16, reserve=2)) == 14
    # a worker full of one tenant's work
    assert ring.take(2, reserve=2) == []
    ring.rows("b", 5)
    assert [each.tenant_id for each in ring.take(2, reserve=2)] == ["b"]
    ring.rows("c", 5)
    assert [each.tenant_id for each in ring.take(1, reserve=1)] == ["c"]
    ring.rows("d", 5)
    assert ring.take(0) == []


@pytest.mark.parametrize(("room", "reserve"), [(1, 0), (1, 1), (2, 1), (5, 2), (9, 2)])
def test_a_claim_never_takes_more_than_there_are_places(ring: Ring, room: int, reserve: int) -> None:
    for number in range(12):
        ring.rows(f"t{number}", 4)
    assert len(ring.take(room, reserve=min(room, reserve))) == room


# -- several -----------------------------------------------------------------------------------------------------------


def test_workers_that_claim_in_turn_share_every_tenant_and_take_nothing_twice(
    database: postgres.Database, ring: Ring
) -> None:
    for name in ("a", "b", "c"):
        ring.rows(name, 40)
    with Ring(database, "worker-2") as other:
        found = [message for _ in range(20) for each in (ring, other) for message in each.take(3)]
    assert len({each.slot for each in found}) == 120
    # however far they got, nobody was ahead
    for middle in range(3, 120, 3):
        counts = Counter(each.tenant_id for each in found[:middle])
        assert max(counts.values()) - min(counts[name] for name in "abc") <= 1


def test_each_of_an_accounts_names_has_a_ring_of_its_own(ring: Ring) -> None:
    for provider, name in itertools.product(("genace", "nightly"), ("a", "b")):
        ring.rows(name, 50, provider=provider)
    rounds = [ring.take(1, providers=("genace", "nightly")) for _ in range(4)]
    served = [{each.provider: each.tenant_id for each in found} for found in rounds]
    assert served == [{"genace": name, "nightly": name} for name in "abab"]


# -- what a claim costs --------------------------------------------------------------------------------------------------


def pages(ring: Ring, room: int) -> int:
    """The pages that a claim touches, which is carried out and undone: as its session plans it, and as a server chooses behind a pooler; the more of both."""
    planner = Planner(ring, crowd=())
    wanted = [
        Wanted(action=action, provider="genace", account=ACCOUNT, room=room, lease_s=30)
        for action in (Action.DISPATCH, Action.OBSERVE)
    ]
    parameters = planner.recorded(planner.leases.claim(wanted, doubts=100, doubt_lease_s=30, turns=ring.turns))
    return max(planner.plan("queue", "claim", parameters, generic=generic, run=True).pages for generic in (True, False))


def test_tenants_with_only_looks_to_come_cost_a_claim_one_short_walk(ring: Ring) -> None:
    """However many there are."""
    costs = {}
    for count in (300, 3000):
        for number in range(count):
            ring.rows(f"t{number:04}", 1, in_s=LATER_S, action=Action.OBSERVE)
        ring.sql("vacuum analyze coatcheck.outbox")
        costs[count] = pages(ring, 100)
    assert costs[3000] < 250
    assert costs[3000] < 2 * costs[300]


def test_a_backlog_does_not_make_a_claim_dearer(ring: Ring) -> None:
    for name, count in (("small", 50), ("flood", 500)):
        ring.rows(name, count)
    ring.sql("vacuum analyze coatcheck.outbox")
    before = pages(ring, 20)
    ring.rows("flood", 40_000)
    ring.sql("vacuum analyze coatcheck.outbox")
    assert pages(ring, 20) < before + 100


def test_a_burst_that_no_statistics_tell_of_is_walked_by_index(ring: Ring) -> None:
    """As after the first enqueues of the day: the table was empty when it was analysed last, or never was."""
    ring.sql("alter table coatcheck.outbox set (autovacuum_enabled = false)")
    for number in range(40):
        ring.rows(f"t{number:02}", 1, in_s=LATER_S)
    ring.rows("flood", 20_000)
    assert pages(ring, 20) < 1500


# -- against a model -----------------------------------------------------------------------------------------------------

TENANTS = st.sampled_from(["", "a", "B", "b", "\N{LATIN SMALL LETTER E WITH ACUTE}", "z"])
BATCHES = st.lists(st.tuples(TENANTS, st.integers(1, 6), st.integers(-2, 2), st.booleans()), max_size=8)
ROUNDS = st.lists(st.tuples(BATCHES, st.integers(1, 7)), min_size=1, max_size=5)


class Model:
    """What is due by tenant, in each one's order."""

    def __init__(self) -> None:
        self.due: dict[UUID, tuple[str, int, object]] = {}

    def check(self, found: Sequence[Message], room: int) -> None:
        """No place is left empty, shares are equal, and each tenant's come in its order."""
        assert len(found) == min(room, len(self.due))
        waiting = Counter(tenant_id for tenant_id, _, _ in self.due.values())
        got = Counter(each.tenant_id for each in found)
        tenants = len(waiting)
        for tenant_id, count in waiting.items():
            assert got[tenant_id] >= min(count, room // tenants), (tenant_id, got, waiting)
            mine = sorted((precedence, at) for owner, precedence, at in self.due.values() if owner == tenant_id)
            taken = sorted(self.due[each.operation_id][1:] for each in found if each.tenant_id == tenant_id)
            assert taken == mine[: len(taken)] or room > tenants, (tenant_id, taken)
        for each in found:
            del self.due[each.operation_id]


@settings(max_examples=25)
@given(ROUNDS)
def test_any_course_of_claims_is_fair_to_everyone_and_leaves_no_place_empty(
    module_ring: Ring, rounds: list[tuple[list[tuple[str, int, int, bool]], int]]
) -> None:
    ring, model = module_ring, Model()
    ring.turns = Turns()
    ring.sql("delete from coatcheck.outbox")
    for batches, room in rounds:
        for tenant_id, count, priority, is_due in batches:
            ring.rows(tenant_id, count, priority=priority, in_s=EARLIER_S if is_due else LATER_S)
        rows = ring.sql("select * from coatcheck.outbox where visible_at <= now()")
        model.due = {row["operation_id"]: (row["tenant_id"], row["precedence"], row["visible_at"]) for row in rows}
        found = ring.take(room)
        model.check(found, room)
        ring.finish(found)


@pytest.fixture(scope="module")
def module_ring(template: postgres.Template) -> Iterator[Ring]:
    with template.copy() as database, Ring(database) as made:
        yield made


def test_a_claimer_begins_before_everybody_and_keeps_only_the_last_word_on_budgets() -> None:
    turns = Turns()
    assert turns.after(Action.DISPATCH, "genace") == BEGINNING
    turns.learn(Action.DISPATCH, "genace", after=("t", 3), opens_in_s=2.0)
    turns.learn(Action.OBSERVE, "genace", after=None, opens_in_s=1.0)
    assert (turns.after(Action.DISPATCH, "genace"), turns.opens_in_s) == (("t", 3), 1.0)
    turns.asked()
    assert (turns.after(Action.DISPATCH, "genace"), turns.opens_in_s) == (("t", 3), None)
