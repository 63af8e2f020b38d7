"""Adopting: the remote job that a person names becomes the operation's only if it cannot be anybody else's, and else nothing changes."""

import json
import threading
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coatcheck import (
    NotFound,
    OrphanResolved,
    OutsideWindow,
    Overlap,
    RemoteJobElsewhere,
    RemoteJobInvalid,
    RemoteJobOwned,
    RemoteJobUnknown,
    RemoteJobUnreadable,
    SettingInvalid,
    StaleRevision,
    Unavailable,
    WrongPhase,
)
from coatcheck.app.reconciling import Decision
from coatcheck.app.story import flat
from coatcheck.core import events as ev
from coatcheck.core.foreign import usable_id
from coatcheck.core.operation import OperationId, RemoteJobId
from faults.stage import QUICK
from reconcile.scene import Scene
from store.ground import Ground

REASON = "seen in the service's ledger"
UNKNOWN = "op_00000000000000000000000001"


def adopt(scene: Scene, operation: str, job: str, changes: Mapping[str, str] = {}, *, force: bool = False) -> Decision:
    return scene.decides(lambda eve: eve.adopt(operation, job, reason=REASON, force=force), **changes)


def refused(scene: Scene, kind: type[Exception], attempt: Callable[[], object]) -> str:
    """The message of an attempt that is refused and changes nothing."""
    before, posts = scene.dump(), len(scene.sim.posts)
    with pytest.raises(kind) as caught:
        attempt()
    assert scene.dump() == before
    assert len(scene.sim.posts) == posts
    return str(caught.value)


def test_a_worker_killed_in_flight_leaves_a_doubt_that_an_adopted_job_ends_and_delivers(scene: Scene) -> None:
    operation = scene.killed()
    assert scene.money() == (5, 0)
    job = scene.job_of(operation)
    made = adopt(scene, operation, job)
    assert (made.event, made.result, made.operation.phase, made.operation.remote_job_id) == (
        "adopted",
        "done",
        "accepted",
        job,
    )
    assert made.operation.revision == scene.standing(operation)["revision"]
    assert (made.spent, made.released, made.authorises) == (Decimal(0), Decimal(0), False)
    told = scene.one(
        "select actor, reason, from_phase, to_phase from coatcheck.history where event = 'adopted' and revision = %s",
        made.operation.revision,
    )
    assert told == {"actor": "eve", "reason": REASON, "from_phase": "uncertain", "to_phase": "accepted"}
    scene.work()
    end = scene.standing(operation)
    assert (end["phase"], end["render_state"], end["delivery_state"]) == ("accepted", "succeeded", "delivered")
    assert (scene.posts_of(operation), scene.money()) == (1, (0, 5))


def test_what_is_no_id_is_refused_before_anything_is_asked(scene: Scene) -> None:
    operation = scene.in_doubt()
    assert "expected an id of 1 to 512 characters" in refused(
        scene, RemoteJobInvalid, lambda: adopt(scene, operation, "job\n1")
    )
    refused(scene, RemoteJobInvalid, lambda: adopt(scene, operation, ""))
    refused(scene, RemoteJobInvalid, lambda: adopt(scene, operation, "x" * 513))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(named=st.text(max_size=40))
def test_no_text_whatever_is_adopted_unless_the_service_has_it(scene: Scene, named: str) -> None:
    operation = next((row["text"] for row in _doubts(scene)), None) or scene.in_doubt()
    kind = RemoteJobUnknown if usable_id(named) is not None else RemoteJobInvalid
    refused(scene, kind, lambda: adopt(scene, operation, named))


def _doubts(scene: Scene) -> list[dict[str, str]]:
    return scene.rows(
        "select coatcheck.operation_text(operation_id) as text from coatcheck.operations where phase = 'uncertain'"
    )


def test_an_operation_that_was_never_in_doubt_and_one_that_is_none_are_refused(scene: Scene) -> None:
    prepared = scene.asked()
    assert "prepared" in refused(scene, WrongPhase, lambda: adopt(scene, prepared, "job-1"))
    refused(scene, NotFound, lambda: adopt(scene, UNKNOWN, "job-1"))
    refused(scene, NotFound, lambda: adopt(scene, "nonsense", "job-1"))


