"""Numbers that the pages tell of the code are the code's: how often wrong bytes are asked for, and when nothing can arrive any more."""

from coatcheck.config.table import PROVIDER, TOP
from coatcheck.workers import deliver
from docs.pages import DOCS, read

OPERATING = " ".join(read(DOCS / "operating.md").split())
DEFAULTS = {each.name: each.default for each in PROVIDER}


def seconds(*names: str) -> int:
    found = [DEFAULTS[name] for name in names]
    assert all(isinstance(each, int | float) for each in found), found
    return sum(int(each) for each in found if isinstance(each, int | float))


def test_how_often_wrong_bytes_are_asked_for_is_told() -> None:
    count = deliver._WRONG_BYTES_TRIES
    causes = {each.value for each in deliver._WRONG_BYTES}
    (setting,) = [each for each in TOP if each.name == "deliver_tries"]
    assert f"after {count} at most" in setting.meaning
    assert [cause for cause in causes if cause not in setting.meaning] == []
    assert f"of wrong bytes up to {count} times" in OPERATING
    rows = [line for line in read(DOCS / "operating.md").splitlines() if f": {count} tries at most |" in line]
    assert {cause for cause in causes if any(f"`{cause}`" in row.split("|")[1] for row in rows)} == causes


def test_when_nothing_can_arrive_any_more_is_told_for_an_end_that_was_seen_and_one_that_was_not() -> None:
    seen = seconds("service_lag_s", "margin_s")
    unseen = seconds("send_s", "timeout_s", "service_lag_s", "margin_s")
    assert f"`SERVICE_LAG_S` and `MARGIN_S` after the end, {seen} s with the defaults" in OPERATING
    assert f"`SEND_S`, `TIMEOUT_S`, `SERVICE_LAG_S` and `MARGIN_S` after the mark, {unseen} s" in OPERATING
