"""What a replay finds told or contradicted already is written down once, however often the file is read, and a lost mark is not sent again."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from coatcheck.core import events as ev
from coatcheck.core.operation import OperationId, RemoteJobId
from coatcheck.spool import record as records
from coatcheck.spool.record import Record, written
from store.ground import Ground
from store.host import JOB, Host, accepted, histories, kept
from store.test_failover import forget_mark


def contradicted(ground: Ground) -> tuple[OperationId, Record]:
    """A person adopted another id before the line was replayed."""
    operation_id, end = accepted(ground)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Adopt(actor="p", reason="r", remote_job_id=RemoteJobId("job-9")))
    return operation_id, end


def owned(ground: Ground) -> tuple[OperationId, Record]:
    """The line names the job of another operation."""
    ground.accept(ground.enqueue("owner"), JOB)
    return accepted(ground)


def contradicted_and_owned(ground: Ground) -> tuple[OperationId, Record]:
    ground.accept(ground.enqueue("owner"), JOB)
    return contradicted(ground)


def adopted(ground: Ground) -> tuple[OperationId, Record]:
    """A person adopted the very id, and no end of the POST is saved."""
    operation_id, end = accepted(ground)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Adopt(actor="p", reason="r", remote_job_id=JOB))
    return operation_id, end


def contradicted_and_doubted(ground: Ground) -> tuple[OperationId, Record]:
    """The worker itself saved doubt before it died, and a person adopted another id."""
    operation_id, end = accepted(ground)
    ground.happen(operation_id, ev.Doubted(dispatch_id=end.dispatch_id, cause="unforeseen"))
    ground.happen(operation_id, ev.Adopt(actor="p", reason="r", remote_job_id=RemoteJobId("job-9")))
    return operation_id, end


def contradicted_by_a_no(ground: Ground) -> tuple[OperationId, Record]:
    operation_id, end = contradicted(ground)
    return operation_id, replace(end, reply=ev.Rejected(dispatch_id=end.dispatch_id, status=400))


@pytest.mark.parametrize(
    "case", [contradicted, owned, contradicted_and_owned, contradicted_and_doubted, contradicted_by_a_no, adopted]
)
def test_a_line_is_written_down_once_however_long_its_neighbour_waits(
    ground: Ground, host: Host, monkeypatch: pytest.MonkeyPatch, case: Callable[[Ground], tuple[OperationId, Record]]
) -> None:
    """Every pass reads the whole file: what is told of its first line is not told again."""
    operation_id, end = case(ground)
    _, later = accepted(ground, "k2", "job-2")
    monkeypatch.setattr(records, "VERSION", records.VERSION + 1)
    file = host.left(later)
    monkeypatch.undo()
    file.write_bytes(written(end) + file.read_bytes())
    told_before = len(histories(ground))
    host.replay()
    told, incidents = (
        histories(ground),
        ground.sql("select operation_id, kind, count from coatcheck.incidents order by 1, 2"),
    )
    assert len(told) == told_before + 1
    assert ground.one("dispatches", operation_id)["ended_at"] is not None
    host.replay(times=3)
    assert histories(ground) == told
    assert ground.sql("select operation_id, kind, count from coatcheck.incidents order by 1, 2") == incidents
    assert host.names() == [file.name]


@pytest.mark.parametrize(
    ("reply", "phase"),
    [
        ({"kind": ev.Accepted, "remote_job_id": JOB}, "accepted"),
        ({"kind": ev.Doubted, "cause": "cut"}, "uncertain"),
        ({"kind": ev.Rejected, "status": 400}, "rejected"),
    ],
    ids=["accepted", "doubted", "rejected"],
)
def test_an_end_whose_mark_a_failover_lost_is_not_sent_again(
    ground: Ground, host: Host, reply: dict[str, Any], phase: str
) -> None:
    """The promoted standby says prepared, and the disk knows better, also what was held."""
    operation_id = ground.enqueue("k", estimate="4")
    dispatch_id = ground.mark(operation_id)
    made = reply["kind"](dispatch_id=dispatch_id, **{name: value for name, value in reply.items() if name != "kind"})
    end = replace(kept(ground.operation(operation_id), made), held=Decimal("4.5"), unit="credits")
    forget_mark(ground, operation_id, dispatch_id)
    host.left(end)
    host.replay()
    assert ground.operation(operation_id).phase == phase
    assert ground.one("dispatches", operation_id)["held"] == Decimal("4.5")
    assert host.names() == []