def test_an_invented_job_is_unknown_to_the_service(scene: Scene) -> None:
    operation = scene.in_doubt()
    assert "job_invented" in refused(scene, RemoteJobUnknown, lambda: adopt(scene, operation, "job_invented"))


def test_another_operations_job_is_refused_whoever_owns_it(scene: Scene) -> None:
    theirs = scene.in_doubt("bob")
    job = scene.job_of(theirs)
    adopt(scene, theirs, job)
    operation = scene.in_doubt()
    assert theirs in refused(scene, RemoteJobOwned, lambda: adopt(scene, operation, job))
    assert theirs in refused(scene, RemoteJobOwned, lambda: adopt(scene, operation, job, force=True))


def test_an_id_that_another_account_of_the_same_service_has_is_adopted_only_by_force_and_where_this_one_has_it(
    scene: Scene,
) -> None:
    operation = scene.in_doubt()
    job = scene.job_of(operation)
    elsewhere = scene.in_doubt()
    scene.rows(
        "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, role, seen_at)"
        " select 'second', job, operation_id, 'orphan', now() from coatcheck.operations, unnest(%s::text[]) as job"
        " where coatcheck.operation_text(operation_id) = %s returning account",
        [job, "job-only-there"],
        elsewhere,
    )
    second = {
        f"COATCHECK_PROVIDERS__SECOND__{name}": value
        for name, value in (("BASE_URL", scene.sim.base_url), ("API_KEY", "other"))
    }
    told = refused(scene, RemoteJobElsewhere, lambda: adopt(scene, operation, job, second))
    assert f"recorded for {elsewhere} under the account 'second'" in told
    for force in (False, True):
        refused(scene, RemoteJobUnknown, partial(adopt, scene, operation, "job-only-there", second, force=force))
    made = adopt(scene, operation, job, second, force=True)
    assert made.operation.phase == "accepted"
    assert made.reason == f"{REASON} (forced past the same id of {elsewhere} under the account 'second')"
    assert scene.rows("select account from coatcheck.remote_jobs where remote_job_id = %s and role = 'owner'", job) == [
        {"account": "genace"}
    ]


def test_a_key_of_another_account_does_not_know_the_job(scene: Scene) -> None:
    operation = scene.in_doubt()
    refused(
        scene, RemoteJobUnknown, lambda: adopt(scene, operation, scene.job_of(operation), {"API_KEY": "another-key"})
    )


def test_a_job_that_was_created_outside_the_dispatchs_time_is_refused_even_by_force(scene: Scene) -> None:
    earlier = scene.in_doubt()
    job = scene.job_of(earlier)
    scene.decides(lambda eve: eve.write_off(earlier, reason="not needed"))
    scene.database.move_time(3600)
    operation = scene.in_doubt()
    assert "created between" in refused(scene, OutsideWindow, lambda: adopt(scene, operation, job))
    refused(scene, OutsideWindow, lambda: adopt(scene, operation, job, force=True))


def test_two_tenants_open_dispatches_are_mixed_up_only_by_force_which_names_them(slow_scene: Scene) -> None:
    scene = slow_scene
    theirs = scene.in_doubt("bob")
    operation = scene.in_doubt("ada")
    job = scene.job_of(operation)
    assert theirs in refused(scene, Overlap, lambda: adopt(scene, operation, job))
    made = adopt(scene, operation, job, force=True)
    assert (made.overlaps, made.operation.remote_job_id) == ((theirs,), job)
    kept = scene.rows(
        "select reason from coatcheck.history where event = 'adopted' and operation_id = %s", scene.uuid(operation)
    )
    assert theirs in str(kept)
    # whoever is decided no longer stands in the way
    assert adopt(scene, theirs, scene.job_of(theirs)).overlaps == ()


