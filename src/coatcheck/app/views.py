"""An operation as the outer contract shows it: its fields and their names are promised, in Python as in JSON."""

from dataclasses import dataclass
from datetime import UTC, datetime

from coatcheck.core.operation import DeliveryState, Phase, RenderState

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output. `uri`, `sha256` and `bytes` are there once it is delivered; `content_type` is what its bytes are, else what was declared."""

    index: int
    state: str
    uri: str | None
    sha256: str | None
    bytes: int | None
    content_type: str | None

    def as_json(self) -> Json:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation as it stood when it was read."""

    operation_id: str
    tenant_id: str
    operation_key: str
    provider: str
    specification_hash: str
    phase: Phase
    render_state: RenderState
    remote_status: str | None
    delivery_state: DeliveryState
    remote_job_id: str | None
    revision: int
    created_at: datetime
    updated_at: datetime
    outputs: tuple[Output, ...]

    def as_json(self) -> Json:
        """The fields by name, instants in ISO 8601 and UTC."""
        found = {name: _plain(getattr(self, name)) for name in self.__slots__}
        return found | {"outputs": [output.as_json() for output in self.outputs]}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedOperation:
    """What enqueue answers. `created` is False when an earlier call had made the operation, whatever became of it since."""

    operation_id: str
    tenant_id: str
    operation_key: str
    provider: str
    specification_hash: str
    phase: Phase
    revision: int
    created: bool

    def as_json(self) -> Json:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def _plain(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
