"""What each tenant may spend: the price of every render that it orders, and not a credit more. One paid for twice would lack the money."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from coatcheck.demo.orders import PERSON, PRICE, Order
from coatcheck.seams import NO_FAULTS
from coatcheck.store.allowances import set_allowance

UNIT = "credits"


async def grant(url: str, orders: Sequence[Order]) -> dict[str, Decimal]:
    """Set an allowance for every tenant that orders; what each may spend."""
    counts = Counter(order.tenant_id for order in orders)
    limits = {tenant_id: Decimal(PRICE * count) for tenant_id, count in sorted(counts.items())}
    for tenant_id, limit in limits.items():
        await set_allowance(url, tenant_id=tenant_id, unit=UNIT, limit=limit, actor=PERSON, faults=NO_FAULTS)
    return limits
