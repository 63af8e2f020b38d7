"""What is ordered and what goes wrong: the same for the same seed, and every trouble in a demo of the usual size."""

import pytest

from coatcheck.demo.orders import TENANTS, drawn
from coatcheck.demo.troubles import STALL, TROUBLES, Trouble
from coatcheck.sim.script import parse_directives

COUNTS = [24, 30, 240, 1000]


def test_a_seed_draws_the_same_orders_and_another_seed_others() -> None:
    assert drawn(240, 7) == drawn(240, 7)
    assert drawn(240, 7) != drawn(240, 8)


@pytest.mark.parametrize("count", COUNTS)
def test_every_order_is_an_intent_of_its_own_and_at_most_half_meet_trouble(count: int) -> None:
    orders = drawn(count, 7)
    assert len({order.specification.sha256_hex for order in orders}) == count
    assert len({(order.tenant_id, order.key) for order in orders}) == count
    assert {order.tenant_id for order in orders} == set(TENANTS)
    assert sum(order.trouble is not None for order in orders) <= count // 2
    assert sum(order.trouble is STALL for order in orders) == STALL.share


@pytest.mark.parametrize("seed", range(5))
def test_the_usual_size_meets_every_trouble(seed: int) -> None:
    met = [order.trouble for order in drawn(240, seed)]
    assert [trouble.says for trouble in (STALL, *TROUBLES) if trouble not in met] == []


@pytest.mark.parametrize("trouble", [STALL, *TROUBLES], ids=lambda trouble: trouble.says)
def test_the_simulated_service_understands_every_trouble(trouble: Trouble) -> None:
    directives = parse_directives(dict(trouble.sim))
    assert directives.create or directives.rules or directives.course
