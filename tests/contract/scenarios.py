"""What a service can do to one request, and what an adapter must make of it, whatever the service and whoever recorded it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coatcheck.core.events import Accepted, Doubted, FailedWithId, NotSent, Rejected, Reply, Throttled
from coatcheck.core.operation import RemoteJobId, RenderState
from coatcheck.provider.port import Absent, Denied, Look, Nonsense, Seen, StillWaiting, Transient

Verdict = Reply | Look
Holds = Callable[[Any, RemoteJobId], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One request under one fault. `rule` is the simulated service's; `job` how the job goes; `means` and `holds` what must be true."""

    on: str
    means: type[Verdict]
    rule: Mapping[str, Any] | None = None
    job: Mapping[str, Any] = field(default_factory=dict)
    holds: Holds = lambda verdict, job: True


def _saved(verdict: Any, job: RemoteJobId) -> bool:
    return bool(verdict.remote_job_id == job)


def _status(status: int) -> Holds:
    return lambda verdict, _: verdict.status == status


def _cause(*causes: str) -> Holds:
    return lambda verdict, _: verdict.cause in causes


def _state(state: RenderState | None, outputs: int) -> Holds:
    def holds(verdict: Any, job: RemoteJobId) -> bool:
        snapshot = verdict.snapshot
        return (snapshot.remote_job_id, snapshot.render_state, len(snapshot.outputs)) == (job, state, outputs)

    return holds


def _create(means: type[Verdict], holds: Holds, /, **rule: Any) -> Scenario:
    return Scenario(on="create", means=means, holds=holds, rule=rule or None)


def _look(means: type[Verdict], holds: Holds, /, **rule: Any) -> Scenario:
    return Scenario(on="look", means=means, holds=holds, rule=rule or None)


DOUBTS: Final = ("closed", "reset", "timeout", "malformed_reply")

