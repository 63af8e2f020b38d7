"""Two books are kept of every story: the service's ledger of POSTs, and the database with the sink. The checker reads both and names
every way in which they contradict each other or the invariants. It shares no statement with the code under test."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import psycopg

from coatcheck.sim import PostRecord

Row = dict[str, Any]

UNSENT = {"not_sent"}
"""Outcomes by which no byte of a POST can have arrived."""
NOT_SPENT = {"not_sent", "throttled", "proven_absent"}
FINAL = {"succeeded", "failed", "moderated", "cancelled", "expired"}
KNOWN_JOB = {"accepted", "submission_failed"}
GIVING_UP = {"redispatch_authorised", "written_off"}
"""Decisions by which a person knowingly pays for a job that may exist."""
CLOSED_UNSENT = {"rejected", "cancelled", "abandoned"}


@dataclass(frozen=True, kw_only=True)
class Record:
    """Both books at one moment. `marked_at` tells when the marks of an operation were committed, by the server's own clock."""

    operations: dict[UUID, Row]
    dispatches: dict[UUID, list[Row]]
    history: dict[UUID, list[Row]]
    lanes: dict[UUID, dict[int, Row]]
    deliveries: dict[UUID, list[Row]]
    known_jobs: set[str]
    posts: Sequence[PostRecord]
    digests: dict[tuple[str, int], str]
    sink: Path

    @classmethod
    def of(
        cls, connection: psycopg.Connection[Row], posts: Sequence[PostRecord], jobs: Sequence[Row], sink: Path
    ) -> "Record":
        def grouped(table: str, order: str) -> dict[UUID, list[Row]]:
            extra = ", pg_xact_commit_timestamp(xmin) as committed_at" if table == "history" else ""
            found: dict[UUID, list[Row]] = defaultdict(list)
            for row in connection.execute(f"select *{extra} from coatcheck.{table} order by {order}".encode()):
                found[row["operation_id"]].append(row)
            return found

        texts = {
            row["operation_id"]: row["specification_text"]
            for row in connection.execute("select * from coatcheck.specifications")
        }
        return cls(
            operations={
                row["operation_id"]: {**row, "text": texts.get(row["operation_id"])}
                for row in connection.execute("select * from coatcheck.operations")
            },
            dispatches=grouped("dispatches", "number"),
            history=grouped("history", "revision"),
            lanes={key: {row["lane"]: row for row in rows} for key, rows in grouped("outbox", "lane").items()},
            deliveries=grouped("deliveries", "output_index"),
            known_jobs={row["remote_job_id"] for row in connection.execute("select * from coatcheck.remote_jobs")},
            posts=posts,
            digests={(job["id"], each["index"]): each["sha256"] for job in jobs for each in job["outputs"]},
            sink=sink,
        )

    def posts_of(self, operation_id: UUID) -> list[PostRecord]:
        """The POSTs of this operation's text, which no other operation of a story has. One that was cut short shows a beginning of it."""
        operation = self.operations[operation_id]
        digest = bytes(operation["specification_hash"]).hex()
        return [
            post
            for post in self.posts
            if (
                post.body_sha256 == digest
                if post.complete
                else bool(post.body_text) and operation["text"].startswith(post.body_text)
            )
        ]


def findings(record: Record) -> list[str]:
    """Everything that is wrong, in words; nothing, if all is well. Asked once all workers have come to rest."""
    looks = (_posts, _jobs, _history, _authorisations, _lanes, _outputs)
    return [
        *_strangers(record),
        *_sink(record),
        *(
            f"{operation['operation_key']} ({operation['operation_id']}): {finding}"
            for operation in record.operations.values()
            for look in looks
            for finding in look(record, operation)
        ),
    ]


def _strangers(record: Record) -> Iterator[str]:
    """Unexpected: POSTs that no operation asked for."""
    known = {post.order for operation_id in record.operations for post in record.posts_of(operation_id)}
    for post in record.posts:
        # a POST that ended before its body shows no text to know it by
        if post.order not in known and (post.complete or post.body_text):
            yield f"unexpected: POST {post.order} belongs to no operation"
    marks = sum(len(rows) for rows in record.dispatches.values())
    if len(record.posts) > marks:
        yield f"unexpected: {len(record.posts)} POSTs after {marks} marks"


def _posts(record: Record, operation: Row) -> Iterator[str]:
    """S1: each dispatch sends at most once, and its mark was committed before."""
    posts = record.posts_of(operation["operation_id"])
    sent = [each for each in record.dispatches[operation["operation_id"]] if each["outcome"] not in UNSENT]
    if len(posts) > len(sent):
        yield f"duplicated: {len(posts)} POSTs by {len(sent)} dispatches that may have been sent"
    marked = sorted(
        row["committed_at"] for row in record.history[operation["operation_id"]] if row["event"] == "dispatch_marked"
    )
    for number, post in enumerate(posts):
        if number >= len(marked) or marked[number] > datetime.fromisoformat(post.at):
            yield f"unexpected: POST {post.order} arrived before its mark was committed"


