"""Reads as values, so that many handlers' loads become one statement."""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.core.operation import Operation, OperationId
from coatcheck.store.db import Database
from coatcheck.store.operations import Delivery, load, load_deliveries


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOf:
    """Load one operation."""

    operation_id: OperationId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesOf:
    """Load the outputs of one operation."""

    operation_id: OperationId


class Reader:
    """Answers batches of reads over one connection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def operations(self, batch: Sequence[OperationOf]) -> list[Operation | None]:
        """Operations, None for one that does not exist."""
        found = await load(self._database, [read.operation_id for read in batch])
        return [found.get(read.operation_id) for read in batch]

    async def deliveries(self, batch: Sequence[DeliveriesOf]) -> list[tuple[Delivery, ...]]:
        """Outputs of operations."""
        found = await load_deliveries(self._database, [read.operation_id for read in batch])
        return [found[read.operation_id] for read in batch]
