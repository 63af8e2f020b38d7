"""A worker begins less where claims become slow, but only while somebody else could wait for it."""

from coatcheck.workers.pace import BURST, COMPANY_S, LEAST, Pace

PLACES = 32
ALONE, TWO = frozenset({"flood"}), frozenset({"flood", "ada"})
QUICK, MEDIUM, SLOW = 0.005, 0.0065, 0.05


def paced(*claims: tuple[float, frozenset[str]]) -> Pace:
    """After claims of these durations and tenants, one each 0.1 s, of one row; the first one is quick."""
    pace = Pace()
    for number, (took_s, tenants) in enumerate(((QUICK, ALONE), *claims)):
        learned(pace, 1000 + number / 10, took_s, tenants, begun=pace.starts(PLACES) / PLACES)
    return pace


def learned(
    pace: Pace, now: float, took_s: float, tenants: frozenset[str], *, rows: int = 1, begun: float = 1.0
) -> None:
    pace.met(now, tenants)
    pace.learn(now, took_s=took_s, rows=rows, begun=begun)


def starts(*claims: tuple[float, frozenset[str]]) -> int:
    return paced(*claims).starts(PLACES)


def test_one_tenant_alone_fills_a_worker_however_slow_it_becomes() -> None:
    assert starts(*[(SLOW, ALONE)] * 50) == PLACES


def test_in_company_slow_claims_begin_less_down_to_a_few_and_quick_ones_one_more_each() -> None:
    assert [starts(*[(SLOW, TWO)] * count) for count in range(6)] == [32, 19, 11, 7, 4, LEAST]
    assert starts(*[(SLOW, TWO)] * 50) == LEAST
    assert starts(*[(SLOW, TWO)] * 50, *[(QUICK, ALONE)] * 7) == LEAST + 7
    assert starts(*[(QUICK, TWO)] * 50) == PLACES


def test_in_company_claims_that_are_neither_quick_nor_slow_begin_small_bursts() -> None:
    assert starts((MEDIUM, TWO)) == BURST * PLACES
    assert starts(*[(SLOW, TWO)] * 50, *[(MEDIUM, TWO)] * 50) == BURST * PLACES


def test_each_kind_begins_its_share_of_its_places() -> None:
    pace = paced((MEDIUM, TWO))
    assert [pace.starts(places) for places in (1000, 32, 1)] == [188, 6, LEAST]


def test_many_rows_may_take_longer() -> None:
    pace = paced((QUICK, TWO))
    learned(pace, 1001, QUICK * 4, TWO, rows=64)
    assert pace.starts(PLACES) == BURST * PLACES
    learned(pace, 1002, QUICK * 4, TWO, rows=1)
    assert pace.starts(PLACES) < BURST * PLACES


def test_tenants_that_come_one_after_the_other_are_company() -> None:
    assert starts((SLOW, frozenset({"ada"}))) < PLACES


def test_what_began_little_shows_that_even_that_is_too_much() -> None:
    pace = paced((QUICK, TWO))
    learned(pace, 1001, SLOW, TWO, begun=10 / PLACES)
    assert pace.starts(PLACES) == 6


def test_a_claim_that_is_quick_is_never_too_slow() -> None:
    pace = Pace()
    for took_s in (0.001, 0.0059):
        learned(pace, 1000, took_s, TWO)
    assert pace.starts(PLACES) == PLACES


def test_company_that_is_gone_is_forgotten() -> None:
    pace = paced(*[(SLOW, TWO)] * 9)
    for at in (1001, 1001 + COMPANY_S):
        learned(pace, at, SLOW, ALONE)
    assert pace.starts(PLACES) == PLACES


def test_a_machine_that_became_slower_for_good_is_not_held_back_for_good() -> None:
    assert starts(*[(SLOW, TWO)] * 2000) > LEAST
