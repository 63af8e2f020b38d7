"""What a worker counts about itself, for `stats`: four measures apart, so that one tells a backlog's cause. No rule rests on them."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Duration:
    """How long actions of one kind took, in milliseconds."""

    count: int = 0
    total_ms: int = 0
    max_ms: int = 0

    def took(self, milliseconds: int) -> None:
        """One more action."""
        self.count += 1
        self.total_ms += milliseconds
        self.max_ms = max(self.max_ms, milliseconds)


@dataclass(slots=True)
class Tally:
    """Counts since the worker began."""

    stale: Counter[str] = field(default_factory=Counter)
    durations: dict[str, Duration] = field(default_factory=dict)
    lease_renewal_failures: int = 0

    def took(self, action: str, milliseconds: int) -> None:
        """An action of this kind ended."""
        self.durations.setdefault(action, Duration()).took(milliseconds)
