"""Doctor's checks of accounts: what is paused, and budgets in which the work that there is does not fit. A pause is never a failure: it works.

An account without a budget and without a pause has no line.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from coatcheck.app.check import Check, Verdict, judged
from coatcheck.store.stats import AccountStats

LOOK_S = 180.0
"""A render whose look is due for longer is found out late: the budget of looks is too small for what is in flight."""


def account_checks(accounts: Iterable[AccountStats]) -> Iterator[Check]:
    """For each account, as far as it has them: dispatches in flight, the budget of looks, and both pauses."""
    for account in accounts:
        if account.dispatch_paused_at is not None:
            yield _dispatch_pause(account, account.dispatch_paused_at)
        if account.observation_paused_at is not None:
            yield _observation_pause(account, account.observation_paused_at)
        if account.max_in_flight is not None:
            yield _in_flight(account, account.max_in_flight)
        if account.looks_per_s is not None and account.observation_paused_at is None:
            yield _looks(account, account.looks_per_s)


def _dispatch_pause(account: AccountStats, since: datetime) -> Check:
    return judged(
        f"account {account.account} dispatch",
        f"{_paused(since, account.dispatch_paused_by, account.dispatch_pause_reason)}",
        "not paused",
        holds=False,
        remedy=f"remove the cause, then `coatcheck providers resume {account.providers[0]} --reason …`",
    )


def _observation_pause(account: AccountStats, since: datetime) -> Check:
    told = _paused(since, account.observation_paused_by, account.observation_pause_reason)
    if account.observation_probe_at is not None:
        told += f"; tried with one look at {account.observation_probe_at:%H:%M:%S}Z"
        remedy = "look at the service: the pause ends with the first look that it answers"
    else:
        remedy = (
            f"remove the cause, then `coatcheck providers resume {account.providers[0]} --what observation --reason …`"
        )
    name = f"account {account.account} observation"
    return judged(name, f"{told}; {account.due_look_count} looks are due", "not paused", holds=False, remedy=remedy)


def _in_flight(account: AccountStats, limit: int) -> Check:
    """Doubts keep their places until a person decides, so a limit that they fill lets nothing pass any more."""
    is_full = 0 < limit <= account.uncertain_count
    return judged(
        f"account {account.account} in flight",
        f"{account.in_flight_count} of {limit}, {account.uncertain_count} of them in doubt",
        "not all of them in doubt, for these are in flight until they are decided",
        holds=not is_full,
        otherwise=Verdict.FAILED,
        remedy=f"decide them, `coatcheck reconcile list`, or raise `coatcheck providers set {account.providers[0]} --max-in-flight`",
    )


def _looks(account: AccountStats, limit: float) -> Check:
    return judged(
        f"account {account.account} looks",
        f"{limit:g} a second, {account.due_look_count} due, the oldest for {account.look_age_s:.0f} s",
        f"no look due for more than {LOOK_S:g} s",
        holds=account.look_age_s <= LOOK_S or account.look_wait is None,
        remedy=f"raise `coatcheck providers set {account.providers[0]} --looks-per-s`, or lower --max-in-flight",
    )


def _paused(since: datetime, actor: str | None, reason: str | None) -> str:
    return f"paused since {since:%Y-%m-%d %H:%M:%S}Z by {actor}: {reason}"
