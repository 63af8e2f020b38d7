"""What doctor makes of budgets and pauses: nothing where there are none, a warning for a pause, a failure where doubts fill the account."""

from datetime import UTC, datetime

import pytest

from coatcheck.app.account_checks import LOOK_S, account_checks
from coatcheck.app.check import Check, Verdict
from coatcheck.store.stats import AccountStats

SINCE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FREE: dict[str, object] = {
    **dict.fromkeys(AccountStats.__slots__),
    "account": "acme",
    "providers": ["genace", "other"],
    **dict.fromkeys(("uncertain_count", "doubt_count", "failed_look_count", "due_dispatch_count", "due_look_count"), 0),
    "look_age_s": 0.0,
}


def checks(**changes: object) -> list[Check]:
    return list(account_checks([AccountStats(**{**FREE, **changes})]))  # type: ignore[arg-type] # fields by name


def test_an_account_without_budget_and_pause_has_no_line() -> None:
    assert checks(due_look_count=9, look_age_s=999.0, uncertain_count=9) == []


@pytest.mark.parametrize(
    ("uncertain", "limit", "verdict"),
    [(0, 2, Verdict.OK), (1, 2, Verdict.OK), (2, 2, Verdict.FAILED), (3, 2, Verdict.FAILED), (0, 0, Verdict.OK)],
)
def test_doubts_that_fill_the_limit_are_a_failure(uncertain: int, limit: int, verdict: Verdict) -> None:
    (found,) = checks(max_in_flight=limit, in_flight_count=2, uncertain_count=uncertain)
    assert (found.name, found.verdict) == ("account acme in flight", verdict)
    assert ("coatcheck reconcile list" in found.remedy, "genace --max-in-flight" in found.remedy) == (
        (verdict is Verdict.FAILED,) * 2
    )


@pytest.mark.parametrize(
    ("age_s", "wait", "verdict"),
    [(LOOK_S, "rate", Verdict.OK), (LOOK_S + 1, "rate", Verdict.WARNING), (LOOK_S + 1, None, Verdict.OK)],
)
def test_looks_that_are_due_for_minutes_show_a_budget_that_is_too_small(
    age_s: float, wait: str | None, verdict: Verdict
) -> None:
    """What nobody looks at, though the budget would allow it, is unclaimed and told there."""
    (found,) = checks(looks_per_s=0.5, due_look_count=40, look_wait=wait, look_age_s=age_s)
    assert (found.name, found.verdict) == ("account acme looks", verdict)
    assert f"0.5 a second, 40 due, the oldest for {age_s:.0f} s" in found.reading


def test_pauses_are_warnings_with_who_since_when_and_why() -> None:
    dispatch, observation = checks(
        dispatch_paused_at=SINCE, dispatch_paused_by="ada", dispatch_pause_reason="bill unpaid",
        observation_paused_at=SINCE, observation_paused_by="bob", observation_pause_reason="maintenance", looks_per_s=1.0,
    )  # fmt: skip
    assert {dispatch.verdict, observation.verdict} == {Verdict.WARNING}
    assert dispatch.reading == "paused since 2026-01-02 03:04:05Z by ada: bill unpaid"
    assert "coatcheck providers resume genace --reason" in dispatch.remedy
    assert "by bob: maintenance; 0 looks are due" in observation.reading
    assert "resume genace --what observation" in observation.remedy


def test_a_pause_that_ends_by_itself_says_when_it_is_tried() -> None:
    (found,) = checks(
        observation_paused_at=SINCE, observation_paused_by="coatcheck", observation_pause_reason="10 looks failed",
        observation_probe_at=SINCE,
    )  # fmt: skip
    assert "tried with one look at 03:04:05Z" in found.reading
    assert "resume" not in found.remedy
