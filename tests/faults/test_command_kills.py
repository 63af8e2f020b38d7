"""A person's command killed at any named point: it took effect as a whole or not at all, and saying it again makes it take effect once.

Each point strikes the same command again, so whoever is struck at the last one says again what was struck at those before.
"""

import inspect
import json
import os
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import LiteralString

import pytest

from coatcheck.cli.program import COMMANDS
from coatcheck.core import events as ev
from coatcheck.core.identity import operation_text
from coatcheck.seams import NO_FAULTS, Point
from coatcheck.store import pauses
from coatcheck.store.pauses import Pausable
from faults.child import Child
from faults.points import points
from faults.scenes import killed
from faults.stage import ALWAYS, Stage
from faults.strike import Strike, written
from figures import Report
from reconcile.test_orphans import late
from store.ground import Ground

WHY = ("--reason", "the customer called", "--actor", "eve")
OK, FAILED, STALE = 0, 1, 4
QUIET_AFTER_S = 7200.0
SPECIFICATION = b'{"prompt": "a red bird"}'
PROVIDER: LiteralString = "select from coatcheck.providers where name = 'genace' and "
ACCOUNT: LiteralString = "select from coatcheck.accounts where account = 'genace' and "
EVENT: LiteralString = "select from coatcheck.history where actor = 'eve' and event = "
TABLES = ("operations", "outbox", "history", "dispatches", "remote_jobs", "providers", "accounts", "allowances")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`prepares` brings about what the command is for and answers with its words; `effect` is the one row that it leaves behind.

    `again`: how the same command ends that is said once more after it took effect.
    """

    prepares: Callable[[Ground, Stage], Sequence[str]]
    effect: LiteralString
    again: int = OK


def prepared(ground: Ground) -> str:
    return operation_text(ground.enqueue("bird"))


def accepted(ground: Ground) -> str:
    operation_id = ground.enqueue("bird")
    ground.accept(operation_id)
    return operation_text(operation_id)


def uncertain(ground: Ground) -> str:
    operation_id = ground.enqueue("bird")
    ground.mark(operation_id)
    ground.happen(operation_id, ev.LeaseEnded())
    return operation_text(operation_id)


def quiet(ground: Ground) -> str:
    """One in doubt about which nothing can arrive any more."""
    name = uncertain(ground)
    ground.database.move_time(QUIET_AFTER_S)
    return name


def found(ground: Ground, stage: Stage) -> Sequence[str]:
    """One in doubt, and the job that the service made while its POST was open."""
    operation_id = ground.enqueue("bird")
    ground.mark(operation_id)
    create = urllib.request.Request(
        f"{stage.sim.base_url}/api/v1/jobs",
        SPECIFICATION,
        {"Authorization": f"Bearer {ALWAYS['API_KEY']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(create) as reply:
        job = json.loads(reply.read())["job_id"]
    ground.happen(operation_id, ev.LeaseEnded())
    return ("reconcile", "adopt", operation_text(operation_id), job, *WHY)


def undelivered(ground: Ground, _: Stage) -> Sequence[str]:
    operation_id = ground.enqueue("bird")
    ground.succeed(operation_id)
    ground.happen(operation_id, ev.OutputFailed(index=0, cause="disk_full"))
    return ("operations", "redeliver", operation_text(operation_id), *WHY)


def over(ground: Ground, _: Stage) -> Sequence[str]:
    operation_id = ground.enqueue("bird")
    assert ground.happen(operation_id, ev.Rejected(dispatch_id=ground.mark(operation_id), status=422)).applied
    return ("retention", "run", "--days", "0", *WHY)


def set_aside(ground: Ground, _: Stage) -> Sequence[str]:
    name = prepared(ground)
    ground.sql("update coatcheck.outbox set parked_at = now(), park_reason = 'lease_count'")
    return ("messages", "resume", f"{name}.0", *WHY)


def orphaned(ground: Ground, _: Stage) -> Sequence[str]:
    late(ground, "bird", "job-1")
    return ("orphans", "resolve", "job-1", "--account", "genace", *WHY)


def paused(what: str) -> Callable[[Ground, Stage], Sequence[str]]:
    def prepares(ground: Ground, _: Stage) -> Sequence[str]:
        ground.run(
            pauses.pause(
                ground.line, "genace", reason="maintenance", actor="ada", what=Pausable(what), faults=NO_FAULTS
            )
        )
        return ("providers", "resume", "genace", "--what", what, *WHY)

    return prepares


def said(*words: str) -> Callable[[Ground, Stage], Sequence[str]]:
    """A command that needs nothing to be there."""
    return lambda *_: words


TRIED: Mapping[str, Command] = {
    "operations cancel": Command(
        prepares=lambda ground, _: ("operations", "cancel", prepared(ground), *WHY),
        effect=EVENT + "'cancelled'",
        again=FAILED,
    ),
    "operations reobserve": Command(
        prepares=lambda ground, _: ("operations", "reobserve", accepted(ground), *WHY),
        effect=EVENT + "'reobserve_requested'",
    ),
    "messages resume": Command(prepares=set_aside, effect=EVENT + "'message_resumed'", again=FAILED),
    "operations redeliver": Command(prepares=undelivered, effect=EVENT + "'redeliver_requested'", again=FAILED),
    "reconcile adopt": Command(prepares=found, effect=EVENT + "'adopted'", again=STALE),
    "reconcile prove-absent": Command(
        prepares=lambda ground, _: ("reconcile", "prove-absent", quiet(ground), *WHY),
        effect=EVENT + "'proven_absent'",
        again=STALE,
    ),
    "reconcile redispatch": Command(
        prepares=lambda ground, _: ("reconcile", "redispatch", quiet(ground), "--yes", *WHY),
        effect=EVENT + "'redispatch_authorised'",
        again=STALE,
    ),
    "reconcile write-off": Command(
        prepares=lambda ground, _: ("reconcile", "write-off", uncertain(ground), *WHY),
        effect=EVENT + "'written_off'",
        again=STALE,
    ),
    "reconcile note": Command(
        prepares=lambda ground, _: ("reconcile", "note", uncertain(ground), *WHY), effect=EVENT + "'noted'"
    ),
    "orphans resolve": Command(
        prepares=orphaned, effect="select from coatcheck.remote_jobs where resolved_by = 'eve'", again=STALE
    ),
    "providers pause": Command(
        prepares=said("providers", "pause", "genace", *WHY), effect=PROVIDER + "dispatch_paused_by = 'eve'"
    ),
    "providers pause observation": Command(
        prepares=said("providers", "pause", "genace", "--what", "observation", *WHY),
        effect=ACCOUNT + "observation_paused_by = 'eve'",
    ),
    "providers resume": Command(
        prepares=paused("dispatch"), effect=PROVIDER + "dispatch_paused_at is null and dispatch_resumed_by = 'eve'"
    ),
    "providers resume observation": Command(
        prepares=paused("observation"),
        effect=ACCOUNT + "observation_paused_at is null and observation_resumed_by = 'eve'",
    ),
    "providers set": Command(
        prepares=said("providers", "set", "genace", "--max-in-flight", "3", "--estimate", "7", *WHY),
        effect="select from coatcheck.providers join coatcheck.accounts using (account) where default_estimate = 7 and max_in_flight = 3",
    ),
    "allowance set": Command(
        prepares=said("allowance", "set", "10", "--tenant", "bob", "--actor", "eve"),
        effect="select from coatcheck.allowances where tenant_id = 'bob' and ceiling = 10",
    ),
    "allowance set anew": Command(
        prepares=said("allowance", "set", "10", "--tenant", "t1", "--actor", "eve"),
        effect="select from coatcheck.allowances where tenant_id = 't1' and ceiling = 10",
    ),
    "retention run": Command(prepares=over, effect=EVENT + "'retired'"),
}


def test_every_command_in_a_persons_name_is_tried() -> None:
    named = {
        name
        for name, (path, _) in COMMANDS.items()
        if "actor"
        in inspect.signature(getattr(import_module(path.partition(":")[0]), path.partition(":")[2])).parameters
    }
    tried = {" ".join(name.split()[:2]) for name in TRIED}
    assert tried == named


@pytest.fixture
def ground(stage: Stage) -> Iterator[Ground]:
    with Ground(stage.database) as made:
        yield made


def runs(stage: Stage, words: Sequence[str], *strikes: Strike) -> Child:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    env |= stage.environment({"COATCHECK_DATABASE_URL": stage.url})
    return stage.child("command", [written(strikes), *words], env=env)


def dump(stage: Stage) -> dict[str, list[str]]:
    """Everything that a command could change."""
    return {
        table: [row["text"] for row in stage.rows(f"select t::text as text from coatcheck.{table} as t order by 1")]
        for table in TABLES
    }


@pytest.mark.parametrize("name", TRIED)
def test_a_command_that_is_killed_took_effect_as_a_whole_or_not_at_all(
    stage: Stage, ground: Ground, name: str, figures: Report
) -> None:
    command = TRIED[name]
    words = command.prepares(ground, stage)
    for point in points("C"):
        before = dump(stage)
        killed(runs(stage, words, Strike(point=point)))
        if point is Point.C3_APPLIED:
            assert len(stage.rows(command.effect)) == 1
        else:
            assert dump(stage) == before, point
        figures("kills", 1)
    kept = dump(stage)
    again = runs(stage, words)
    assert again.ended() == command.again, again.talk
    if command.again != OK:
        assert dump(stage) == kept
