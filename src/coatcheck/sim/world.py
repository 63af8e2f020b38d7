"""The service's whole state in one place: settings, rules, ledger and jobs. Handlers change it; nothing else does."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from coatcheck.seams import Seams
from coatcheck.sim.chance import Chance
from coatcheck.sim.checks import Number
from coatcheck.sim.course import course_for
from coatcheck.sim.director import Director
from coatcheck.sim.jobs import Job, make_media
from coatcheck.sim.ledger import Ledger
from coatcheck.sim.requests import Head
from coatcheck.sim.script import Rule, Script
from coatcheck.sim.settings import ServiceSettings, changed_settings


@dataclass(slots=True, kw_only=True)
class Holds:
    """How many looks are being held open, and how many were at most."""

    now: int = 0
    peak: int = 0

    def __enter__(self) -> None:
        self.now += 1
        self.peak = max(self.peak, self.now)

    def __exit__(self, *_: object) -> None:
        self.now -= 1


def told_instant(at: datetime) -> str:
    """An instant as the service tells it: UTC, to the millisecond, always as long."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True, kw_only=True)
class World:
    """What the handlers share. `api_keys` None: every bearer key is accepted, but none at all is not."""

    seams: Seams
    chance: Chance
    api_keys: frozenset[str] | None = field(repr=False)
    director: Director
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    base_url: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    jobs: dict[str, Job] = field(default_factory=dict)
    holds: Holds = field(default_factory=Holds)
    occurrences: Counter[str] = field(default_factory=Counter)
    gets: int = 0
    gets_by_tenth: Counter[int] = field(default_factory=Counter)
    lists: int = 0
    cancels: int = 0

    def now(self) -> float:
        """The clock by which jobs advance, in seconds."""
        return self.seams.clock.boottime()

    def looked(self) -> None:
        """A look has arrived, in this tenth of a second of the clock."""
        self.gets += 1
        self.gets_by_tenth[int(self.now() * 10)] += 1

    def install(self, script: Script, *, replace: bool) -> None:
        """Add to the present rules and mix, or replace them; settings are laid over the present ones."""
        self.settings = changed_settings(self.settings, script.service)
        self.director.install(script.rules, script.mix, replace=replace)

    def admits(self, head: Head) -> bool:
        """Whether the request carries a key that this service accepts."""
        key = head.bearer()
        return key is not None and (self.api_keys is None or key in self.api_keys)

    def new_job(
        self,
        *,
        digest: str,
        occurrence: int,
        post: int,
        head: Head,
        prompt: str | None,
        rules: tuple[Rule, ...],
        changes: dict[str, Any],
    ) -> Job:
        """A job whose id and course follow from the seed, the specification and how often it was posted before."""
        job_id = f"job_{self.chance.word('job', digest, occurrence, size=20)}"
        course = course_for(self.settings, self.chance, job_id, changes)
        job = Job(
            id=job_id,
            number=len(self.jobs) + 1,
            post=post,
            at=self.now(),
            created_at=told_instant(self.seams.clock.now()),
            owner=head.owner(),
            reference=head.reference() if self.settings.echoes else None,
            prompt=prompt,
            course=course,
            rules=rules,
            media=make_media(self.chance, job_id, course),
        )
        self.jobs[job_id] = job
        self.ledger.created(post, job_id, course.price)
        return job

    def refunded(self) -> Number:
        """What was given back for jobs that are over."""
        now = self.now()
        return sum(job.course.refunded for job in self.jobs.values() if job.final(now))
