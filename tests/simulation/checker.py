"""The promises as predicates over three books: the service's ledger, the tables, and the sink. They share no code with what they check.

`findings` is asked when everybody has come to rest; `unsettled` says meanwhile what is still owed.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import promises
from coatcheck.core.identity import operation_text
from coatcheck.sim import PostRecord
from coatcheck.sim.jobs import Job
from promises import FINAL, KNOWN_JOB, Row

CREATED_NOTHING = {"not_sent", "throttled", "rejected"}
REFERENCE = "x-client-reference"
SENT_WITHIN = timedelta(seconds=8.5)
"""SEND_S + TIMEOUT_S + SERVICE_LAG_S + MARGIN_S of the settings here: after a mark nothing arrives later."""
REPLIES = {"throttled", "not_sent"}
"""The only events by which a dispatch goes back to prepared."""


@dataclass(frozen=True, kw_only=True)
class Books:
    """All three, by operation."""

    tables: Mapping[str, Sequence[Row]]
    posts: Sequence[PostRecord]
    jobs: Mapping[str, Job]
    sink: Path
    by_operation: Mapping[str, Mapping[UUID, Sequence[Row]]]
    senders: Mapping[int, UUID]
    """Whose text each POST of the ledger carries; one that ended before its text told is nobody's."""

    @classmethod
    def of(
        cls, tables: Mapping[str, Sequence[Row]], posts: Sequence[PostRecord], jobs: Sequence[Job], sink: Path
    ) -> "Books":
        grouped: dict[str, dict[UUID, list[Row]]] = {}
        for name, rows in tables.items():
            if rows and "operation_id" in rows[0]:
                grouped[name] = defaultdict(list)
                for row in rows:
                    grouped[name][row["operation_id"]].append(row)
        return cls(
            tables=tables,
            posts=posts,
            jobs={job.id: job for job in jobs},
            sink=sink,
            by_operation=grouped,
            senders=_senders(tables, posts),
        )

    def rows(self, table: str, operation: Row) -> Sequence[Row]:
        """What a table has of an operation."""
        return self.by_operation.get(table, {}).get(operation["operation_id"], ())

    def dispatches(self, operation: Row) -> Sequence[Row]:
        return sorted(self.rows("dispatches", operation), key=lambda row: row["number"])

    def posts_of(self, operation: Row) -> list[PostRecord]:
        """The POSTs of this operation's text, which no other operation has."""
        return [post for post in self.posts if self.senders.get(post.order) == operation["operation_id"]]


def _senders(tables: Mapping[str, Sequence[Row]], posts: Sequence[PostRecord]) -> dict[int, UUID]:
    """A POST that was cut short is known by its reference, or by the beginning of its text if no other text begins so."""
    digests = {bytes(row["specification_hash"]).hex(): row["operation_id"] for row in tables["operations"]}
    dispatches = {str(row["dispatch_id"]): row["operation_id"] for row in tables["dispatches"]}
    found = {}
    for post in posts:
        likely = [
            row["operation_id"]
            for row in tables["specifications"]
            if not post.complete and post.body_text and row["specification_text"].startswith(post.body_text)
        ]
        if post.complete and post.body_sha256 in digests:
            found[post.order] = digests[post.body_sha256]
        elif (reference := post.headers.get(REFERENCE)) in dispatches:
            found[post.order] = dispatches[reference]
        elif len(likely) == 1:
            found[post.order] = likely[0]
    return found


def findings(
    tables: Mapping[str, Sequence[Row]], posts: Sequence[PostRecord], jobs: Sequence[Job], sink: Path
) -> list[str]:
    """Everything that is wrong, in words; nothing, if all is well."""
    books = Books.of(tables, posts, jobs, sink)
    found = [finding for look in WHOLE for finding in look(books)]
    for operation in tables["operations"]:
        name = f"{operation['operation_key']} {operation_text(operation['operation_id'])}"
        found += [f"{name}: {finding}" for look in EACH for finding in look(books, operation)]
    return found


# -- S1, S2, S3: what was sent ------------------------------------------------------------------------------------------