def test_dispatches_of_the_same_tenant_and_of_another_time_do_not_overlap(slow_scene: Scene) -> None:
    scene = slow_scene
    theirs, _, operation = scene.in_doubt("bob"), scene.in_doubt("ada"), scene.in_doubt("ada")
    scene.rows(
        "update coatcheck.dispatches set begun_at = begun_at - interval '3 h', quiescent_at = quiescent_at - interval '3 h'"
        " where operation_id = %s returning number",
        scene.uuid(theirs),
    )
    assert adopt(scene, operation, scene.job_of(operation)).overlaps == ()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "status", "status": 503}, Unavailable),
        ({"kind": "status", "status": 403}, Unavailable),
        ({"kind": "drop"}, Unavailable),
        ({"kind": "wrong_id"}, RemoteJobUnreadable),
        ({"kind": "malformed", "form": "array"}, RemoteJobUnreadable),
        ({"kind": "status", "status": 404}, RemoteJobUnknown),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "-".join(map(str, value.values())),
)
def test_an_answer_that_does_not_show_the_job_adopts_nothing(
    scene: Scene, fault: dict[str, object], kind: type[Exception]
) -> None:
    operation = scene.in_doubt()
    scene.sim.script([{"on": "look", "times": "always", **fault}])
    refused(scene, kind, lambda: adopt(scene, operation, scene.job_of(operation)))


def test_a_service_that_is_away_and_one_that_is_not_configured_adopt_nothing(scene: Scene) -> None:
    operation = scene.in_doubt()
    job = scene.job_of(operation)
    scene.sim.stop()
    assert "nothing changed" in refused(scene, Unavailable, lambda: adopt(scene, operation, job))
    refused(scene, SettingInvalid, lambda: adopt(scene, operation, job, {"ACCOUNT": "another"}))
    scene.sim.start()


def test_an_orphan_of_the_operation_counts_as_unowned(scene: Scene) -> None:
    operation = scene.in_doubt()
    job = scene.job_of(operation)
    scene.rows(
        "insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)"
        " select account, %s, operation_id, dispatch_id, 'orphan', now() from coatcheck.operations returning account",
        job,
    )
    assert adopt(scene, operation, job).operation.phase == "accepted"
    assert scene.one("select role from coatcheck.remote_jobs") == {"role": "owner"}


def late_orphan(scene: Scene) -> tuple[str, str]:
    """An operation whose second dispatch is in doubt, and the job of the first, which came to light meanwhile."""
    operation = scene.quiet()
    job = scene.job_of(operation)
    first = scene.standing(operation)["dispatch_id"]
    scene.decides(lambda eve: eve.redispatch(operation, reason="needed"))
    with Ground(scene.database) as ground:
        operation_id = OperationId(scene.uuid(operation))
        ground.mark(operation_id)
        ground.happen(operation_id, ev.LeaseEnded())
        ground.happen(operation_id, ev.Accepted(dispatch_id=first, remote_job_id=RemoteJobId(job)))
    return operation, job


def test_adopting_the_job_of_an_earlier_dispatch_spends_the_present_one_and_says_so_before_and_after(
    scene: Scene,
) -> None:
    operation, job = late_orphan(scene)
    assert scene.money() == (5, 5)
    before = scene.decides(lambda eve: eve.evidence(operation, ask=False))
    (candidate,) = [each for each in before.candidates if each.source == "orphan"]
    assert (candidate.remote_job_id, candidate.spends, candidate.unit) == (job, Decimal(5), "credits")
    told = "\n".join(flat(before.story))
    assert "what the present dispatch holds (5 credits) then counts as spent" in told
    assert (
        "adopting it counts 5 credits of the present dispatch as spent"
        in scene.terminal().run("reconcile", "show", operation).out
    )
    made = adopt(scene, operation, job)
    assert (made.spent, made.released, made.operation.remote_job_id) == (Decimal(5), Decimal(0), job)
    # the adopted dispatch holds again until its render is final
    assert scene.money() == (5, 5)


