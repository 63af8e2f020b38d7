"""A database that lies on another server, timeline or table than the last mark's takes no mark until a person resumed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, LiteralString

import pytest

from coatcheck.config import load_settings
from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, RenderState
from coatcheck.seams import NO_FAULTS
from coatcheck.store.door import Status
from coatcheck.store.pauses import listed, pause, register, resume
from coatcheck.store.whereabouts import Moved, check
from store.ground import ACCOUNT, Ground, look
from waiting import until

ELSEWHERE: dict[str, LiteralString] = {
    "another cluster": "update coatcheck.installation set system_identifier = '1'",
    "promoted": "update coatcheck.installation set timeline = timeline + 7",
    "the tables were made anew": "update coatcheck.installation set made_as = 1",
}
moved = pytest.mark.parametrize("told", ELSEWHERE)


def compared(ground: Ground, *, promotion_is_safe: bool = False) -> Moved | None:
    return ground.run(check(ground.line, worker=ground.worker, promotion_is_safe=promotion_is_safe))


def provider(ground: Ground, name: str = "genace") -> dict[str, Any]:
    (row,) = ground.sql("select * from coatcheck.providers where name = %s", name)
    return row


def try_to_mark(ground: Ground, key: str) -> Status:
    mark = ev.Mark(dispatch_id=DispatchId(ground.seams.ids.uuid7()), account=ACCOUNT)
    return ground.happen(ground.enqueue(key), mark).status


def known(ground: Ground, folder: Path, name: str) -> None:
    settings = load_settings({f"COATCHECK_PROVIDERS__{name.upper()}__KIND": "genace"}, folder)
    ground.run(register(ground.line, settings))


def test_where_nothing_changed_nothing_is_paused_or_written(ground: Ground) -> None:
    (before,) = ground.sql("select xmin::text, installation.* from coatcheck.installation")
    assert compared(ground) is None
    assert ground.sql("select xmin::text, installation.* from coatcheck.installation") == [before]
    assert try_to_mark(ground, "k") is Status.APPLIED


@moved
def test_a_mark_is_refused_before_anybody_compared(ground: Ground, told: str) -> None:
    ground.sql(ELSEWHERE[told])
    assert try_to_mark(ground, "k") is Status.PAUSED
    assert provider(ground)["dispatch_paused_at"] is None


@moved
def test_every_account_is_paused_once_and_resumed_for_good(ground: Ground, told: str) -> None:
    ground.sql("insert into coatcheck.providers (name, account, kind) values ('other', 'other', 'genace')")
    ground.sql(ELSEWHERE[told])
    found = compared(ground)
    assert found is not None
    assert (found.told.startswith(told), found.is_safe, found.paused_count) == (True, False, 2)
    row = provider(ground)
    assert row["dispatch_pause_reason"] == f"restored: {found.told}"
    assert row["dispatch_paused_by"] == ground.worker
    assert compared(ground) is None
    assert try_to_mark(ground, "k") is Status.PAUSED
    ground.run(resume(ground.line, "genace", reason="their list was compared", actor="ada", faults=NO_FAULTS))
    assert compared(ground) is None
    assert try_to_mark(ground, "l") is Status.APPLIED
    row = provider(ground)
    assert (row["dispatch_resume_reason"], row["dispatch_resumed_by"]) == ("their list was compared", "ada")
    assert row["dispatch_resumed_at"] is not None
    assert provider(ground, "other")["dispatch_paused_at"] is not None


def test_looks_go_on(ground: Ground) -> None:
    operation_id = ground.enqueue("k")
    job = ground.accept(operation_id)
    ground.sql(ELSEWHERE["promoted"])
    compared(ground)
    assert ground.happen(operation_id, look(job, RenderState.SUCCEEDED)).applied


def test_a_pause_that_was_there_tells_both_reasons_however_often_it_is_restored(ground: Ground) -> None:
    """Whoever rotated the key would otherwise resume what was restored meanwhile, and not know."""
    ground.run(pause(ground.line, "genace", reason="key is being rotated", actor="ada", faults=NO_FAULTS))
    for _ in range(2):
        ground.sql(ELSEWHERE["the tables were made anew"])
        compared(ground)
        row = provider(ground)
        assert row["dispatch_pause_reason"] == (
            "restored: the tables were made anew in this cluster; paused before: key is being rotated"
        )
        assert row["dispatch_paused_by"] == "ada"


def test_a_promotion_that_is_said_to_be_safe_is_noted_and_pauses_nothing(ground: Ground) -> None:
    ground.sql(ELSEWHERE["promoted"])
    found = compared(ground, promotion_is_safe=True)
    assert found is not None
    assert (found.is_safe, found.paused_count) == (True, 0)
    (row,) = ground.sql("select changed_at, restored_at from coatcheck.installation")
    assert (row["changed_at"] is not None, row["restored_at"]) == (True, None)
    assert try_to_mark(ground, "k") is Status.APPLIED


@pytest.mark.parametrize("told", ["another cluster", "the tables were made anew"])
def test_a_restore_is_none_of_the_promotions_that_are_safe(ground: Ground, told: str) -> None:
    ground.sql(ELSEWHERE[told])
    found = compared(ground, promotion_is_safe=True)
    assert found is not None
    assert (found.is_safe, found.paused_count) == (False, 1)


def test_of_workers_that_compare_at_once_one_pauses(ground: Ground) -> None:
    ground.sql(ELSEWHERE["promoted"])
    with (
        Ground(ground.database, "worker-2") as second,
        Ground(ground.database, "worker-3") as third,
        ThreadPoolExecutor(2) as pool,
    ):
        with ground.connection.transaction():
            ground.sql("select from coatcheck.installation for update")
            answers = [pool.submit(compared, each) for each in (second, third)]
            until(lambda: second.lock_waiters() == 2)
        found = [answer.result() for answer in answers]
    assert sorted(each.paused_count for each in found if each is not None) == [1]


def test_a_name_that_the_copy_lost_is_paused_when_it_is_made_known_again(ground: Ground, tmp_path: Path) -> None:
    ground.sql(ELSEWHERE["another cluster"])
    known(ground, tmp_path, "early")
    assert provider(ground, "early")["dispatch_pause_reason"] == "restored: new to this copy: not compared yet"
    compared(ground)
    assert str(provider(ground, "early")["dispatch_pause_reason"]).startswith("restored: another cluster")
    ground.run(resume(ground.line, "early", reason="r", actor="ada", faults=NO_FAULTS))
    known(ground, tmp_path, "early")
    known(ground, tmp_path, "late")
    reasons = {row.name: row.dispatch_pause_reason for row in ground.run(listed(ground.line))}
    assert reasons["early"] is None
    assert str(reasons["late"]).startswith("restored: new to this copy: another cluster")


def test_a_new_name_is_not_paused_where_nothing_was_restored(ground: Ground, tmp_path: Path) -> None:
    known(ground, tmp_path, "late")
    assert provider(ground, "late")["dispatch_paused_at"] is None