def _strangers(books: Books) -> Iterator[str]:
    for post in books.posts:
        if post.order not in books.senders and post.complete:
            yield f"S1: POST {post.order} belongs to no operation"
    if len(books.posts) > len(books.tables["dispatches"]):
        yield f"S1: {len(books.posts)} POSTs after {len(books.tables['dispatches'])} marks"


def _posts(books: Books, operation: Row) -> Iterator[str]:
    """Each dispatch sends at most once, and creates at most once for what was authorised."""
    posts, rows = books.posts_of(operation), books.dispatches(operation)
    sent = [row for row in rows if row["outcome"] != "not_sent"]
    if len(posts) > len(sent):
        yield f"S1: {len(posts)} POSTs by {len(sent)} dispatches that may have been sent"
    created = [post for post in posts if post.created]
    able = [row for row in rows if row["outcome"] not in CREATED_NOTHING | {"proven_absent"}]
    if len(created) > len(able):
        yield f"S2: {len(created)} jobs were created, and {len(able)} dispatches are said to have been able to"
    if len(created) > operation["authorisation"]:
        yield f"S2: {len(created)} jobs were created under {operation['authorisation']} authorisations"


def _arrivals(books: Books, operation: Row) -> Iterator[str]:
    """A mark is committed before its POST, nothing arrives after its time, and nothing of an earlier dispatch after a decision about it."""
    arrived = [(post.order, datetime.fromisoformat(post.at)) for post in books.posts_of(operation)]
    history = books.rows("history", operation)
    marked = sorted(row["at"] for row in history if row["event"] == "dispatch_marked")
    for (order, at), mark in zip(arrived, marked, strict=False):
        if at < mark:
            yield f"S1: POST {order} arrived before its mark was committed"
    for order, at in arrived:
        if not any(mark <= at <= mark + SENT_WITHIN for mark in marked):
            yield f"S1: POST {order} arrived when nothing could arrive any more"
    for row in history:
        if row["event"] in {"proven_absent", "redispatch_authorised"}:
            late = sum(at > row["at"] for _, at in arrived)
            if late > sum(mark > row["at"] for mark in marked):
                yield f"S2: a POST arrived after {row['event']} although it was sent before"


def _references(books: Books, operation: Row) -> Iterator[str]:
    """Where the service repeats a reference, each POST says by which dispatch it was sent."""
    dispatches = {str(row["dispatch_id"]): row for row in books.dispatches(operation)}
    told = Counter[str]()
    for post in books.posts_of(operation):
        reference = post.headers.get(REFERENCE)
        if reference is None:
            continue
        told[reference] += 1
        row = dispatches.get(reference)
        if row is None:
            yield f"S1: POST {post.order} names no dispatch of its operation"
        elif not row["begun_at"] <= datetime.fromisoformat(post.at) <= row["begun_at"] + SENT_WITHIN:
            yield f"S1: POST {post.order} arrived at {post.at}, its mark is of {row['begun_at']}"
        elif row["outcome"] in {"not_sent", "proven_absent"} and post.created:
            yield f"S2: dispatch {row['number']} is {row['outcome']} and created {post.created}"
    yield from (f"S1: {count} POSTs of dispatch {name}" for name, count in told.items() if count > 1)


def _authorisations(books: Books, operation: Row) -> Iterator[str]:
    return promises.authorisations(operation, books.dispatches(operation))


def _doubts(books: Books, operation: Row) -> Iterator[str]:
    for row in books.rows("history", operation):
        if row["from_phase"] == "dispatching" and row["to_phase"] == "prepared" and row["event"] not in REPLIES:
            yield f"S3: {row['event']} led from dispatching to prepared"
        if row["event"] == "became_uncertain" and row["to_phase"] != "uncertain":
            yield f"S3: the end of a lease led from {row['from_phase']} to {row['to_phase']}"


# -- S4, S5: whose a job is ---------------------------------------------------------------------------------------------


def _owners(books: Books) -> Iterator[str]:
    owners = {row["remote_job_id"]: row for row in books.tables["remote_jobs"] if row["role"] == "owner"}
    for operation in books.tables["operations"]:
        job = operation["remote_job_id"]
        if job is not None and owners.pop(job, {}).get("operation_id") != operation["operation_id"]:
            yield f"S5: {job} of {operation['operation_key']} is recorded as another's"
    yield from (f"S4: {job} has an owner that does not know it" for job in owners)


