"""A worker begins less where claims become slow, but only while somebody else could wait for it."""

from coatcheck.workers.pace import COMPANY_S, LEAST, Pace

ALONE, TWO = frozenset({"flood"}), frozenset({"flood", "ada"})
QUICK, SLOW = 0.005, 0.05


def paced(*claims: tuple[float, frozenset[str]], most: int = 32) -> Pace:
    """After claims of these durations and tenants, one each 0.1 s; the first one is quick."""
    pace = Pace(most)
    for number, (took_s, tenants) in enumerate(((QUICK, ALONE), *claims)):
        pace.learn(1000 + number / 10, took_s=took_s, begun=pace.starts, tenants=tenants)
    return pace


def test_one_tenant_alone_fills_a_worker_however_slow_it_becomes() -> None:
    assert paced(*[(SLOW, ALONE)] * 50).starts == 32


def test_in_company_slow_claims_begin_less_down_to_a_few_and_quick_ones_one_more_each() -> None:
    assert [paced(*[(SLOW, TWO)] * count).starts for count in range(6)] == [32, 19, 11, 7, 4, LEAST]
    assert paced(*[(SLOW, TWO)] * 50).starts == LEAST
    assert paced(*[(SLOW, TWO)] * 50, *[(QUICK, ALONE)] * 7).starts == LEAST + 7
    assert paced(*[(QUICK, TWO)] * 50).starts == 32


def test_tenants_that_come_one_after_the_other_are_company() -> None:
    assert paced((SLOW, frozenset({"ada"}))).starts < 32


def test_what_began_little_shows_that_even_that_is_too_much() -> None:
    pace = paced((QUICK, TWO))
    pace.learn(1001, took_s=SLOW, begun=10, tenants=TWO)
    assert pace.starts == 6


def test_a_claim_that_is_quick_is_never_too_slow() -> None:
    pace = Pace(32)
    for took_s in (0.001, 0.0059):
        pace.learn(1000, took_s=took_s, begun=32, tenants=TWO)
    assert pace.starts == 32


def test_company_that_is_gone_is_forgotten() -> None:
    pace = paced(*[(SLOW, TWO)] * 9)
    for at in (1001, 1001 + COMPANY_S):
        pace.learn(at, took_s=SLOW, begun=2, tenants=ALONE)
    assert pace.starts == 32


def test_a_machine_that_became_slower_for_good_is_not_held_back_for_good() -> None:
    assert paced(*[(SLOW, TWO)] * 2000).starts > LEAST