def test_an_orphan_with_which_somebody_dealt_is_shown_as_such_and_adopted_no_more(scene: Scene) -> None:
    operation, job = late_orphan(scene)
    scene.decides(lambda max_: max_.resolve_orphan(job, account="genace", reason="refunded", charged=0), actor="max")
    before = scene.decides(lambda eve: eve.evidence(operation, ask=False))
    (candidate,) = [each for each in before.candidates if each.source == "orphan"]
    assert (candidate.resolved_by, candidate.resolution, candidate.spends) == ("max", "refunded", None)
    assert 'dealt with already, by "max": "refunded"' in scene.terminal().run("reconcile", "show", operation).out
    assert f'The job "{job}" of an earlier dispatch was dealt with already' in "\n".join(flat(before.story))
    for force in (False, True):
        told = refused(scene, OrphanResolved, partial(adopt, scene, operation, job, force=force))
        assert 'resolved by "max" at ' in told


def test_whoever_looked_at_another_revision_is_told_the_newer_state(scene: Scene) -> None:
    operation = scene.in_doubt()
    job = scene.job_of(operation)
    seen = scene.standing(operation)["revision"]
    refused(
        scene,
        StaleRevision,
        lambda: scene.decides(lambda eve: eve.adopt(operation, job, reason=REASON, revision=seen - 1)),
    )
    adopt(scene, operation, job)
    told = refused(
        scene,
        StaleRevision,
        lambda: scene.decides(lambda eve: eve.adopt(operation, job, reason=REASON, revision=seen)),
    )
    assert f'accepted at revision {seen + 1} (adopted by "eve" at ' in told
    # without a revision they are told as well, for somebody decided it since it was in doubt
    assert 'adopted by "eve"' in refused(scene, StaleRevision, lambda: adopt(scene, operation, job))


@pytest.mark.parametrize("decision", ["write_off", "redispatch"])
def test_a_job_of_a_tenant_who_gave_up_still_needs_force(slow_scene: Scene, decision: str) -> None:
    """Neither a write-off nor a redispatch says that there was no job: it may be theirs."""
    scene = slow_scene
    operation, theirs = scene.in_doubt("ada"), scene.in_doubt("bob")
    job = scene.job_of(theirs)
    if decision == "redispatch":
        scene.database.move_time(7200)
    scene.decides(lambda eve: getattr(eve, decision)(theirs, reason="not needed"))
    assert theirs in refused(scene, Overlap, lambda: adopt(scene, operation, job))


class _Untimed(BaseHTTPRequestHandler):
    """A service whose jobs have an instant without an offset."""

    def do_GET(self) -> None:
        body = {"id": self.path.split("/")[-1].split("?")[0], "status": "queued", "created_at": "2026-11-01T10:00:00"}
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        """Nothing: a test's service is quiet."""


def test_an_instant_that_cannot_be_read_is_told_and_needs_force(scene: Scene) -> None:
    operation = scene.in_doubt()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Untimed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        changes = {"BASE_URL": f"http://127.0.0.1:{server.server_port}"}
        told = refused(scene, RemoteJobUnreadable, lambda: adopt(scene, operation, "job-1", changes))
        assert "without an offset" in told
        adopt(scene, operation, "job-1", changes, force=True)
        server.shutdown()
    kept = scene.rows("select reason from coatcheck.history where event = 'adopted'")
    assert "cannot be read" in str(kept)


def test_what_replies_showed_is_not_mixed_up_by_force(slow_scene: Scene) -> None:
    """Two cut replies, each with its job's id: neither operation is given the other's, and its own needs the usual force."""
    scene = slow_scene
    cut = {**QUICK, "create": {"kind": "cut", "at": -10, "times": 1}}
    mine, theirs = scene.asked("ada", cut), scene.asked("bob", cut)
    scene.work(**scene.changes)
    for force in (False, True):
        refused(scene, RemoteJobOwned, partial(adopt, scene, mine, scene.job_of(theirs), force=force))
    other = scene.job_of(scene.in_doubt("ada"))
    assert scene.job_of(mine) in refused(scene, Overlap, lambda: adopt(scene, mine, other))
    assert adopt(scene, mine, scene.job_of(mine), force=True).operation.remote_job_id == scene.job_of(mine)