def _jobs(books: Books, operation: Row) -> Iterator[str]:
    """What was created is known, or covered by a dispatch that is in doubt or was spent knowingly; what is known was created for this."""
    created = {post.created for post in books.posts_of(operation) if post.created}
    rows = books.dispatches(operation)
    evident = {row["remote_job_id"] for row in rows} | {operation["remote_job_id"]}
    recorded = {row["remote_job_id"] for row in books.tables["remote_jobs"]}
    lost = created - evident - recorded
    covered = sum(row["outcome"] in {"uncertain", "open"} for row in rows)
    if len(lost) > covered:
        yield f"lost: {sorted(lost)} were created, and {covered} dispatches are in doubt ({operation['phase']})"
    for job in evident - {None} - created:
        yield f"wrong: job {job} was never created for this operation"
    if (operation["phase"] in KNOWN_JOB) > (operation["remote_job_id"] is not None):
        yield f"wrong: {operation['phase']} without a job"


# -- S6, S7: the record -------------------------------------------------------------------------------------------------


def _history(books: Books, operation: Row) -> Iterator[str]:
    return promises.revisions(operation, sorted(books.rows("history", operation), key=lambda row: row["revision"]))


def _outcome(books: Books, operation: Row) -> Iterator[str]:
    """A render that is over ended as the service says, if it did not fail here."""
    job = books.jobs.get(operation["remote_job_id"] or "")
    if job is not None and operation["render_state"] in FINAL - {"failed", job.course.outcome}:
        yield f"wrong: the render {job.course.outcome}, the operation says {operation['render_state']}"


# -- S11: money ---------------------------------------------------------------------------------------------------------


def _money(books: Books, operation: Row) -> Iterator[str]:
    for row in books.dispatches(operation):
        if row["outcome"] in CREATED_NOTHING and row["charged"] != 0:
            yield f"S11: dispatch {row['number']} is {row['outcome']} and was charged {row['charged']}"
        current = row["dispatch_id"] == operation["dispatch_id"]
        if current and operation["render_state"] in FINAL and row["settled_at"] is None:
            yield f"S11: the render is {operation['render_state']} and its dispatch is not settled"


def _allowances(books: Books) -> Iterator[str]:
    tenants = {row["operation_id"]: row["tenant_id"] for row in books.tables["operations"]}
    for allowance in books.tables["allowances"]:
        rows = [
            row
            for row in books.tables["dispatches"]
            if (tenants.get(row["operation_id"]), row["unit"]) == (allowance["tenant_id"], allowance["unit"])
        ]
        held = sum(row["held"] for row in rows if row["settled_at"] is None)
        charged = sum(row["charged"] or 0 for row in rows)
        if (allowance["held"], allowance["charged"]) != (held, charged):
            yield f"S11: {allowance['tenant_id']} holds {allowance['held']} and {allowance['charged']}, not {held} and {charged}"


def _flights(books: Books) -> Iterator[str]:
    """An account with a limit counts what is in flight: marked, in doubt, or known and not final. What its service does not know is with a person."""
    flying = Counter(
        row["account"]
        for row in books.tables["operations"]
        if row["phase"] in {"dispatching", "uncertain"}
        or (row["phase"] in KNOWN_JOB and row["render_state"] not in FINAL | {"missing"})
    )
    for account in books.tables["accounts"]:
        if account["max_in_flight"] is not None and account["in_flight_count"] != flying[account["account"]]:
            yield f"S11: {account['account']} counts {account['in_flight_count']} in flight, not {flying[account['account']]}"


# -- S12: nothing strands -----------------------------------------------------------------------------------------------


def _lanes(books: Books, operation: Row) -> Iterator[str]:
    return promises.lanes(operation, books.rows("outbox", operation), books.rows("deliveries", operation))


