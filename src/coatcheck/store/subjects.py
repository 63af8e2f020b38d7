"""What leased messages are about: a handler that begins finds on its desk all that it decides on.

The claim itself tells it; what a claim could not tell is loaded in one read.
"""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime

from coatcheck.core.actions import Action
from coatcheck.core.frozen import frozen
from coatcheck.core.operation import Operation, OperationId
from coatcheck.store.db import Database, Row
from coatcheck.store.operations import Delivery, delivery_of, operation_of
from coatcheck.store.statements import statement

Slot = tuple[OperationId, int]


@frozen
class Subject:
    """The operation as it stands, and what the message's action needs of it.

    A dispatch has the text to be sent, a delivery its output, a reconciliation the instant after which nothing can arrive any more.
    """

    operation: Operation
    specification_text: str | None = field(repr=False)
    output: Delivery | None
    quiescent_at: datetime | None


def subject_of(row: Row) -> Subject:
    """The subject in a row that has at least the columns of `parts/subject_columns.sql` and `parts/operation_columns.sql`."""
    return Subject(
        operation=operation_of(row),
        specification_text=row["specification_text"],
        output=delivery_of(row) if row["output_index"] is not None else None,
        quiescent_at=row["quiescent_at"],
    )


async def load_subjects(database: Database, messages: Sequence[tuple[Slot, Action]]) -> dict[Slot, Subject]:
    """The subject of each message, by its slot; one whose operation is gone has none."""
    rows = await database.fetch(
        statement("store", "load_subjects"),
        {
            "operation_id": [operation_id for (operation_id, _), _ in messages],
            "lane": [lane for (_, lane), _ in messages],
            "action": [action for _, action in messages],
        },
    )
    return {(row["operation_id"], row["lane"]): subject_of(row) for row in rows}
