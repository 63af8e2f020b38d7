"""What a person's command may ask a service: looks, searches and lists of one account. GETs only, each once; nothing here can create."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from coatcheck.app.providers import adapter_of, finder_of
from coatcheck.config import ProviderSettings
from coatcheck.core.operation import DispatchId, RemoteJobId
from coatcheck.provider.connecting import secure_context
from coatcheck.provider.http import Gets
from coatcheck.provider.looking import find_once, list_once, look_once
from coatcheck.provider.port import FindPort, Found, Getter, Listed, ListPort, Look, LookPort
from coatcheck.seams import Seams

ANSWER_S = 15.0
"""How long a person waits for one answer, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One configured account, asked with its own credential. Remote faults are in the answers, never raised."""

    provider: ProviderSettings
    look_port: LookPort
    list_port: ListPort
    find_port: FindPort | None
    gets: Getter
    seams: Seams

    async def look(self, remote_job_id: RemoteJobId) -> Look:
        """How one job stands now: `Seen(snapshot)` with its `created_at` and `reference`, or `Absent`, `Denied`, `Transient`, `Nonsense`."""
        return await look_once(
            self.look_port, self.gets, remote_job_id, timeout_s=self._answer_s, clock=self.seams.clock
        )

    async def find(self, dispatch_id: DispatchId) -> Found | None:
        """Which job repeats the reference of a dispatch; None where the service repeats none."""
        if self.find_port is None:
            return None
        return await find_once(self.find_port, self.gets, dispatch_id, timeout_s=self._answer_s, clock=self.seams.clock)

    async def listed(self, after: datetime, before: datetime) -> Listed | None:
        """The account's jobs that were created in a window, to be shown and never acted on; None where the service has no list."""
        return await list_once(
            self.list_port,
            self.gets,
            after=after,
            before=before,
            timeout_s=self._answer_s,
            clock=self.seams.clock,
        )

    @property
    def _answer_s(self) -> float:
        return min(ANSWER_S, self.provider.observe_timeout_s)


@asynccontextmanager
async def asking(provider: ProviderSettings, seams: Seams) -> AsyncIterator[Asking]:
    """One configured account, for the length of a block.

        async with asking(settings.providers["genace"], Seams.real()) as ask:
            look = await ask.look(RemoteJobId("job-1"))

    Raises `SettingInvalid` where the service's address or key is not set.
    """
    adapter = adapter_of(provider)
    async with Gets(tls=_tls(), seams=seams) as gets:
        yield Asking(
            provider=provider,
            look_port=adapter,
            list_port=adapter,
            find_port=finder_of(provider),
            gets=gets,
            seams=seams,
        )


@cache
def _tls() -> ssl.SSLContext:
    """Made once: reading the machine's certificates takes 50 ms, and decisions in bulk ask one job after the other."""
    return secure_context()