def _ownerless(books: Books) -> Iterator[str]:
    known = {row["operation_id"] for row in books.tables["operations"]}
    for table in ("outbox", "history", "dispatches", "deliveries", "snapshots"):
        yield from (
            f"{table}: a row without its operation" for row in books.tables[table] if row["operation_id"] not in known
        )


# -- the sink -----------------------------------------------------------------------------------------------------------


def _outputs(books: Books, operation: Row) -> Iterator[str]:
    job = books.jobs.get(operation["remote_job_id"] or "")
    made = [media.sha256() for media in job.media] if job is not None else []
    return promises.outputs(
        operation, books.rows("deliveries", operation), lambda index: made[index] if index < len(made) else None
    )


def _sink(books: Books) -> Iterator[str]:
    """An object of the sink is an output's of the operation in its path; whoever stored it and was not heard has another try at the same name."""
    names = {operation_text(row["operation_id"]): row for row in books.tables["operations"]}

    def has_another_try(path: Path) -> bool:
        owner = names.get(path.parent.name)
        return owner is not None and owner["delivery_state"] != "delivered"

    return promises.objects(books.sink, books.tables["deliveries"], excused=has_another_try)


# -- what the books do not hold -----------------------------------------------------------------------------------------


def spooled(home: Path) -> Iterator[str]:
    """Ends of POSTs that lie on the disk although everybody had time to save them."""
    for path in sorted((home / "spool").glob("*.jsonl")):
        if path.stat().st_size:
            yield f"lost: {path.name} holds replies that nobody saved"


def sent_by_others(tasks: Iterable[str]) -> Iterator[str]:
    """S9: only a dispatch sends. `tasks` are those that sent and are none."""
    for task in tasks:
        yield f"S9: a POST was sent by {task or 'a task without a name'}"


async def read_by_others(
    operations: Iterable[Row], tenants: Iterable[str], find: Callable[[UUID, str], Awaitable[object]]
) -> AsyncIterator[str]:
    """S10: whoever asks for another tenant's operation gets what an unknown one gets, and its own tenant gets it."""
    for row in operations:
        for tenant_id in tenants:
            if (await find(row["operation_id"], tenant_id) is None) is (tenant_id == row["tenant_id"]):
                yield f"S10: {tenant_id} asked for {row['operation_key']} of {row['tenant_id']}"


def unsettled(operations: Iterable[Row], outbox: Iterable[Row], deliveries: Iterable[Row]) -> Iterator[str]:
    """What is still owed: no operation waits for a dispatch, a decision, a final state or a delivery, unless a person is told of it.

    Neither is a lease open: what a killed worker had in hand comes back when it ends, also of an operation that is over.
    """
    lanes = {(row["operation_id"], row["lane"]): row for row in outbox}
    known = {row["operation_id"]: row for row in operations}
    for row in lanes.values():
        if row["leased_by"] is not None:
            yield f"lane {row['lane']} is leased by {row['leased_by']}"
    for operation in known.values():
        name = f"{operation['operation_key']} is {operation['phase']}, {operation['render_state']}, {operation['delivery_state']}"
        course = lanes.get((operation["operation_id"], 0))
        is_listed = operation["render_state"] == "missing" and course is not None and course["parked_at"] is not None
        if operation["phase"] in {"prepared", "dispatching", "uncertain"} or (
            operation["phase"] in KNOWN_JOB and operation["render_state"] not in FINAL and not is_listed
        ):
            yield name
    for output in deliveries:
        operation = known[output["operation_id"]]
        lane = lanes.get((output["operation_id"], output["output_index"] + 1))
        owed = operation["render_state"] == "succeeded" and operation["phase"] in KNOWN_JOB
        listed = output["state"] == "failed" and lane is not None and lane["parked_at"] is not None
        if owed and output["state"] != "delivered" and not listed:
            yield f"{operation['operation_key']}: output {output['output_index']} is {output['state']}"


WHOLE: Final = (_strangers, _owners, _allowances, _flights, _sink, _ownerless)
"""Asked of all books."""
EACH: Final = (
    _posts,
    _arrivals,
    _references,
    _authorisations,
    _doubts,
    _jobs,
    _history,
    _outcome,
    _money,
    _lanes,
    _outputs,
)
"""Asked of each operation."""
