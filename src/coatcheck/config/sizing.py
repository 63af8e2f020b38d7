"""A lease covers its action: connection, wait, parsing, persistence and margin, summed from the settings and shown when it does not fit.

A lease that ends early is never unsafe, for every conclusion is fenced; but it takes work from a healthy worker, and in dispatch it makes
doubt out of nothing. So a worker does not start with one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from coatcheck.config.settings import ProviderSettings, Settings
from coatcheck.errors import LeaseTooShort

PARSE_S = 1.0
"""Reading a reply and deciding, on a busy processor."""
SAVE_S = 5.0
"""Persistence: a place in the committer's batch and its commit, under load."""
RENEW_EVERY_S = 10.0
"""How often a delivery, which may last as long as its output is large, renews its lease."""
MISSED_RENEWALS = 3
"""A lease must survive this many renewal intervals, so that one slow renewal does not end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One summand of a lease."""

    meaning: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSum:
    """What a role's lease must cover and how long it is. `provider` is the one whose settings need the most, if any is configured."""

    role: str
    provider: str | None
    terms: tuple[Term, ...]
    configured_s: float | None

    @property
    def needed_s(self) -> float:
        """The sum of the terms."""
        return sum(each.seconds for each in self.terms)

    @property
    def lease_s(self) -> float:
        """How long the lease is: as configured, or exactly as needed."""
        return self.needed_s if self.configured_s is None else self.configured_s

    @property
    def fits(self) -> bool:
        """Whether the lease covers its action."""
        return self.lease_s >= self.needed_s

    @property
    def text(self) -> str:
        """The sum term by term, as `5 (connection, SEND_S) + 60 (the POST, TIMEOUT_S) + … = 73 s`."""
        return f"{' + '.join(f'{each.seconds:g} ({each.meaning})' for each in self.terms)} = {self.needed_s:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSums:
    """One sum for each role that leases."""

    dispatch: LeaseSum
    observe: LeaseSum
    deliver: LeaseSum

    @property
    def all(self) -> tuple[LeaseSum, ...]:
        """The three of them."""
        return (self.dispatch, self.observe, self.deliver)


def lease_arithmetic(settings: Settings) -> LeaseSums:
    """The arithmetic of every lease, as `lease_arithmetic(settings).dispatch.lease_s`. A lease serves all providers, so the slowest counts."""
    providers = tuple(settings.providers.values())
    return LeaseSums(
        dispatch=_widest("dispatch", providers, _dispatch, settings.lease.dispatch_s),
        observe=_widest("observe", providers, _observe, settings.lease.observe_s),
        deliver=_widest("deliver", providers, _deliver, settings.lease.deliver_s),
    )


def check_leases(settings: Settings) -> LeaseSums:
    """The same, or `LeaseTooShort` with the sum of the first lease that does not cover its action."""
    sums = lease_arithmetic(settings)
    for each in sums.all:
        if not each.fits:
            label = f"COATCHECK_LEASE__{each.role.upper()}_S"
            raise LeaseTooShort(
                f"{label}: expected at least {each.text}{f' for {each.provider}' if each.provider else ''}, got {each.lease_s:g} s",
                next=f"raise {label} to {each.needed_s:g} or more, remove it so that it is computed, or lower a term",
            )
    return sums


def _widest(
    role: str,
    providers: tuple[ProviderSettings, ...],
    terms: Callable[[ProviderSettings | None], tuple[Term, ...]],
    configured_s: float | None,
) -> LeaseSum:
    sums = [
        LeaseSum(role=role, provider=None if each is None else each.name, terms=terms(each), configured_s=configured_s)
        for each in providers or (None,)
    ]
    return max(sums, key=lambda each: each.needed_s)


def _dispatch(provider: ProviderSettings | None) -> tuple[Term, ...]:
    connected = (
        ()
        if provider is None
        else (
            Term(meaning="connection, SEND_S", seconds=provider.send_s),
            Term(meaning="the POST, TIMEOUT_S", seconds=provider.timeout_s),
        )
    )
    return (*connected, *_finish(provider))


def _observe(provider: ProviderSettings | None) -> tuple[Term, ...]:
    connected = (
        ()
        if provider is None
        else (Term(meaning="connection and wait window, OBSERVE_TIMEOUT_S", seconds=provider.observe_timeout_s),)
    )
    return (*connected, *_finish(provider))


def _deliver(provider: ProviderSettings | None) -> tuple[Term, ...]:
    return (
        Term(
            meaning=f"{MISSED_RENEWALS} renewals, one each {RENEW_EVERY_S:g} s", seconds=MISSED_RENEWALS * RENEW_EVERY_S
        ),
        *_finish(provider),
    )


def _finish(provider: ProviderSettings | None) -> tuple[Term, ...]:
    margin = () if provider is None else (Term(meaning="margin, MARGIN_S", seconds=provider.margin_s),)
    return (Term(meaning="parsing", seconds=PARSE_S), Term(meaning="persistence", seconds=SAVE_S), *margin)
