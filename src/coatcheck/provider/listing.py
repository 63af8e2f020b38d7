"""A service's list of jobs, read with the same distrust as one job: bounded, printable, and an entry that is odd is counted, never guessed."""

from typing import Final

from coatcheck.core.foreign import Unreadable, at, plain_text, usable_id
from coatcheck.provider.instant import read_instant
from coatcheck.provider.port import Candidate, Listing, Nonsense
from coatcheck.provider.snapshot import REFERENCE_LIMIT, STATUS_LIMIT

LIMIT: Final = 100
"""Jobs of one list that are looked at."""


def read_listing(body: object) -> Listing | Nonsense:
    """The jobs in a JSON value `{"jobs": [{"id", "status", "created_at", "client_reference"}, …], "has_more"}`, or why there are none."""
    if isinstance(body, Unreadable):
        return Nonsense(kind="malformed", detail=body.cause)
    jobs = at(body, ("jobs",))
    if not isinstance(jobs, list):
        return Nonsense(kind="malformed", detail="jobs")
    found = [_candidate(entry) for entry in jobs[:LIMIT]]
    usable = tuple(candidate for candidate in found if candidate is not None)
    return Listing(
        candidates=usable,
        is_cut=len(jobs) > LIMIT or bool(at(body, ("has_more",))),
        unusable_count=len(found) - len(usable),
    )


def _candidate(entry: object) -> Candidate | None:
    remote_job_id = usable_id(at(entry, ("id",)))
    if remote_job_id is None:
        return None
    return Candidate(
        remote_job_id=remote_job_id,
        remote_status=plain_text(at(entry, ("status",)), STATUS_LIMIT),
        created_at=read_instant(at(entry, ("created_at",))),
        reference=plain_text(at(entry, ("client_reference",)), REFERENCE_LIMIT),
    )
