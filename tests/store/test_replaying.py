"""What a dead worker left in its spool is saved as if the worker had lived: once, whatever happened meanwhile, and however often it is tried."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from coatcheck.core import events as ev
from coatcheck.seams import Faults, Point, Seams
from coatcheck.spool import record as records
from coatcheck.spool.own import Spool
from coatcheck.spool.record import written
from store.ground import Ground
from store.host import JOB, REPLY, Host, accepted, histories, kept


@pytest.mark.parametrize("swept", [False, True])
def test_an_id_is_saved_with_its_evidence_and_the_file_is_gone(ground: Ground, host: Host, swept: bool) -> None:
    operation_id, end = accepted(ground)
    host.left(end)
    if swept:
        ground.happen(operation_id, ev.LeaseEnded())
    host.replay()
    after = ground.operation(operation_id)
    assert (after.phase, after.remote_job_id) == ("accepted", JOB)
    dispatch = ground.one("dispatches", operation_id)
    assert (dispatch["outcome"], dispatch["stage"], dispatch["reply"]) == ("accepted", "body_received", REPLY)
    assert ground.one("outbox", operation_id)["action"] == "observe"
    assert host.names() == []


@pytest.mark.parametrize(
    ("reply", "phase"),
    [
        ({"kind": ev.FailedWithId, "remote_job_id": JOB}, "submission_failed"),
        ({"kind": ev.Rejected, "status": 400}, "rejected"),
        ({"kind": ev.Throttled, "retry_after_s": 1.0, "delay_s": 1.0}, "prepared"),
        ({"kind": ev.NotSent, "cause": "refused"}, "prepared"),
        ({"kind": ev.Doubted, "cause": "cut", "candidate": JOB}, "uncertain"),
    ],
    ids=lambda given: given if isinstance(given, str) else given["kind"].__name__,
)
def test_every_end_is_saved_and_the_second_time_nothing_changes(
    ground: Ground, host: Host, reply: dict[str, Any], phase: str
) -> None:
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    made = reply["kind"](dispatch_id=dispatch_id, **{name: value for name, value in reply.items() if name != "kind"})
    end = kept(ground.operation(operation_id), made)
    host.left(end)
    host.replay()
    assert ground.operation(operation_id).phase == phase
    before = histories(ground)
    host.left(end)
    host.replay(times=2)
    assert histories(ground) == before
    assert host.names() == []


def test_two_workers_at_once_save_each_end_once(ground: Ground, host: Host) -> None:
    ends = [accepted(ground, f"k{number}", f"job-{number}") for number in range(20)]
    for number, (_, end) in enumerate(ends):
        host.left(end, worker=f"dead-{number}")
    host.replay_at_once("alive-1", "alive-2", "alive-3")
    host.replay()
    assert {ground.operation(operation_id).phase for operation_id, _ in ends} == {"accepted"}
    assert {ground.operation(operation_id).revision for operation_id, _ in ends} == {2}
    assert host.names() == []


def test_the_last_line_may_be_cut_at_any_byte(ground: Ground, host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """The whole lines before it are saved, and what is left of it is kept for a person and told once."""
    whole_id, whole = accepted(ground)
    cut_id, cut = accepted(ground, "k2", "job-2")
    file = host.left(whole)
    first, last = file.read_bytes(), written(cut)
    aside = file.with_suffix(".damaged")

    async def story() -> None:
        async with host.replayers("alive-1") as started:
            for length in range(1, len(last) - 1):
                file.write_bytes(first + last[:length])
                await started().replay()
                assert host.names() == [aside.name]
                assert aside.read_bytes() == first + last[:length]
                aside.unlink()

    asyncio.run(story())
    assert (ground.operation(whole_id).phase, ground.operation(whole_id).revision) == ("accepted", 2)
    assert ground.operation(cut_id).phase == "dispatching"
    told = [each.__dict__ for each in caplog.records if "damaged" in each.message]
    assert len(told) == len(last) - 2
    assert {(each["file"], each["offset"]) for each in told} == {(file.name, len(first))}
    assert "job-2" not in caplog.text
    file.write_bytes(first + last.rstrip(b"\n"))
    host.replay()
    assert ground.operation(cut_id).phase == "accepted"
    assert host.names() == []


def test_what_follows_a_damaged_line_is_saved(ground: Ground, host: Host) -> None:
    operation_id, end = accepted(ground)
    file = host.left(end)
    file.write_bytes(b'{"v":1,"sha\n' + file.read_bytes() + b"\0\0\0\0")
    host.replay()
    assert ground.operation(operation_id).phase == "accepted"
    assert host.names() == [file.with_suffix(".damaged").name]


def test_a_spool_of_another_installation_is_left_alone(ground: Ground, host: Host) -> None:
    operation_id, end = accepted(ground)
    file = host.left(end, installation=UUID(int=8))
    content = file.read_bytes()
    host.replay()
    assert ground.operation(operation_id).phase == "dispatching"
    assert file.read_bytes() == content


def test_a_spool_of_a_living_worker_is_left_to_it(ground: Ground, host: Host) -> None:
    operation_id, end = accepted(ground)
    owner = Spool(host.folder, host.installation, "alive-2")
    owner.append(end)
    host.replay()
    assert ground.operation(operation_id).phase == "dispatching"
    owner.close()
    host.replay()
    assert ground.operation(operation_id).phase == "accepted"


def test_a_line_of_another_version_waits_and_its_neighbours_do_not(
    ground: Ground, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation_id, end = accepted(ground)
    later_id, later = accepted(ground, "k2", "job-2")
    monkeypatch.setattr(records, "VERSION", records.VERSION + 1)
    file = host.left(later)
    monkeypatch.undo()
    content = file.read_bytes() + written(end)
    file.write_bytes(content)
    host.replay(times=2)
    assert ground.operation(operation_id).revision == 2
    assert ground.operation(later_id).phase == "dispatching"
    assert file.read_bytes() == content


def test_a_file_that_cannot_be_opened_does_not_hold_up_the_others(ground: Ground, host: Host) -> None:
    host.folder.prepare()
    (host.folder.path / f"{host.installation}.aaa.1.jsonl").symlink_to("nowhere")
    operation_id, end = accepted(ground)
    host.left(end)
    host.replay()
    assert ground.operation(operation_id).phase == "accepted"


def test_an_end_that_was_kept_before_a_cancel_was_judged_is_judged_again(ground: Ground, host: Host) -> None:
    """Its evidence is saved and its conclusion was refused; then the worker died."""
    operation_id = ground.enqueue("k")
    dispatch_id = ground.mark(operation_id)
    marked = ground.operation(operation_id)
    reply = ev.Throttled(dispatch_id=dispatch_id, retry_after_s=None)
    step = ground.step(operation_id, reply)
    ground.happen(operation_id, ev.Cancel(actor="p", reason="r"))
    assert ground.save(step)[0].status == "evidence"
    assert ground.operation(operation_id).phase == "dispatching"
    host.left(kept(marked, reply))
    host.replay()
    assert ground.operation(operation_id).phase == "cancelled"


def test_an_id_that_comes_after_another_dispatch_began_is_an_orphan_once(ground: Ground, host: Host) -> None:
    operation_id, end = accepted(ground)
    ground.happen(operation_id, ev.LeaseEnded())
    ground.happen(operation_id, ev.Redispatch(actor="p", reason="r", quiescent_at=None))
    ground.mark(operation_id)
    host.left(end)
    host.replay()
    assert ground.operation(operation_id).phase == "dispatching"
    assert ground.one("remote_jobs", operation_id, "role") == {"role": "orphan"}
    before = histories(ground)
    host.left(end)
    host.replay()
    assert histories(ground) == before


@pytest.mark.breaks("S2", "S7")
def test_an_end_whose_operation_is_gone_is_kept_as_evidence(ground: Ground, host: Host) -> None:
    operation_id, end = accepted(ground)
    host.left(end)
    for table in ("operations", "dispatches", "outbox", "history", "specifications", "allowances", "accounts"):
        ground.connection.execute(f"delete from coatcheck.{table}".encode())
    host.replay(times=2)
    dispatch = ground.one("dispatches", operation_id)
    assert (dispatch["displaced"], dispatch["remote_job_id"]) == (True, JOB)
    assert ground.one("remote_jobs", operation_id, "role") == {"role": "orphan"}
    assert host.names() == []


def test_a_line_that_the_database_refuses_waits_and_its_neighbours_do_not(ground: Ground, host: Host) -> None:
    refused_id, refused = accepted(ground)
    operation_id, end = accepted(ground, "k2", "job-2")
    file = host.left(refused, end)
    ground.sql("alter table coatcheck.remote_jobs add constraint struck check (remote_job_id <> 'job-1')")
    host.replay()
    assert ground.operation(refused_id).phase == "dispatching"
    assert ground.operation(operation_id).phase == "accepted"
    assert host.names() == [file.name]
    ground.sql("alter table coatcheck.remote_jobs drop constraint struck")
    host.replay()
    assert ground.operation(refused_id).phase == "accepted"
    assert host.names() == []


class Lost(Faults):
    """The connection to the database is lost just before the `nth` end is saved."""

    def __init__(self, ground: Ground, nth: int) -> None:
        self._ground = ground
        self._left = nth

    def reached(self, point: Point, count: int = 0) -> None:
        self._left -= point is Point.D12_SAVE_COMMIT_SENT
        if self._left == 0 and point is Point.D12_SAVE_COMMIT_SENT:
            self._ground.sql(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'coatcheck replay'"
                " and datname = current_database()"
            )


def test_a_database_that_goes_away_in_the_middle_puts_the_rest_off(
    ground: Ground, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    ends = [accepted(ground, f"k{number}", f"job-{number}") for number in range(3)]
    file = host.left(*(end for _, end in ends))

    async def story() -> None:
        async with host.replayers("alive-1", replace(Seams.real(), faults=Lost(ground, 2))) as started:
            await started().replay()

    asyncio.run(story())
    assert [ground.operation(operation_id).phase for operation_id, _ in ends] == ["accepted", *["dispatching"] * 2]
    assert host.names() == [file.name]
    assert "replay put off" in caplog.text
    host.replay()
    assert {(ground.operation(one).phase, ground.operation(one).revision) for one, _ in ends} == {("accepted", 2)}
    assert host.names() == []
