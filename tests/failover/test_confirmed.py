"""The primary dies under load and its synchronous standby is promoted: nothing that was acknowledged is lost, and nothing is sent twice."""

from pathlib import Path

import pytest

from coatcheck.sim import ThreadedService
from failover.pair import Cold
from failover.trial import Trial, trial_of
from figures import Report

SENT_BEFORE, SENT_AFTER = 25, 15


@pytest.mark.timeout(240)
def test_no_acknowledged_write_is_lost_and_nothing_is_sent_twice(
    cold: Cold, sim: ThreadedService, folder: Path, confirmed: int, figures: Report
) -> None:
    """By turns: a person resumes, or promotion is said to be safe; the workers live on, or died with the primary."""
    is_safe, with_workers = confirmed % 2 == 0, confirmed % 4 >= 2
    with trial_of(cold, sim, folder, synchronous=True) as trial:
        trial.stage.rows("update coatcheck.providers set doubt_limit = null returning name")
        trial.work(COATCHECK_PROMOTION_IS_SAFE=str(is_safe).lower())
        trial.under_load(SENT_BEFORE + confirmed)
        trial.primary_dies(with_workers=with_workers)
        if not is_safe:
            nothing_is_sent_until_somebody_resumed(trial)
        trial.under_load(SENT_AFTER)
        trial.come_to_rest()
        assert trial.lost_enqueues() == set()
        trial.stage.check()
        every_post_was_wanted_once(trial)
        figures("failovers", 1)
        figures("acknowledged enqueues through failovers", len(trial.clients.acknowledged))
        figures("saved ends of POSTs through failovers", trial.posts())


def nothing_is_sent_until_somebody_resumed(trial: Trial) -> None:
    since = trial.now()
    trial.waits_for_a_person()
    assert trial.dispatches(since) == 0
    trial.is_resumed()


def every_post_was_wanted_once(trial: Trial) -> None:
    texts = [post.body_sha256 for post in trial.stage.sim.posts if post.complete]
    assert len(texts) == len(set(texts)) > SENT_BEFORE + SENT_AFTER