SCENARIOS: Final[Mapping[str, Scenario]] = {
    "create_accepted": _create(Accepted, _saved),
    "create_accepted_chunked": _create(Accepted, _saved, kind="chunked"),
    "create_accepted_gzip": _create(Accepted, _saved, kind="gzip"),
    "create_accepted_after_interim": _create(Accepted, _saved, kind="informational"),
    "create_accepted_slowly": _create(Accepted, _saved, kind="slow", chunk_bytes=9),
    "create_502_with_job_id": _create(FailedWithId, _saved, kind="error_with_job_id"),
    "create_503_with_job_id": _create(FailedWithId, _saved, kind="error_with_job_id", status=503),
    "create_422": _create(Rejected, _status(422), kind="status", status=422, message="1500x2000 is too large (500)"),
    "create_401": _create(Rejected, _status(401), kind="status", status=401),
    "create_307": _create(Rejected, _status(307), kind="redirect"),
    "create_413_early": _create(Rejected, _status(413), kind="early_reply", nth=1),
    "create_429": _create(Throttled, lambda verdict, _: verdict.retry_after_s == 7.0, kind="throttled", retry_after="7"),
    "create_429_html": _create(Throttled, lambda verdict, _: verdict.retry_after_s is None, kind="status", status=429, form="html"),
    "create_500": _create(Doubted, _cause("status_500"), kind="status", status=500),
    "create_504_html": _create(Doubted, _cause("status_504"), kind="status", status=504, form="html", created=True),
    "create_409": _create(Doubted, _cause("status_409"), kind="status", status=409),
    "create_303": _create(Doubted, _cause("status_303"), kind="redirect", status=303, created=True),
    "create_html": _create(Doubted, _cause("not_json"), kind="malformed", form="html"),
    "create_truncated_json": _create(Doubted, _cause("not_json"), kind="malformed", form="truncated_json"),
    "create_no_id": _create(Doubted, _cause("no_id"), kind="malformed", form="no_id"),
    "create_id_number": _create(Doubted, _cause("unusable_id"), kind="malformed", form="id_number"),
    "create_id_control": _create(Doubted, _cause("unusable_id"), kind="malformed", form="id_control"),
    "create_id_surrogate": _create(Doubted, _cause("unusable_id"), kind="malformed", form="id_surrogate"),
    "create_duplicate_keys": _create(Doubted, _cause("duplicate_key"), kind="malformed", form="duplicate_keys"),
    "create_not_utf8": _create(Doubted, _cause("not_utf8"), kind="malformed", form="not_utf8"),
    "create_accept_then_drop": _create(Doubted, _cause(*DOUBTS), kind="accept_then_drop"),
    "create_accept_then_reset": _create(Doubted, _cause(*DOUBTS), kind="accept_then_drop", end="rst"),
    "create_cut_in_body": _create(Doubted, _cause(*DOUBTS), kind="cut", at=-1),
    "create_cut_in_status": _create(Doubted, _cause(*DOUBTS), kind="cut", at=5, end="rst"),
    "create_chunked_unfinished": _create(Doubted, _cause(*DOUBTS), kind="chunked", broken=True),
    "create_short_of_its_length": _create(Doubted, _cause(*DOUBTS), kind="wrong_length", delta=10),
    "create_no_http": _create(Doubted, _cause(*DOUBTS), kind="garbage_status_line"),
    "create_stalled": _create(Doubted, _cause("timeout"), kind="stall"),
    "create_refused": Scenario(on="nowhere", means=NotSent, holds=_cause("refused")),
    "look_succeeded": _look(Seen, _state(RenderState.SUCCEEDED, 1)),
    "look_succeeded_urls": Scenario(on="look", means=Seen, job={"outputs_as": "urls", "outputs": 3}, holds=_state(RenderState.SUCCEEDED, 3)),
    "look_failed": Scenario(on="look", means=Seen, job={"outcome": "failed"}, holds=_state(RenderState.FAILED, 0)),
    "look_moderated": Scenario(on="look", means=Seen, job={"outcome": "moderated"}, holds=_state(RenderState.MODERATED, 0)),
    "look_gzip": _look(Seen, _state(RenderState.SUCCEEDED, 1), kind="gzip"),
    "look_unknown_word": _look(Seen, _state(None, 0), kind="unknown_word", word="aborted"),
    "look_success_without_outputs": _look(Seen, _state(RenderState.SUCCEEDED, 0), kind="no_outputs"),
    "look_blank_url": _look(Seen, _state(RenderState.SUCCEEDED, 0), kind="no_outputs", form="blank_url"),
    "look_closed_204": _look(StillWaiting, lambda *_: True, kind="closed_window"),
    "look_closed_408": _look(StillWaiting, lambda *_: True, kind="closed_window", status=408),
    "look_closed_202": _look(StillWaiting, lambda *_: True, kind="closed_window", status=202),
    "look_closed_304": _look(StillWaiting, lambda *_: True, kind="closed_window", status=304),
    "look_404": _look(Absent, lambda *_: True, kind="status", status=404),
    "look_401": _look(Denied, _status(401), kind="status", status=401),
    "look_403": _look(Denied, _status(403), kind="status", status=403),
    "look_429": _look(Transient, lambda verdict, _: verdict.retry_after_s == 3.0, kind="throttled", retry_after="3"),
    "look_502_html": _look(Transient, _cause("status_502"), kind="status", status=502, form="html"),
    "look_302": _look(Transient, _cause("status_302"), kind="redirect", status=302),
    "look_html": _look(Transient, _cause("not_json"), kind="malformed", form="html"),
    "look_truncated_json": _look(Transient, _cause("not_json"), kind="malformed", form="truncated_json"),
    "look_cut": _look(Transient, _cause(*DOUBTS), kind="cut", at=-3, end="rst"),
    "look_dropped": _look(Transient, _cause(*DOUBTS), kind="drop"),
    "look_no_http": _look(Transient, _cause(*DOUBTS), kind="garbage_status_line"),
    "look_wrong_id": _look(Nonsense, lambda verdict, _: verdict.kind == "wrong_id", kind="wrong_id"),
    "look_id_number": _look(Nonsense, lambda verdict, _: verdict.kind == "malformed", kind="malformed", form="id_number"),
    "look_array": _look(Nonsense, lambda verdict, _: verdict.kind == "malformed", kind="malformed", form="array"),
    "look_deep": _look(Nonsense, lambda verdict, _: verdict.kind == "malformed", kind="malformed", form="deep"),
    "look_duplicate_keys": _look(Nonsense, lambda verdict, _: verdict.kind == "malformed", kind="malformed", form="duplicate_keys"),
}  # fmt: skip
