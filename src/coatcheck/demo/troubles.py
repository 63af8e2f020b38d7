"""What can go wrong with an order, as a table: the words for people, what the simulated service is told, and what must come of it.

`loses` is the demo's own expectation, written down before anything runs: the reply to this POST will not tell what was created.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One kind of trouble. `share` is how often it strikes among 240 orders; `resent` says that common clients send such a POST again."""

    says: str
    sim: Mapping[str, Any] = field(repr=False)
    share: int
    loses: bool = False
    resent: bool = False


def _lost(says: str, share: int, *, resent: bool = True, **fault: Any) -> Trouble:
    """Strikes the first POST only: what a person authorises later is another POST, on another day."""
    return Trouble(says=says, sim={"create": {**fault, "nth": 1}}, share=share, loses=True, resent=resent)


def _create(says: str, share: int, *, resent: bool = False, **fault: Any) -> Trouble:
    return Trouble(says=says, sim={"create": fault}, share=share, resent=resent)


def _look(says: str, share: int, **fault: Any) -> Trouble:
    return Trouble(says=says, sim={"look": fault}, share=share)


def _output(says: str, share: int, **fault: Any) -> Trouble:
    return Trouble(says=says, sim={"output": fault}, share=share)


STALL = _lost("no reply in time", 3, kind="stall")
"""The POST during which a worker is killed. There are several, should the first be over before the kill."""

VANISHED = _lost("connection closed, no reply", 1, kind="drop_before_accept")
"""A POST of which the service made nothing, which looks from outside like one whose job is paid for. One comes late: see `orders`."""

TROUBLES = (
    _lost("connection closed, no reply", 3, kind="accept_then_drop"),
    VANISHED,
    _create("429, then accepted", 5, kind="throttled", retry_after="0.3", nth=1),
    _output("output URL expired", 4, kind="expired", nth=1),
    _lost("connection reset, no reply", 2, kind="accept_then_drop", end="rst"),
    _create("502 that names the job", 3, resent=True, kind="error_with_job_id", status=502),
    Trouble(says="render failed", sim={"outcome": "failed"}, share=4),
    _lost("502 without a job id", 2, kind="status", status=502, form="html", created=True),
    _output("output cut off", 3, kind="cut", at=900, end="rst", nth=1),
    _look("look answered 503", 3, kind="status", status=503, nth=1),
    _lost("reply cut before the job id", 2, kind="cut", at=60, end="rst"),
    _look("declared checksum is wrong", 2, kind="declare_wrong", form="sha256"),
    Trouble(says="render moderated", sim={"outcome": "moderated"}, share=3),
    _create("422, refused", 3, kind="status", status=422),
    _lost("reply cut at its last bytes", 1, kind="cut", at=-3),
    _lost("500 without a job id", 1, kind="status", status=500, created=True),
    _lost("500 without a job id", 1, kind="status", status=500),
    _lost("503 without a job id", 1, kind="status", status=503, form="text"),
    _lost("503 without a job id", 1, kind="status", status=503, created=True),
    _lost("HTML instead of JSON", 1, resent=False, kind="malformed", form="html"),
    _lost("a reply without a job id", 1, resent=False, kind="malformed", form="no_id"),
    _look("look cut off", 3, kind="drop", nth=1),
    _look("look answered with HTML", 2, kind="malformed", form="html", nth=1),
    _look("snapshot of another job", 2, kind="wrong_id", nth=1),
    _look("unknown status word", 2, kind="unknown_word", nth=1),
    _look("job not found for a moment", 2, kind="status", status=404, nth=1),
    _look("long poll closed without news", 3, kind="closed_window", nth=1),
    _output("output answered 503", 2, kind="status", status=503, nth=1),
    _output("a web page instead of the output", 2, kind="replaced", form="html", nth=1),
    _output("output connection dropped", 2, kind="drop", end="rst", nth=1),
    Trouble(says="two outputs", sim={"outputs": 2}, share=8),
    Trouble(says="a video", sim={"outputs": [{"type": "video/mp4", "bytes": 400_000}]}, share=4),
    _create(
        "500 that names a job which succeeds", 1, resent=True, kind="error_with_job_id", status=500, outcome="succeeded"
    ),
    _create("307, not followed", 1, kind="redirect"),
    Trouble(says="render expired", sim={"outcome": "expired"}, share=1),
)
"""In the order in which a small number of orders meets them."""
