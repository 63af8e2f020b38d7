"""A control: the primary dies while its standby is behind. What was acknowledged is lost, and the checker must see every kind of loss.

Nothing is sent from such a standby before a person looked. Whoever resumes without looking pays twice, and the checker sees that, too.
"""

import asyncio
from pathlib import Path

import pytest

from coatcheck.sim import ThreadedService
from coatcheck.store.audit import Finding, audit
from failover.pair import Cold
from failover.trial import JOB, Trial, trial_of
from faults.checker import findings
from figures import Report
from waiting import until

SENT_BEFORE, SENT_UNSEEN = 15, 10
SLOW = {**JOB, "create": {"kind": "stall", "seconds": 0.8}}
UNDER_WAY = "select from coatcheck.operations where phase = 'dispatching' and created_at > %s offset 3"
RECOVERED = "select operation_id from coatcheck.incidents where kind = 'dispatch_vanished'"


@pytest.mark.timeout(240)
def test_what_an_unconfirmed_standby_lost_is_seen_and_not_sent_again_by_itself(
    cold: Cold, sim: ThreadedService, folder: Path, unconfirmed: int, figures: Report
) -> None:
    with trial_of(cold, sim, folder, synchronous=False, job=SLOW) as trial:
        trial.stage.rows("update coatcheck.providers set doubt_limit = null returning name")
        trial.work()
        trial.under_load(SENT_BEFORE + unconfirmed)
        trial.pair.standby_loses_sight()
        since = trial.now()
        trial.under_load(SENT_UNSEEN, since=since)
        until(lambda: trial.stage.rows(UNDER_WAY, since))
        trial.primary_dies()
        trial.waits_for_a_person()
        trial.rest_while_paused()
        posts = trial.posts()
        lost = losses(trial)
        assert lost["enqueues"], lost
        assert lost["marks"], lost
        assert lost["replies"], lost
        assert sent_twice(trial) == set()
        trial.is_resumed()
        trial.come_to_rest()
        assert trial.posts() > posts
        again = sent_twice(trial)
        told = findings(trial.stage.record())
        assert sum(each.partition(": ")[2].startswith("duplicated") for each in told) >= len(again) > 0
        figures("control failovers with losses seen", 1)


def losses(trial: Trial) -> dict[str, list[str]]:
    """What was lost, as each of those that look for it tells it."""
    told = findings(trial.stage.record())
    return {
        "enqueues": sorted(trial.lost_enqueues()),
        "marks": [each for each in told if "unexpected: POST" in each or "duplicated: 1 POSTs by 0 dispatches" in each],
        # their workers live on: what they heard after the promotion is written down as recovered, or as displaced where nothing is left
        "replies": [
            *(str(row["operation_id"]) for row in trial.stage.rows(RECOVERED)),
            *(each.detail for each in audited(trial) if each.check == "S2"),
        ],
    }


def audited(trial: Trial) -> list[Finding]:
    async def read() -> list[Finding]:
        return [found async for part in audit(trial.stage.database.url) for found in part.findings]

    return asyncio.run(read())


def sent_twice(trial: Trial) -> set[str]:
    """Specifications of which more than one POST arrived."""
    texts = [post.body_sha256 for post in trial.stage.sim.posts if post.complete]
    return {each for each in texts if texts.count(each) > 1}
