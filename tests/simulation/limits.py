"""What a run's operator sets: allowances of tenants, one of them too small until all is healed, and the budget of the account."""

import random
from decimal import Decimal

from coatcheck.store.budgets import Budget, _wish
from coatcheck.store.statements import statement
from memory.store import Memory
from simulation.people import TENANTS

_SMALL, _LARGE = Decimal(15), Decimal(100_000)


def allow(memory: Memory, tenant_id: str, ceiling: Decimal | None) -> None:
    """As `coatcheck allowance set`: whoever waits for it is due at once."""
    wish = {"tenant_id": tenant_id, "unit": "credits", "ceiling": ceiling, "actor": "ada"}
    is_there = memory.tables.allowances.get((tenant_id, "credits")) is not None
    memory.run(statement("store", "change_allowance" if is_there else "open_allowance"), wish)
    memory.run(statement("store", "wake_allowance"), {"tenant_id": tenant_id, "unit": "credits"})


def allow_some(memory: Memory, chance: random.Random) -> None:
    """At the beginning of a run."""
    for tenant_id in TENANTS:
        ceiling = chance.choice((_SMALL, _LARGE, None))
        if chance.random() < 0.8:
            allow(memory, tenant_id, ceiling)


def allow_all(memory: Memory) -> None:
    """Once all is healed nobody waits for money."""
    for row in memory.tables.allowances:
        allow(memory, row["tenant_id"], _LARGE)


def limit(memory: Memory, chance: random.Random) -> None:
    """As `coatcheck providers set`, once the account is known: some runs go on under a budget."""
    if memory.tables.providers.get("genace") is not None and chance.random() < 0.4:
        budget = Budget(
            max_in_flight=chance.choice((2, 4, None)),
            dispatches_per_s=chance.choice((1.0, None)),
            looks_per_s=chance.choice((5.0, None)),
        )
        memory.run(statement("store", "change_budget"), _wish("genace", budget))
        memory.run(statement("store", "wake_budgeted"), {"name": "genace"})
