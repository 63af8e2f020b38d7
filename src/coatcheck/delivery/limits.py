"""Every delivery is bounded: bytes, seconds and hops each have a finite limit, and reaching one is a value."""

from dataclasses import dataclass

from coatcheck.errors import SettingInvalid

_HOPS_AT_MOST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one delivery; `total_s` covers all hops, the body, and the sink."""

    max_bytes: int = 2 * 1024**3
    total_s: float = 600.0
    idle_s: float = 30.0
    connect_s: float = 10.0
    max_redirects: int = 3
    retry_after_max_s: float = 3600.0

    def __post_init__(self) -> None:
        if not 0 <= self.max_redirects <= _HOPS_AT_MOST:
            raise SettingInvalid(
                f"expected 0 to {_HOPS_AT_MOST} redirects, got {self.max_redirects}",
                next="Lower the number of redirects.",
            )
        for name, value in (
            ("max_bytes", self.max_bytes),
            ("total_s", self.total_s),
            ("idle_s", self.idle_s),
            ("connect_s", self.connect_s),
            ("retry_after_max_s", self.retry_after_max_s),
        ):
            if not 0 < value < float("inf"):
                raise SettingInvalid(
                    f"expected a finite {name} above 0, got {value}", next=f"Give {name} a real bound."
                )
