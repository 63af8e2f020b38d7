"""A service that throws a POST back with Retry-After is left alone by everyone of the account for so long, and a wrong value is none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import postgres
from coatcheck.sim import ThreadedService, simulated_service
from workers.studio import Studio

CAP_S = 40
DATE_S = 25
"""Ahead of now; a date has whole seconds, and the reply takes its time."""


@pytest.fixture
def sim() -> Iterator[ThreadedService]:
    with simulated_service(seed=7) as running:
        yield running


@pytest.fixture
def studio(database: postgres.Database, sim: ThreadedService, tmp_path: Path) -> Iterator[Studio]:
    with Studio(database, sim, tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, {"retry_after": "7"}, (7, 7)),
        (503, {"retry_after": "7"}, (7, 7)),
        (503, {"retry_after_date_s": DATE_S}, (DATE_S - 5, DATE_S)),
        (429, {"retry_after": "99999999"}, (CAP_S, CAP_S)),
        (429, {"retry_after": "soon"}, None),
        (503, {"retry_after_date_s": -3600}, None),
    ],
)
def test_retry_after_shuts_the_account_for_so_long_and_no_longer_than_the_cap(
    studio: Studio, status: int, header: dict[str, Any], seconds: tuple[float, float] | None
) -> None:
    studio.sim.script([{"on": "create", "nth": 1, "kind": "throttled", "status": status, **header}])
    orders = studio.enqueue(count=2)

    def ended() -> object:
        """One was thrown back; the other one found the account shut, or was sent."""
        over = studio.rows("select http_status from coatcheck.dispatches where ended_at is not null")
        shut = studio.rows("select from coatcheck.outbox where wait_reason = 'rate'")
        return status in {row["http_status"] for row in over} and len(over) + len(shut) == len(orders)

    studio.work_until(ended, KIND="genace", THROTTLED_CAP_S=str(CAP_S))
    told = studio.one("""
        select extract(epoch from budget.dispatch_shut_until - sent.ended_at)::float8 as shut_s,
          extract(epoch from waiting.visible_at - budget.dispatch_shut_until)::float8 as later_s
        from coatcheck.dispatches as sent
        join coatcheck.accounts as budget using (account)
        left join coatcheck.outbox as waiting on waiting.wait_reason = 'rate'
        where sent.number = 1 and sent.http_status in (429, 503)""")
    if seconds is None:
        assert (told["shut_s"] or 0) < 0.5
        assert len(studio.sim.posts) == 2
    else:
        assert seconds[0] - 0.5 <= told["shut_s"] <= seconds[1] + 0.5
        assert told["later_s"] == pytest.approx(0, abs=0.5)
        assert len(studio.sim.posts) == 1
