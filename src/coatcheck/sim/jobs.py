"""Remote jobs: what a job is at an instant follows from its course and the clock alone; no task has to run for it to advance."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from coatcheck.sim.chance import Chance
from coatcheck.sim.course import Course
from coatcheck.sim.media import PIECE_BYTES, Media
from coatcheck.sim.script import Rule

FINAL_WORDS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "moderated": "moderated",
    "cancelled": "cancelled",
    "expired": "expired",
}
INLINE_BYTES = 4_194_304


@dataclass(slots=True, kw_only=True)
class Job:
    """One job. Instants are the clock's seconds, but for `created_at`, which is told; `url_generation` rises when told URLs have expired.

    `owner` stands for the key that created it, `reference` is what its POST asked to be repeated.
    """

    id: str
    number: int
    post: int
    at: float
    created_at: str
    owner: str = field(repr=False)
    reference: str | None
    prompt: str | None = field(repr=False)
    course: Course
    rules: tuple[Rule, ...]
    media: tuple[Media, ...]
    looks: int = 0
    told_final: bool = False
    url_generation: int = 0
    url_told_at: float | None = None
    url_revoked: bool = False
    gone_status: int | None = None
    downloads: Counter[int] = field(default_factory=Counter)
    downloads_with_credentials: int = 0
    digests: dict[int, str] = field(default_factory=dict)

    def status(self, now: float) -> str:
        """The status word at `now`."""
        age = now - self.at
        if age < self.course.queued_s:
            return "queued"
        if age < self.course.queued_s + self.course.processing_s or self.course.outcome == "stuck":
            return "processing"
        return self.course.final_word or FINAL_WORDS[self.course.outcome]

    def final(self, now: float) -> bool:
        """Whether the job is over at `now`."""
        return self.course.outcome != "stuck" and now - self.at >= self.course.queued_s + self.course.processing_s

    def succeeded(self, now: float) -> bool:
        """Whether there are files at `now`."""
        return self.course.outcome == "succeeded" and self.final(now)

    def next_change(self, now: float) -> float | None:
        """The instant of the next change of status, None when there is none."""
        started = self.at + self.course.queued_s
        changes = [started] if self.course.outcome == "stuck" else [started, started + self.course.processing_s]
        return next((change for change in changes if change > now), None)

    async def digest(self, index: int) -> str:
        """The SHA-256 of a file; large ones are hashed in a thread so that nobody else waits."""
        if index not in self.digests:
            media = self.media[index]
            large = (media.length or 0) > INLINE_BYTES
            self.digests[index] = await asyncio.to_thread(media.sha256) if large else media.sha256()
        return self.digests[index]

    async def as_json(self, now: float) -> dict[str, Any]:
        """The job as `/_sim/jobs` shows it: what it is, how often it was looked at, what its files must look like."""
        files = [
            {
                "index": index,
                "type": media.content_type,
                "bytes": media.length,
                "sha256": await self.digest(index),
                "downloads": self.downloads[index],
            }
            for index, media in enumerate(self.media)
        ]
        return {
            "id": self.id,
            "number": self.number,
            "post": self.post,
            "created_at": self.created_at,
            "reference": self.reference,
            "status": self.status(now),
            "final": self.final(now),
            "outcome": self.course.outcome,
            "looks": self.looks,
            "downloads": self.downloads.total(),
            "downloads_with_credentials": self.downloads_with_credentials,
            "charged": self.course.price,
            "refunded": self.course.refunded if self.final(now) else 0,
            "outputs": files if self.succeeded(now) else [],
        }


def make_media(chance: Chance, job_id: str, course: Course) -> tuple[Media, ...]:
    """The files of a job: size and bytes drawn from the seed where the course leaves them open."""

    def media(index: int) -> Media:
        plan = course.outputs[index]
        drawn = int(chance.between(2_000, 6_000, "size", job_id, index))
        length = drawn if plan.size_bytes is None else plan.size_bytes
        size = min(max(length, 64), PIECE_BYTES)
        return Media(
            content_type=plan.content_type, length=length, block=chance.block("file", job_id, index, size_bytes=size)
        )

    return tuple(media(index) for index in range(len(course.outputs)))
