"""What of the end of a POST goes to the disk while the database is away, and what only the database may have."""

import asyncio
from dataclasses import replace
from pathlib import Path

from coatcheck.core import events as ev
from coatcheck.core.evidence import Exchange, Stage
from coatcheck.core.operation import RemoteJobId
from coatcheck.seams import Faults, Point, Seams
from coatcheck.spool.folder import Folder
from coatcheck.spool.own import Spool
from coatcheck.spool.record import Record, read
from coatcheck.workers.conclusion import Ended, conclude
from coatcheck.workers.spooling import Spooling
from spool.records import INSTALLATION
from store.desks import desk_on
from store.ground import Ground

KEY = "canary-key-77f0"
TEXT = '{"prompt":"canary of a specification"}'


class Seen(Faults):
    """Reads the spool at the moment in which a line was written."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.content = b""

    def reached(self, point: Point, count: int = 0) -> None:
        if point is Point.S2_SPOOLED:
            (file,) = self._folder.all_files()
            self.content = file.read_bytes()


def spooled(ground: Ground, home: Path, exchange: Exchange) -> tuple[bytes, Record]:
    """The line of an accepted POST whose database was away for a moment."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    seen = Seen(Folder(home))

    async def story() -> None:
        async with desk_on(ground.database) as desk, asyncio.timeout(20):
            spool, away = Spool(Folder(home), INSTALLATION, "w"), asyncio.Event()
            away.set()
            desk.spooling = Spooling(spool, away, replace(Seams.real(), faults=seen))
            ended = Ended(
                reply=ev.Accepted(dispatch_id=dispatch_id, remote_job_id=RemoteJobId("job-1")),
                exchange=exchange,
                account="genace",
                number=marked.dispatch_count,
                authorisation=marked.authorisation,
                authorised_by=marked.authorised_by,
                settle_s=1,
                began=desk.seams.clock.boottime() - 3,
                secret=KEY,
            )
            await conclude(desk, marked, ended)
            assert spool.open_lines() == frozenset()
            spool.close()

    asyncio.run(story())
    assert ground.operation(operation_id).phase == "accepted"
    return seen.content, read(seen.content)


def test_a_line_has_what_the_evidence_needs_without_body_and_credential(ground: Ground, tmp_path: Path) -> None:
    exchange = Exchange(
        stage=Stage.BODY_RECEIVED,
        bytes_sent=9,
        bytes_received=9000,
        status=201,
        headers=(("X-Request-Id", f"r-1 {KEY}"), ("Set-Cookie", "canary"), ("Authorization", KEY)),
        body=KEY.encode() + b"x" * 9000,
        complete=True,
        marks_ms=((Stage.BODY_SENT, 3),),
    )
    content, line = spooled(ground, tmp_path, exchange)
    assert b"canary" not in content
    assert line.exchange.headers == (("x-request-id", "r-1 [redacted]"),)
    assert line.exchange.body == b""
    assert replace(line.exchange, headers=(), body=b"") == replace(exchange, headers=(), body=b"")
    assert 3 <= line.begun_ago_s < 30


def test_a_replys_body_which_may_quote_the_specification_is_kept_by_the_database_alone(
    ground: Ground, tmp_path: Path
) -> None:
    body = b'{"job_id":"job-1","echo":' + TEXT.encode() + b"}"
    content, line = spooled(ground, tmp_path, Exchange(stage=Stage.BODY_RECEIVED, status=201, body=body, complete=True))
    assert b"canary" not in content
    assert line.exchange.body == b""
    assert ground.sql("select reply from coatcheck.dispatches") == [{"reply": body}]
