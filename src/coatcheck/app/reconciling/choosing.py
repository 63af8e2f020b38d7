"""Which decisions an operation allows, now or later: asked of the table of phases, so that nothing is offered which it would refuse."""

from collections.abc import Iterator

from coatcheck.app.reconciling.views import Choice, Possible
from coatcheck.app.reconciling.views import Doubt as DoubtView
from coatcheck.app.story.wording import word
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text
from coatcheck.core.machine import advance
from coatcheck.core.operation import Phase, RemoteJobId
from coatcheck.core.steps import Refusal, Refused
from coatcheck.store.doubts import Doubt

_REASON = "--reason REASON"


def event_of(choice: Choice, doubt: Doubt, *, actor: str, reason: str, released: bool = False) -> ev.Event | None:
    """What happens to the operation by a decision; None where its dispatch would have to be known and is not.

    Adopting names its job elsewhere.
    """
    operation, quiescent_at = doubt.operation, doubt.quiescent_at
    if quiescent_at is None and operation.phase is Phase.UNCERTAIN and choice is not Choice.WRITE_OFF:
        return None
    match choice:
        case Choice.ADOPT:
            return ev.Adopt(actor=actor, reason=reason, remote_job_id=RemoteJobId(""))
        case Choice.PROVE_ABSENT:
            # in no other phase does the instant count
            return ev.ProveAbsent(actor=actor, reason=reason, quiescent_at=quiescent_at or operation.read_at)
        case Choice.REDISPATCH:
            return ev.Redispatch(actor=actor, reason=reason, quiescent_at=quiescent_at)
        case Choice.WRITE_OFF:
            return ev.WriteOff(actor=actor, reason=reason, stalled=doubt.is_stalled, released=released)


def possible(doubt: Doubt) -> Iterator[Possible]:
    """The decisions that the phase allows, those that have to wait among them."""
    for choice in Choice:
        event = event_of(choice, doubt, actor="", reason="")
        answer = None if event is None else advance(doubt.operation, event, doubt.operation.read_at)
        if answer is None or (isinstance(answer, Refusal) and answer.code is not Refused.NOT_QUIESCENT):
            continue
        waits = isinstance(answer, Refusal)
        yield Possible(
            decision=choice, possible_at=doubt.quiescent_at if waits else None, command=_command(choice, doubt)
        )


def _command(choice: Choice, doubt: Doubt) -> str:
    words = ["coatcheck", "reconcile", choice, operation_text(doubt.operation.operation_id)]
    if choice is Choice.ADOPT:
        words.append(word(doubt.candidate_id, "JOB") if doubt.candidate_id else "JOB")
    if choice is Choice.REDISPATCH:
        words.append("--yes")
    return " ".join([*words, _REASON])


def view_of_doubt(doubt: Doubt) -> DoubtView:
    """The public form of what waits for a decision."""
    operation = doubt.operation
    begun_at = doubt.begun_at or operation.created_at
    return DoubtView(
        operation_id=operation_text(operation.operation_id),
        tenant_id=operation.tenant_id,
        operation_key=operation.operation_key,
        provider=operation.provider,
        account=operation.account,
        phase=operation.phase,
        render_state=operation.render_state,
        revision=operation.revision,
        dispatch_id=None if operation.dispatch_id is None else str(operation.dispatch_id),
        number=doubt.number,
        authorisation=doubt.used_authorisation,
        worker=doubt.worker,
        begun_at=doubt.begun_at,
        quiescent_at=doubt.quiescent_at,
        is_quiescent=doubt.is_quiescent,
        stage=doubt.stage,
        cause=doubt.cause,
        http_status=doubt.http_status,
        candidate_id=doubt.candidate_id,
        held=doubt.held,
        unit=doubt.held_unit or operation.unit,
        age_s=max(0.0, round((operation.read_at - begun_at).total_seconds(), 3)),
        decisions=tuple(each.decision for each in possible(doubt) if each.possible_at is None),
    )
