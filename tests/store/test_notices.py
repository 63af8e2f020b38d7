"""A pause is said in the log of every worker that it concerns, once, and so is its end."""

import logging

import pytest

from coatcheck.seams import NO_FAULTS
from coatcheck.store.pauses import Pausable, pause, resume
from coatcheck.workers.accounts import Accounts
from coatcheck.workers.notices import Notices
from store.ground import ACCOUNT, Ground


@pytest.mark.parametrize("what", Pausable)
def test_a_pause_and_its_end_are_said_once_each(
    ground: Ground, caplog: pytest.LogCaptureFixture, what: Pausable
) -> None:
    notices, stranger = (Notices(ground.line, [name], ground.seams, Accounts()) for name in (ACCOUNT, "other"))

    def said() -> list[tuple[str, str, str | None]]:
        caplog.clear()
        for each in (notices, stranger):
            ground.run(each.look())
        return [(each.message, vars(each)["of"], vars(each).get("reason")) for each in caplog.records]

    with caplog.at_level(logging.WARNING, "coatcheck.workers.notices"):
        assert said() == []
        ground.run(pause(ground.line, "genace", reason="their invoice", actor="ada", what=what, faults=NO_FAULTS))
        assert said() == [("account is paused", what, "their invoice")]
        assert said() == []
        ground.run(resume(ground.line, "genace", reason="paid", actor="ada", what=what, faults=NO_FAULTS))
        assert said() == [("account goes on", what, None)]
        assert said() == []


@pytest.mark.parametrize("looks_between", [True, False])
def test_a_worker_trusts_an_account_no_more_after_a_pause_even_one_that_it_never_saw(
    ground: Ground, looks_between: bool
) -> None:
    trust = Accounts()
    notices = Notices(ground.line, [ACCOUNT], ground.seams, trust)
    ground.run(notices.look())
    trust.answered(ACCOUNT, 201)
    ground.run(notices.look())
    assert trust.knows(ACCOUNT)
    ground.run(pause(ground.line, "genace", reason="their invoice", actor="ada", faults=NO_FAULTS))
    if looks_between:
        ground.run(notices.look())
    ground.run(resume(ground.line, "genace", reason="paid", actor="ada", faults=NO_FAULTS))
    ground.run(notices.look())
    assert not trust.knows(ACCOUNT)
    trust.answered(ACCOUNT, 201)
    ground.run(notices.look())
    assert trust.knows(ACCOUNT), "one answer is enough"
