"""Two books are kept of every story: the service's ledger of POSTs, and the database with the sink. The checker reads both and names
every way in which they contradict each other or the invariants. It shares no statement with the code under test."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg

import promises
from coatcheck.sim import PostRecord
from promises import KNOWN_JOB

Row = dict[str, Any]

UNSENT = {"not_sent"}
"""Outcomes by which no byte of a POST can have arrived."""
GIVING_UP = {"redispatch_authorised", "written_off"}
"""Decisions by which a person knowingly pays for a job that may exist."""


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
    return [
        *(finding for look in WHOLE for finding in look(record)),
        *(
            f"{operation['operation_key']} ({operation['operation_id']}): {finding}"
            for operation in record.operations.values()
            for look in EACH
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
    return promises.revisions(operation, record.history[operation["operation_id"]])


def _authorisations(record: Record, operation: Row) -> Iterator[str]:
    return promises.authorisations(operation, record.dispatches[operation["operation_id"]])


def _lanes(record: Record, operation: Row) -> Iterator[str]:
    outbox = record.lanes.get(operation["operation_id"], {})
    return promises.lanes(operation, outbox.values(), record.deliveries[operation["operation_id"]])


def _outputs(record: Record, operation: Row) -> Iterator[str]:
    def made(index: int) -> str | None:
        return record.digests.get((operation["remote_job_id"], index))

    return promises.outputs(operation, record.deliveries[operation["operation_id"]], made)


def _sink(record: Record) -> Iterator[str]:
    rows = [row for rows in record.deliveries.values() for row in rows]
    return promises.objects(record.sink, rows, excused=lambda _: False)


WHOLE: Final = (_strangers, _sink)
"""Asked of the whole record."""
EACH: Final = (_posts, _jobs, _history, _authorisations, _lanes, _outputs)
"""Asked of each operation."""
