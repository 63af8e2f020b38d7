"""An operation as the outer contract shows it: its fields and their names are promised, in Python as in JSON."""

from dataclasses import dataclass, fields
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
        found = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}
        return found | {"outputs": [output.as_json() for output in self.outputs]}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedOperation(Operation):
    """The operation that enqueue made, or found: `created` is False when an earlier call had made it.

    An application's role may enqueue and not read, so this is what the answer tells: id, hash, phase and revision as they are. All else is
    as at the beginning (`none`, `not_started`, no output), and both instants are the one in the id, good to some milliseconds. Of an operation that
    was created that is all there is; how far one that was found has come, `for_tenant(…).get(operation_id)` reads.
    """

    created: bool


def _plain(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
