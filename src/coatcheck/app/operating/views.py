"""What a person sees of messages and incidents, with the names of the outer contract."""

from dataclasses import dataclass, fields
from datetime import datetime

from coatcheck.app.reconciling.views import Decision

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One instruction that is kept. `message_id` is `<operation_id>.<lane>`; `tenant_id` is None where the operation is gone.

    `lease_count` counts the leases in a row that ended badly, the present one included; `first_leased_at` and `last_leased_at` are the first
    and the last of them. `last_error` is the class of an error, `lease_ended` where a worker died or hung, or the recorded cause of a
    delivery or of a doubt.
    """

    message_id: str
    operation_id: str
    tenant_id: str | None
    provider: str
    account: str | None
    action: str
    phase: str | None
    lane: int
    visible_at: datetime
    lease_count: int
    leased_by: str | None
    leased_at: datetime | None
    wait_reason: str | None
    wait_since_at: datetime | None
    wait_count: int
    parked_at: datetime | None
    park_reason: str | None
    expected_revision: int
    last_error: str | None
    first_leased_at: datetime | None
    last_leased_at: datetime | None

    def as_json(self) -> Json:
        """The fields by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Decision):
    """A message that was set aside and is due again."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A protocol fault, counted for its operation and kind. `meaning` is one sentence, `boundary` the side on which it lies."""

    operation_id: str
    tenant_id: str | None
    kind: str
    boundary: str
    count: int
    first_at: datetime
    last_at: datetime
    detail: str
    meaning: str

    def as_json(self) -> Json:
        """The fields by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
