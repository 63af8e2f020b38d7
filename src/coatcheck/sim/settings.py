"""What Genace does not publish is a setting of the simulated service, with the defaults that coatcheck's own settings document."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coatcheck.errors import Refused
from coatcheck.sim.checks import Check, Number, Unfit, checked, integer, number, one_of, or_null, pair, text


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Style, paths, pace and price of the service. Ranges are [low, high) in seconds, drawn per job from the seed."""

    style: str = "genace"
    create_path: str = "/api/v1/jobs"
    job_path: str = "/api/v1/jobs/{id}"
    cancel_path: str = ""
    cancel_status: int | None = None
    wait_param: str = "wait"
    wait_max_s: Number = 60
    created_status: int = 201
    price: Number = 5
    queued_s: tuple[Number, Number] = (0.02, 0.15)
    processing_s: tuple[Number, Number] = (0.05, 0.35)
    outputs_as: str = "objects"
    url_life_s: Number | None = None
    expired_status: int = 403
    receive_buffer_bytes: int | None = None
    body_limit_bytes: int = 33_554_432

    @property
    def echoes(self) -> bool:
        """Whether a job repeats the `X-Client-Reference` of its POST, and whether there is a list to find it in."""
        return self.style == "echo"

    def cancelled_id(self, path: str) -> str | None:
        """The id of the job that a path asks to cancel; None where it asks for something else, or nothing can be cancelled."""
        before, _, after = self.cancel_path.partition("{id}")
        if not self.cancel_path or len(path) <= len(before + after):
            return None
        return path[len(before) : len(path) - len(after)] if path.startswith(before) and path.endswith(after) else None

    @property
    def job_prefix(self) -> str:
        """What stands before the id in a job's path."""
        return self.job_path.partition("{id}")[0]

    @property
    def job_suffix(self) -> str:
        """What stands after the id in a job's path."""
        return self.job_path.partition("{id}")[2]


def _path(value: object) -> str:
    if not (found := text(value)).startswith("/") or found.startswith("/_sim"):
        raise Unfit("a path that starts with / and not with /_sim")
    return found


STYLES = ("genace", "echo")
_CHECKS: Mapping[str, Check] = {
    "style": one_of(*STYLES),
    "create_path": _path,
    "job_path": _path,
    "cancel_path": lambda value: "" if value == "" else _path(value),
    "cancel_status": or_null(integer(200, 599)),
    "wait_param": text,
    "wait_max_s": number(),
    "created_status": integer(200, 299),
    "price": number(),
    "queued_s": pair,
    "processing_s": pair,
    "outputs_as": one_of("objects", "urls"),
    "url_life_s": or_null(number()),
    "expired_status": integer(400, 499),
    "receive_buffer_bytes": or_null(integer(1)),
    "body_limit_bytes": integer(1),
}


def changed_settings(settings: ServiceSettings, data: Mapping[str, Any]) -> ServiceSettings:
    """`settings` with the script's `service` object laid over it. Raises Refused naming the setting."""
    found = replace(settings, **checked(data, _CHECKS, where="service"))
    if found.job_path.count("{id}") != 1:
        raise Refused(
            f"service: job_path must contain {{id}} once, got {found.job_path!r}", next="for example /api/v1/jobs/{id}"
        )
    if found.cancel_path and found.cancel_path.count("{id}") != 1:
        raise Refused(
            f"service: cancel_path must contain {{id}} once, got {found.cancel_path!r}",
            next="for example /api/v1/jobs/{id}/cancel",
        )
    return found
