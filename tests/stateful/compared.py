"""Two accounts of the same operations, the store and the books, which must say the same after every step."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import ClassVar
from uuid import UUID, uuid4

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coatcheck.core.identity import parse_operation_id
from coatcheck.core.operation import Operation
from stateful.hands import Hands
from stateful.reference import Books, Record, Seen
from store.ground import ACCOUNT

TENANTS = ("t1", "t2")
DEADLINE_S = 3000.0
LATER_S = 2000.0
"""Longer than any lease and quiet time here, so that what ends and what does not is never a matter of the machine's speed."""
PLACES = st.integers(0, 30)
"""Which of those that there are, counted from the newest, round and round."""
AGAIN = st.sampled_from([True, True, False])
"""Whether it is read anew before something is decided on it."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A read: as the store gave it, and as the books have it."""

    operation: Operation
    seen: Seen

    @property
    def id(self) -> UUID:
        return self.operation.operation_id


class Compared(RuleBasedStateMachine):
    """Operations come in and are read; what is read is kept, so that later steps decide on what was read earlier."""

    hands: ClassVar[Hands]
    counts: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.books = Books()
        self.reads: list[Held] = []
        self.counts["examples"] += 1

    def teardown(self) -> None:
        """The audit finds what the books know of, and nothing else: proofs that turned out to be none, and jobs that two operations name."""
        findings = self.hands.audit()
        self.hands.forget()
        found = {(finding.kind, finding.dispatch_id) for finding in findings}
        assert {one for one in found if one[0] == "displaced"} == {("displaced", name) for name in self._displaced()}
        assert found <= self._told_to_a_person(), findings

    def _displaced(self) -> set[UUID]:
        return {
            name
            for record in self.books.records.values()
            for name, each in record.dispatches.items()
            if each.is_displaced
        }

    def _told_to_a_person(self) -> set[tuple[str, UUID]]:
        disputed = {
            name
            for operation, record in self.books.records.items()
            for name, each in record.dispatches.items()
            if each.job is not None and self.books.jobs[each.job][0] != operation
        }
        return {("displaced", name) for name in self._displaced()} | {("job_disputed", name) for name in disputed}

    @initialize()
    def begin(self) -> None:
        """Every story begins with an operation of each tenant."""
        if self.books.records:
            return
        for tenant in TENANTS:
            self.enqueue(tenant=tenant, key="k", text="1", late=False)

    @rule(
        tenant=st.sampled_from(TENANTS), key=st.sampled_from("kl"), text=st.sampled_from(["1", "2"]), late=st.booleans()
    )
    def enqueue(self, tenant: str, key: str, text: str, *, late: bool) -> None:
        """The same key twice is one operation; with another specification it is refused; another tenant's key is another key."""
        request = {"v": 1, "tenant_id": tenant, "operation_key": key, "provider": ACCOUNT, "estimate": "3"}
        request["specification_text"] = f'{{"p":{text}}}'
        if late:
            (clock,) = self.hands.ann.sql("select coatcheck.lease_now() as at")
            request["dispatch_by_at"] = (clock["at"] + timedelta(seconds=DEADLINE_S)).isoformat()
        (row,) = self.hands.ann.sql("select coatcheck.enqueue_v1(%s::text::jsonb) as answer", json.dumps(request))
        answer = row["answer"]
        assert answer["result"] == self.books.enqueued(tenant, key, text), answer
        self.counts[f"enqueue {answer['result']}"] += 1
        if answer["result"] == "created":
            operation = parse_operation_id(answer["operation_id"])
            assert operation is not None
            deadline = self.books.now + DEADLINE_S if late else None
            record = Record(tenant=tenant, key=key, text=text, estimate=Decimal(3), dispatch_by=deadline)
            self.books.create(operation, record)
            self.read_now(operation)

    def read_now(self, operation: UUID) -> Held:
        held = Held(operation=self.hands.read(operation), seen=self.books.seen(operation))
        self.reads.append(held)
        return held

    def current(self, place: int, *phases: str, again: bool) -> Held:
        """A read from earlier on, or one that is made now: of an operation that is or was in such a phase, if there is one."""
        if again:
            fitting = [operation for operation, record in self.books.records.items() if record.phase in phases]
            ids = fitting or list(self.books.records)
            return self.read_now(ids[place % len(ids)])
        reads = [held for held in self.reads if held.seen.record.phase in phases] or self.reads
        return reads[-1 - place % len(reads)]

    def is_any(self, *phases: str) -> bool:
        """Whether an operation is in such a phase."""
        return any(record.phase in phases for record in self.books.records.values())

    @precondition(lambda self: self.books.records)
    @rule(place=PLACES)
    def read(self, place: int) -> None:
        """Somebody reads, and will decide on that later."""
        ids = list(self.books.records)
        operation = ids[place % len(ids)]
        self.read_now(operation)
        self._is_a_strangers_to_others(operation)

    def _is_a_strangers_to_others(self, operation: UUID) -> None:
        """S10: what is another's is like what never was."""
        tenant = self.books.records[operation].tenant
        (stranger,) = set(TENANTS) - {tenant}
        mine = self.hands.find(operation, tenant)
        assert mine is not None
        assert mine.operation_id == operation
        assert self.hands.find(operation, stranger) is self.hands.find(uuid4(), stranger) is None

    # -- the comparison ------------------------------------------------------------------------------------------------

    @rule()
    def time_passes(self) -> None:
        """Every lease ends, every wait is over, and nothing of what was sent is under way any more."""
        self.hands.move_time(LATER_S)
        self.books.now += LATER_S

    @invariant()
    def the_store_is_as_the_books_say(self) -> None:
        """S2, S4 to S7, S11, S12: all that is there, and nothing else."""
        self.counts["steps"] += 1
        assert _said(self.hands.records()) == {
            operation: _record(record) for operation, record in self.books.records.items()
        }
        assert self.hands.jobs() == self.books.jobs
        assert self.hands.allowances() == {tenant: self.books.money(tenant) for tenant in TENANTS}


def _said(rows: dict[UUID, dict[str, object]]) -> dict[UUID, dict[str, object]]:
    return {
        operation: {name: value for name, value in row.items() if name != "operation_id"}
        for operation, row in rows.items()
    }


def _record(record: Record) -> dict[str, object]:
    """A record of the books in the words of the store's tables."""
    return {
        "phase": record.phase,
        "revision": record.revision,
        "authorisation": record.authorisation,
        "dispatch_id": record.dispatch,
        "render_state": record.render,
        "delivery_state": record.delivery,
        "remote_job_id": record.job,
        "is_cancel_requested": record.is_cancel_requested,
        "revisions": list(range(record.revision + 1)),
        "outputs": {str(index): state for index, state in enumerate(record.outputs)},
        "lanes": {
            str(number): [lane.action, lane.parked, lane.holder is not None] for number, lane in record.lanes.items()
        },
        "dispatches": {
            str(name): [
                each.number,
                each.authorisation,
                each.outcome,
                each.job,
                each.charged is None,
                None if each.charged is None else str(each.charged),
                each.is_displaced,
            ]
            for name, each in record.dispatches.items()
        },
    }