def _jobs(record: Record, operation: Row) -> Iterator[str]:
    """Accepted jobs are known, in doubt or given up by a person, and known ids are those of this operation's own jobs."""
    created = {post.created for post in record.posts_of(operation["operation_id"]) if post.created}
    evident = {row["remote_job_id"] for row in record.dispatches[operation["operation_id"]]} | {
        operation["remote_job_id"]
    }
    given_up = sum(row["event"] in GIVING_UP for row in record.history[operation["operation_id"]])
    for job in sorted(created - evident - record.known_jobs)[given_up:]:
        if operation["phase"] != "uncertain":
            yield f"lost: job {job} was created and is neither known nor in doubt ({operation['phase']})"
    for job in evident - {None} - created:
        yield f"wrong: job {job} was never created for this operation"
    if (operation["phase"] in KNOWN_JOB) != (operation["remote_job_id"] is not None):
        yield f"wrong phase: {operation['phase']} with job {operation['remote_job_id']}"


def _history(record: Record, operation: Row) -> Iterator[str]:
    """S6, S7: revisions without a gap, each beginning where the last ended, and nothing after a final state but itself."""
    rows = record.history[operation["operation_id"]]
    if [row["revision"] for row in rows] != list(range(operation["revision"] + 1)):
        yield f"history: revisions {[row['revision'] for row in rows]} of an operation at {operation['revision']}"
    for axis in ("phase", "render_state", "delivery_state"):
        for before, after in pairwise(rows):
            if before[f"to_{axis}"] != after[f"from_{axis}"]:
                yield f"history: {axis} jumps at revision {after['revision']}"
        if rows and rows[-1][f"to_{axis}"] != operation[axis]:
            yield f"history: ends with {axis} {rows[-1][f'to_{axis}']}, the operation says {operation[axis]}"
    for row in rows:
        if row["from_render_state"] in FINAL and row["to_render_state"] != row["from_render_state"]:
            yield f"history: the final {row['from_render_state']} became {row['to_render_state']}"
        if row["from_delivery_state"] == "delivered" and row["to_delivery_state"] != "delivered":
            yield "history: delivered was undone"


def _authorisations(record: Record, operation: Row) -> Iterator[str]:
    """S2: an authorisation is spent at most once."""
    spent = Counter(
        row["authorisation"]
        for row in record.dispatches[operation["operation_id"]]
        if row["outcome"] not in NOT_SPENT and not row["displaced"]
    )
    for authorisation, count in spent.items():
        if count > 1 or authorisation > operation["authorisation"]:
            yield f"duplicated: authorisation {authorisation} was spent {count} times"
    if operation["phase"] == "dispatching":
        yield "wrong phase: still dispatching when all is at rest"


def _lanes(record: Record, operation: Row) -> Iterator[str]:
    """S12: whoever still waits for something has a lane, and nobody keeps a lease."""
    lanes = record.lanes.get(operation["operation_id"], {})
    for lane in lanes.values():
        if lane["leased_by"] is not None:
            yield f"left behind: lane {lane['lane']} is leased by {lane['leased_by']}"
    waits = operation["phase"] not in CLOSED_UNSENT and operation["render_state"] not in FINAL
    if waits and 0 not in lanes:
        yield f"lost: {operation['phase']}, {operation['render_state']}, and no lane"
    for output in record.deliveries[operation["operation_id"]]:
        undelivered = operation["render_state"] == "succeeded" and output["state"] != "delivered"
        if undelivered and operation["phase"] != "abandoned" and output["output_index"] + 1 not in lanes:
            yield f"lost: output {output['output_index']} is {output['state']} and has no lane"


def _outputs(record: Record, operation: Row) -> Iterator[str]:
    """What is delivered lies in the sink, and is what the service made."""
    rows = record.deliveries[operation["operation_id"]]
    if operation["delivered_count"] != sum(row["state"] == "delivered" for row in rows):
        yield f"wrong: {operation['delivered_count']} outputs counted as delivered"
    for row in rows:
        if row["state"] == "delivered":
            made = record.digests.get((operation["remote_job_id"], row["output_index"]))
            kept = hashlib.sha256(Path(unquote(urlsplit(row["uri"]).path)).read_bytes()).hexdigest()
            if not made == kept == row["sha256"]:
                yield f"wrong: output {row['output_index']} is {kept}, recorded as {row['sha256']}, made as {made}"


def _sink(record: Record) -> Iterator[str]:
    """Every object of the sink is somebody's, once."""
    kept = {path for path in record.sink.rglob("*") if path.is_file() and ".incoming" not in path.parts}
    named = [
        Path(unquote(urlsplit(row["uri"]).path)).resolve()
        for rows in record.deliveries.values()
        for row in rows
        if row["state"] == "delivered"
    ]
    if len(named) != len(set(named)):
        yield "wrong: two outputs share an object"
    for path in {each.resolve() for each in kept} - set(named):
        yield f"left behind: {path.name} is nobody's"
