"""A service of Genace's form that repeats a reference: the POST carries our dispatch id in a header, and its job says it again.

So a lost reply can be found without asking anybody. What counts is what the job says, never what the service was asked for.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Self

from coatcheck.config import ProviderSettings
from coatcheck.core.events import Doubted, Reply
from coatcheck.core.evidence import Exchange, Request
from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.provider.genace import Genace
from coatcheck.provider.port import Ambiguous, Cancelling, Echoed, Found, Listed, Listing, Look, Nonsense, Unechoed

REFERENCE_HEADER: Final = "X-Client-Reference"
REFERENCE_PARAM: Final = "client_reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """One configured account: everything but the reference is as `service` has it."""

    service: Genace

    @classmethod
    def configured(cls, settings: ProviderSettings, *, version: str) -> Self:
        """The adapter that one provider's settings describe: `Echo.configured(settings.providers["studio"], version="0.1.0")`."""
        return cls(service=Genace.configured(settings, version=version))

    def create(self, specification_text: bytes, *, dispatch_id: DispatchId) -> Request:
        """The POST of `port.CreatePort`, with the reference beside the body."""
        return self.service.creation(specification_text, (REFERENCE_HEADER, str(dispatch_id)))

    def reply(self, exchange: Exchange, *, dispatch_id: DispatchId, now: datetime) -> Reply:
        """The POST's end, as `port.CreatePort` says; doubt is looked up before it is a person's."""
        reply = self.service.reply(exchange, dispatch_id=dispatch_id, now=now)
        return replace(reply, looked_up=True) if isinstance(reply, Doubted) else reply

    def look(self, remote_job_id: RemoteJobId, wait_s: float) -> Request:
        """The GET of `port.LookPort`."""
        return self.service.look(remote_job_id, wait_s)

    def seen(self, exchange: Exchange, *, remote_job_id: RemoteJobId, now: datetime) -> Look:
        """The look's end, as `port.LookPort` says."""
        return self.service.seen(exchange, remote_job_id=remote_job_id, now=now)

    def listed(self, after: datetime, before: datetime) -> Request | None:
        """The GET of `port.ListPort`."""
        return self.service.listed(after, before)

    def candidates(self, exchange: Exchange, *, now: datetime) -> Listed:
        """The list's end, as `port.ListPort` says."""
        return self.service.candidates(exchange, now=now)

    def cancel(self, remote_job_id: RemoteJobId) -> Request | None:
        """The request of `port.CancelPort`."""
        return self.service.cancel(remote_job_id)

    def cancelled(self, exchange: Exchange, *, now: datetime) -> Cancelling:
        """The wish's end, as `port.CancelPort` says."""
        return self.service.cancelled(exchange, now=now)

    def find(self, dispatch_id: DispatchId) -> Request:
        """The GET of `port.FindPort`."""
        return self.service.listing({REFERENCE_PARAM: str(dispatch_id)})

    def found(self, exchange: Exchange, *, dispatch_id: DispatchId, now: datetime) -> Found:
        """The search's end, as `port.FindPort` says."""
        listed = self.service.candidates(exchange, now=now)
        return _echoed(listed, str(dispatch_id)) if isinstance(listed, Listing) else listed


def _echoed(listed: Listing, reference: str) -> Found:
    """The one job that repeats the reference. Where the list hides some, "exactly one" cannot be said of it."""
    ours = {each.remote_job_id: each for each in listed.candidates if each.reference == reference}
    match list(ours.values()):
        case []:
            return Unechoed()
        case [_] if listed.is_cut or listed.unusable_count:
            return Nonsense(kind="malformed", detail="jobs")
        case [only]:
            return Echoed(candidate=only)
        case _:
            return Ambiguous(count=len(ours))
