"""Which decisions an operation allows, now or later: asked of the table of phases, so that nothing is offered which it would refuse."""

from collections.abc import Iterator
from typing import assert_never

from coatcheck.app.reconciling.views import REOBSERVE, Choice, Doubt, Possible
from coatcheck.app.story.wording import word
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text
from coatcheck.core.machine import advance
from coatcheck.core.operation import Phase, RemoteJobId, RenderState
from coatcheck.core.steps import Refusal, Refused
from coatcheck.store.doubts import Standing

_REASON = "--reason REASON"


def event_of(choice: Choice, standing: Standing, *, actor: str, reason: str, released: bool = False) -> ev.Event | None:
    """What happens to the operation by a decision; None where its dispatch would have to be known and is not, or its specification.

    Adopting names its job elsewhere.
    """
    operation, quiescent_at = standing.operation, standing.quiescent_at
    if quiescent_at is None and operation.phase is Phase.UNCERTAIN and choice is not Choice.WRITE_OFF:
        return None
    # in every other phase of what is over the table refuses, and says why
    if standing.is_retired and choice is Choice.REDISPATCH and operation.phase is Phase.REJECTED:
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
            return ev.WriteOff(
                actor=actor, reason=reason, stalled=standing.is_stalled, released=released, quiescent_at=quiescent_at
            )
        case _:
            assert_never(choice)


def possible(standing: Standing) -> Iterator[Possible]:
    """The decisions that the phase allows, those that have to wait among them."""
    for choice in Choice:
        event = event_of(choice, standing, actor="", reason="")
        answer = None if event is None else advance(standing.operation, event, standing.operation.read_at)
        if answer is None or (isinstance(answer, Refusal) and answer.code is not Refused.NOT_QUIESCENT):
            continue
        waits = isinstance(answer, Refusal)
        yield Possible(
            decision=choice, possible_at=standing.quiescent_at if waits else None, command=_command(choice, standing)
        )


def _command(choice: Choice, standing: Standing) -> str:
    words = ["coatcheck", "reconcile", choice, operation_text(standing.operation.operation_id)]
    if choice is Choice.ADOPT:
        words.append(word(standing.candidate_id, "JOB") if standing.candidate_id else "JOB")
    if choice is Choice.REDISPATCH:
        words.append("--yes")
    return " ".join([*words, _REASON])


def view_of(standing: Standing) -> Doubt:
    """The public form of what waits for a decision."""
    operation = standing.operation
    begun_at = standing.begun_at or operation.created_at
    return Doubt(
        operation_id=operation_text(operation.operation_id),
        tenant_id=operation.tenant_id,
        operation_key=operation.operation_key,
        provider=operation.provider,
        account=operation.account,
        phase=operation.phase,
        render_state=operation.render_state,
        revision=operation.revision,
        dispatch_id=None if operation.dispatch_id is None else str(operation.dispatch_id),
        number=standing.number,
        authorisation=standing.used_authorisation,
        worker=standing.worker,
        begun_at=standing.begun_at,
        quiescent_at=standing.quiescent_at,
        is_quiescent=standing.is_quiescent,
        stage=standing.stage,
        cause=standing.cause,
        http_status=standing.http_status,
        candidate_id=standing.candidate_id,
        held=standing.at_risk,
        unit=standing.held_unit or operation.unit,
        age_s=max(0.0, round((operation.read_at - begun_at).total_seconds(), 3)),
        decisions=(*(each.decision for each in possible(standing) if each.possible_at is None), *_free(standing)),
    )


def _free(standing: Standing) -> tuple[str, ...]:
    """What helps without deciding anything: looking again at a job that was given up."""
    return (REOBSERVE,) if standing.is_stalled or standing.operation.render_state is RenderState.MISSING else ()
