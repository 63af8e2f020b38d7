"""The exception tree: the class tells the caller's next move.

`Refused` fix the call · `Stale` reload and decide again · `NotFound` stop asking · `Unavailable` nothing changed, try later ·
`Failed` the request was understood and cannot be done now, or nobody saw whether it was. Every message says what was expected, what came and what to do next.
"""

from typing import ClassVar, Self


class CoatcheckError(Exception):
    """Root of the tree. `code` is the stable machine word, `next` the remedy in one sentence, `exit_code` the command line's answer."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1
    remedy: ClassVar[str] = ""
    """What `next` says where nothing better is known."""

    def __init__(self, message: str, *, next: str = "") -> None:  # noqa: A002 - the outer contract's word
        super().__init__(message)
        self.message = message
        self.next = next or self.remedy
        if self.next:
            # A traceback prints notes, so whoever sees no more than that sees the remedy as well.
            self.add_note(f"Next: {self.next}")


class Failed(CoatcheckError):
    """The request is well formed and cannot be carried out in the present state."""


class NotQuiescent(Failed):
    """Something of the last dispatch could still arrive; the message says until when."""

    code = "not_quiescent"


class WrongPhase(Failed):
    """The decision means nothing for an operation that stands as this one."""

    code = "wrong_phase"


class NotCancellable(Failed):
    """The request cannot be kept back any more, or all is over. `is_recorded`: the wish is kept, and promises neither a stop nor a refund."""

    code = "not_cancellable"

    def __init__(self, message: str, *, is_recorded: bool, next: str = "") -> None:  # noqa: A002 - the outer contract's word
        super().__init__(message, next=next)
        self.is_recorded = is_recorded


class StillLooking(Failed):
    """The remote job is known and looked at: there is nothing to give up yet."""

    code = "still_looking"


class Refused(CoatcheckError):
    """The call itself is wrong; nothing changed. Fix the call."""

    code = "refused"
    exit_code = 2


class KeyReused(Refused):
    """The operation key already names another specification or provider."""

    code = "key_reused"


class SpecificationInvalid(Refused):
    """The specification has no canonical JSON form; the message carries the path to the value."""

    code = "specification_invalid"
    remedy = "correct the specification; docs/sql.md says what one may hold"


class NoTransaction(Refused):
    """The connection given to enqueue has no open transaction, so the intent could not be atomic with the caller's own writes."""

    code = "no_transaction"


class SettingUnknown(Refused):
    """A setting name that coatcheck does not know."""

    code = "setting_unknown"


class SettingInvalid(Refused):
    """A setting whose value is impossible."""

    code = "setting_invalid"


class LeaseTooShort(Refused):
    """A lease that cannot cover its action; the message shows the sum."""

    code = "lease_too_short"


class MissingExtra(Refused):
    """An optional dependency is not installed; the message names the extra."""

    code = "missing_extra"

    @classmethod
    def of(cls, extra: str, module: str) -> Self:
        """The refusal for a module that nobody installed, as `MissingExtra.of("worker", "h11")`."""
        return cls(f"expected the extra {extra} to be installed, got no module {module}", next=install(extra))


def install(extra: str) -> str:
    """What to type for an extra."""
    return f"pip install 'coatcheck[{extra}]' (from a clone: pip install '.[{extra}]')"


class AdoptionRefused(Refused):
    """The remote job cannot be this operation's; nothing changed."""

    code = "adoption_refused"
    remedy = (
        "look into the service's own records for the job of this dispatch; `coatcheck reconcile show` names candidates"
    )


class RemoteJobInvalid(AdoptionRefused):
    """A text that no service could have given as an id."""

    code = "remote_job_invalid"


class RemoteJobUnknown(AdoptionRefused):
    """The service does not know the job, or not in this account."""

    code = "remote_job_unknown"


class RemoteJobUnreadable(AdoptionRefused):
    """The service answered, and the answer cannot be about this job."""

    code = "remote_job_unreadable"


class RemoteJobOwned(AdoptionRefused):
    """Another operation has the job."""

    code = "remote_job_owned"


class RemoteJobElsewhere(AdoptionRefused):
    """A job of the same id is recorded under another account of the same service."""

    code = "remote_job_elsewhere"


class OrphanResolved(AdoptionRefused):
    """The job is an orphan with which somebody dealt already."""

    code = "orphan_resolved"
    remedy = "ask whoever resolved it; what was cancelled or refunded at the service brings no output"


class OtherReference(AdoptionRefused):
    """The service says that another dispatch made the job."""

    code = "other_reference"


class OutsideWindow(AdoptionRefused):
    """The job came to exist before the dispatch began, or after it could still have made one."""

    code = "outside_window"


class Overlap(AdoptionRefused):
    """Another tenant's dispatch was open in the same account at the same time, so the job may be that one's."""

    code = "overlap"


class SecondPerson(Refused):
    """A redispatch that somebody else has to carry out."""

    code = "second_person"


class Unconfirmed(Refused):
    """What costs money was not confirmed; the message states the cost."""

    code = "unconfirmed"


class CandidateExists(Refused):
    """The reply showed a job, and the service has it: that there is none cannot be said."""

    code = "candidate_exists"


class NotFound(CoatcheckError):
    """No such record for this caller. A foreign id and an unknown id give the same answer."""

    code = "not_found"
    exit_code = 3


class Stale(CoatcheckError):
    """The record moved on since it was read. Reload and decide again."""

    code = "stale"
    exit_code = 4


class StaleRevision(Stale):
    """The operation's revision is not the expected one."""


class StaleLease(Stale):
    """The lease ended or the lane was aimed anew; authority to write it is gone."""

    code = "stale_lease"


class Unavailable(CoatcheckError):
    """Database or service out of reach; nothing changed."""

    code = "unavailable"
    exit_code = 6


class SchemaMismatch(Unavailable):
    """The database's schema is not the one this code was written for."""

    code = "schema_behind"


class CommitUnknown(Failed):
    """A commit whose outcome was not seen, so something may have changed. Look for what it would have written; do not repeat it blindly."""

    code = "commit_unknown"
