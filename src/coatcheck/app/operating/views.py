"""What a person sees of incidents, and of a message that is taken up, with the names of the outer contract."""

from dataclasses import dataclass, fields
from datetime import datetime

from coatcheck.app.reconciling.views import Decision

Json = dict[str, object]


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
