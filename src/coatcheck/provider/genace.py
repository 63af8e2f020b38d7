"""Genace's generation API as a pure adapter. What Genace does not publish (paths, words, window signals) is a setting, never a guess in code.

The POST's reply names the job at `job_id`, a failed submission at `error.job_id`, a look at `id`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Self
from urllib.parse import quote, urlencode

from coatcheck.config import ProviderSettings, Secret
from coatcheck.core.classify import Rules, classify
from coatcheck.core.events import Accepted, Reply, Snapshot
from coatcheck.core.evidence import Exchange, Request
from coatcheck.core.foreign import Unreadable, at, read_json
from coatcheck.core.operation import FINAL_RENDER_STATES, CancelAnswer, DispatchId, RemoteJobId, RenderState
from coatcheck.core.retry_after import retry_after_s
from coatcheck.provider.discreet import discreet_listing, discreet_reply, discreet_snapshot
from coatcheck.provider.listing import read_listing
from coatcheck.provider.port import (
    Absent,
    CancelAnswered,
    Cancelling,
    Denied,
    Listed,
    Listing,
    Look,
    Nonsense,
    Seen,
    StillWaiting,
    Transient,
)
from coatcheck.provider.snapshot import read_snapshot

STATUS_WORDS: Final[Mapping[str, RenderState]] = MappingProxyType(
    {
        "queued": RenderState.QUEUED,
        "pending": RenderState.QUEUED,
        "submitted": RenderState.QUEUED,
        "starting": RenderState.QUEUED,
        "processing": RenderState.RENDERING,
        "running": RenderState.RENDERING,
        "rendering": RenderState.RENDERING,
        "in_progress": RenderState.RENDERING,
        "succeeded": RenderState.SUCCEEDED,
        "completed": RenderState.SUCCEEDED,
        "complete": RenderState.SUCCEEDED,
        "failed": RenderState.FAILED,
        "error": RenderState.FAILED,
        "canceled": RenderState.CANCELLED,
        "cancelled": RenderState.CANCELLED,
        "expired": RenderState.EXPIRED,
        "moderated": RenderState.MODERATED,
        "nsfw": RenderState.MODERATED,
    }
)
"""What a status word means. A word that is not here is kept, shown, and not final."""

_ACCOUNTS: Final = 64
"""More than one process serves."""
_NOT_BODY: Final = frozenset({"empty", "not_json", "not_utf8"})
"""Causes that speak of a gateway's page or a cut body, not of a service that talks nonsense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Genace:
    """One configured account at one service. Fields are the settings of the same names; `status_words` are all words, in lower case.

    `retry_after_cap_s` is the longest delay in seconds that the service can impose, `agent` the User-Agent.
    """

    base_url: str
    api_key: Secret
    create_path: str
    job_path: str
    list_path: str
    cancel_path: str
    cancel_method: str
    wait_param: str
    closed_statuses: frozenset[int]
    status_words: Mapping[str, RenderState] = field(repr=False)
    throttled_is_uncertain: bool
    retry_after_cap_s: float
    agent: str

    @classmethod
    def configured(cls, settings: ProviderSettings, *, version: str) -> Self:
        """The adapter that one provider's settings describe: `Genace.configured(settings.providers["genace"], version="0.1.0")`.

        Raises SettingInvalid where the service's address or key is not set.
        """
        endpoint = settings.endpoint()
        return cls(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            create_path=settings.create_path,
            job_path=settings.job_path,
            list_path=settings.list_path,
            cancel_path=settings.cancel_path,
            cancel_method=settings.cancel_method,
            wait_param=settings.wait_param,
            closed_statuses=settings.closed_statuses,
            status_words=MappingProxyType({**STATUS_WORDS, **settings.status_words}),
            throttled_is_uncertain=settings.throttled_is_uncertain,
            retry_after_cap_s=settings.throttled_cap_s,
            agent=f"coatcheck/{version}",
        )

    def create(self, specification_text: bytes, *, dispatch_id: DispatchId) -> Request:  # noqa: ARG002 - the port's form
        """The POST of `port.CreatePort`. Genace repeats no reference, so nothing of ours goes along."""
        return self.creation(specification_text)

    def creation(self, specification_text: bytes, *more: tuple[str, str]) -> Request:
        """The POST with `more` headers, for a service of the same form that takes them."""
        headers = (*self._headers(), ("Content-Type", "application/json"), *more)
        return Request(method="POST", url=self._url(self.create_path), headers=headers, body=specification_text)

    def reply(self, exchange: Exchange, *, dispatch_id: DispatchId, now: datetime) -> Reply:
        """The POST's end, as `port.CreatePort` says."""
        reply = classify(exchange, dispatch_id=dispatch_id, rules=self._rules(), now=now)
        reply = discreet_reply(reply, self.api_key.reveal())
        if isinstance(reply, Accepted):
            found = self._first_snapshot(read_json(exchange.body), reply.remote_job_id)
            return reply if found is None else replace(reply, snapshot=found)
        return reply

    def look(self, remote_job_id: RemoteJobId, wait_s: float) -> Request:
        """The GET of `port.LookPort`."""
        url = self._url(self.job_path.replace("{id}", _segment(remote_job_id)))
        return self._get(url, _window(self.wait_param, wait_s) if self.wait_param else "")

    def seen(self, exchange: Exchange, *, remote_job_id: RemoteJobId, now: datetime) -> Look:
        """The look's end, as `port.LookPort` says."""
        if exchange.status is None or not exchange.complete:
            return Transient(cause=exchange.failure or "cut")
        delay_s = retry_after_s(exchange.header("Retry-After"), now=now, cap_s=self.retry_after_cap_s)
        closed = exchange.status in self.closed_statuses
        match exchange.status:
            case success if 200 <= success < 300:  # noqa: PLR2004 - the class of successes, by RFC 9110
                return self._snapshot(exchange, remote_job_id=remote_job_id, closed=closed, delay_s=delay_s)
            case _ if closed:
                return StillWaiting(retry_after_s=delay_s)
            case 401 | 402 | 403:
                return Denied(status=exchange.status)
            case 404 | 410:
                return Absent()
            case other:
                return Transient(cause=f"status_{other}", retry_after_s=delay_s)

    def listed(self, after: datetime, before: datetime) -> Request | None:
        """The GET of `port.ListPort`: Genace publishes no list, so there is one only where LIST_PATH says so."""
        window = {"created_after": _instant(after), "created_before": _instant(before)}
        return self.listing(window) if self.list_path else None

    def listing(self, asked: Mapping[str, str]) -> Request:
        """The GET of the list, asked for by query parameters."""
        return self._get(self._url(self.list_path), urlencode(asked, quote_via=quote))

    def candidates(self, exchange: Exchange, *, now: datetime) -> Listed:
        """The list's end, as `port.ListPort` says."""
        if exchange.status is None or not exchange.complete:
            return Transient(cause=exchange.failure or "cut")
        match exchange.status:
            case HTTPStatus.OK:
                body = read_json(exchange.body)
                if isinstance(body, Unreadable) and body.cause in _NOT_BODY:
                    return Transient(cause=body.cause)
                found = read_listing(body)
                return discreet_listing(found, self.api_key.reveal()) if isinstance(found, Listing) else found
            case 401 | 402 | 403:
                return Denied(status=exchange.status)
            case other:
                delay_s = retry_after_s(exchange.header("Retry-After"), now=now, cap_s=self.retry_after_cap_s)
                return Transient(cause=f"status_{other}", retry_after_s=delay_s)

    def cancel(self, remote_job_id: RemoteJobId) -> Request | None:
        """The request of `port.CancelPort`: Genace publishes none, so there is one only where CANCEL_PATH says so."""
        if not self.cancel_path:
            return None
        url = self._url(self.cancel_path.replace("{id}", _segment(remote_job_id)))
        return Request(method=self.cancel_method, url=url, headers=self._headers())

    def cancelled(self, exchange: Exchange, *, now: datetime) -> Cancelling:
        """The wish's end, as `port.CancelPort` says."""
        delay_s = retry_after_s(exchange.header("Retry-After"), now=now, cap_s=self.retry_after_cap_s)
        match exchange.status:
            case None:
                return Transient(cause=exchange.failure or "cut")
            case taken if 200 <= taken < 300:  # noqa: PLR2004 - the class of successes, by RFC 9110
                return CancelAnswered(answer=CancelAnswer.TAKEN, status=taken)
            case 401 | 402 | 403 | 408 | 425 | 429 as later:
                return Transient(cause=f"status_{later}", retry_after_s=delay_s)
            case broken if broken >= 500 and broken != HTTPStatus.NOT_IMPLEMENTED:  # noqa: PLR2004 - the class of a server's errors
                return Transient(cause=f"status_{broken}", retry_after_s=delay_s)
            case refused:
                return CancelAnswered(answer=CancelAnswer.REFUSED, status=refused)

    def _get(self, url: str, query: str) -> Request:
        if query:
            url += ("&" if "?" in url else "?") + query
        return Request(method="GET", url=url, headers=self._headers())

    def _snapshot(self, exchange: Exchange, *, remote_job_id: RemoteJobId, closed: bool, delay_s: float | None) -> Look:
        body = read_json(exchange.body)
        found = read_snapshot(body, remote_job_id=remote_job_id, words=self.status_words)
        match found:
            case Snapshot():
                return Seen(snapshot=discreet_snapshot(found, self.api_key.reveal()), retry_after_s=delay_s)
            case Nonsense(kind="malformed") if closed:
                # Whatever body comes with the signal that the window closed, it need not be a snapshot.
                return StillWaiting(retry_after_s=delay_s)
            case Nonsense() if isinstance(body, Unreadable) and body.cause in _NOT_BODY:
                return Transient(cause=body.cause, retry_after_s=delay_s)
            case Nonsense():
                return found

    def _first_snapshot(self, body: object, remote_job_id: RemoteJobId) -> Snapshot | None:
        """The snapshot of a reply that already says how the render ended; anything less is left to the first look."""
        if not isinstance(body, dict) or at(body, ("id",)) not in (None, remote_job_id) or not self._is_final(body):
            return None
        found = read_snapshot({**body, "id": remote_job_id}, remote_job_id=remote_job_id, words=self.status_words)
        if isinstance(found, Snapshot):
            found = discreet_snapshot(found, self.api_key.reveal())
        # The first look is what notes an output that is unusable.
        if isinstance(found, Nonsense) or found.render_state not in FINAL_RENDER_STATES or found.unusable_count:
            return None
        return found if found.outputs or found.render_state is not RenderState.SUCCEEDED else None

    def _is_final(self, body: Mapping[str, object]) -> bool:
        """Whether a job's status word is one of the last. Most replies to a POST say that the render is queued, and need no reading further."""
        word = body.get("status")
        return isinstance(word, str) and self.status_words.get(word.lower()) in FINAL_RENDER_STATES

    def _rules(self) -> Rules:
        return Rules(
            id_path=("job_id",),
            failure_id_path=("error", "job_id"),
            throttled_is_uncertain=self.throttled_is_uncertain,
            retry_after_cap_s=self.retry_after_cap_s,
        )

    def _url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path.lstrip('/')}"

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return _headers_of(self.api_key.reveal(), self.agent)


@lru_cache(maxsize=_ACCOUNTS)
def _headers_of(key: str, agent: str) -> tuple[tuple[str, str], ...]:
    """One copy for each account, since thousands of looks are held open with it."""
    return (
        ("Authorization", f"Bearer {key}"),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("User-Agent", agent),
    )


@lru_cache(maxsize=_ACCOUNTS)
def _window(param: str, wait_s: float) -> str:
    """The query that asks a service to hold its answer back; one or two of each account are asked again and again."""
    return urlencode({param: f"{wait_s:g}"}, quote_via=quote)


def _instant(at: datetime) -> str:
    """ISO 8601 in UTC, to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _segment(remote_job_id: RemoteJobId) -> str:
    """The id as one path segment. Dots alone would be folded away as `.` and `..` if they stood there as they are."""
    encoded = quote(remote_job_id, safe="")
    return encoded.replace(".", "%2E") if not encoded.strip(".") else encoded
