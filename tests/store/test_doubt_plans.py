"""What is in doubt is found by way of the outbox, among however many operations there are, and no list walks what is not its own."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID

import pytest
from psycopg import sql

import postgres
from coatcheck.store.statements import statement
from store.ground import Ground
from store.test_plans import BIG, Plan, walked
from store.test_statements import PARAMETER

CROWD: Sequence[LiteralString] = (
    """insert into coatcheck.operations (operation_id, tenant_id, operation_key, provider, account, specification_hash, authorised_by,
         created_at, updated_at, phase, dispatch_id, remote_job_id)
       select coatcheck.new_id(), 't' || n % 50, 'crowd' || n, 'genace', 'genace', sha256('x'), 'crowd', now(), now(),
         case when n % 500 = 0 then 'uncertain' else 'accepted' end, coatcheck.new_id(), case when n % 500 > 0 then 'job' || n end
       from generate_series(1, 20000) as n""",
    """insert into coatcheck.dispatches (dispatch_id, operation_id, number, authorisation, authorised_by, account, worker, begun_at,
         send_by_at, quiescent_at, outcome)
       select dispatch_id, operation_id, 1, 1, 'crowd', 'genace', 'w', now(), now(), now(),
         case phase when 'uncertain' then 'uncertain' else 'accepted' end from coatcheck.operations""",
    """insert into coatcheck.outbox (operation_id, lane, action, provider, account, expected_revision, visible_at, parked_at, park_reason)
       select operation_id, 0, case phase when 'uncertain' then 'reconcile' else 'observe' end, 'genace', 'genace', 0, now(),
         case phase when 'uncertain' then now() end, case phase when 'uncertain' then 'uncertain' end
       from coatcheck.operations""",
    """insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)
       select 'genace', remote_job_id, operation_id, dispatch_id, case when operation_key like '%000' then 'orphan' else 'owner' end, now()
       from coatcheck.operations where remote_job_id is not null""",
    """insert into coatcheck.remote_jobs (account, remote_job_id, operation_id, dispatch_id, role, seen_at)
       select 'other', operation_id::text, operation_id, dispatch_id, 'orphan', now() from coatcheck.operations where phase = 'uncertain'""",
    """insert into coatcheck.history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)
       select operation_id, 0, 'generation_requested', 'crowd', now(), 'prepared', 'none', 'not_started' from coatcheck.operations""",
    "insert into coatcheck.specifications (operation_id, specification_text) select operation_id, '{}' from coatcheck.operations",
    """insert into coatcheck.deliveries (operation_id, output_index, source, updated_at)
       select operation_id, 0, 'http://a/0', now() from coatcheck.operations""",
    """insert into coatcheck.snapshots (operation_id, remote_job_id, remote_status, seen_at)
       select operation_id, 'job', 'succeeded', now() from coatcheck.operations""",
    """insert into coatcheck.incidents (operation_id, kind, boundary, detail, first_at, last_at)
       select operation_id, 'odd', 'theirs', 'odd', now(), now() from coatcheck.operations""",
    "analyze",
)
FIRST = UUID(int=0)
WINDOW = {"since": "2000-01-01", "until": "2100-01-01"}
PAGES: Mapping[str, dict[str, Any]] = {
    "list_doubts": {
        "park_reason": ["uncertain", "lease_count", "missing", "stalled"],
        "tenant_id": None,
        "after": FIRST,
        "size": 10,
    },
    "find_overlaps": {"account": "genace", "tenant_id": "t1", **WINDOW},
    "list_orphans": {"after": FIRST, "after_account": "", "after_job": "", "with_resolved": False, "size": 10},
    "find_jobs": {"account": ["genace", "other"], "remote_job_id": ["job1", "job2"]},
    "resolve_orphan": {
        "account": "other",
        "remote_job_id": "none",
        "charged": None,
        "revision": None,
        "actor": "eve",
        "reason": "why",
    },
    "load_doubt": {"tenant_id": None},
    "orphans_of": {},
    "retire": {"after": FIRST, "days": 0, "tenant_id": None, "size": 100, "actor": "eve", "reason": None},
    "count_retirable": {"after": FIRST, "days": 0, "tenant_id": None, "size": 100},
}


@pytest.fixture(scope="module")
def ground(template: postgres.Template) -> Iterator[Ground]:
    with template.copy() as database, Ground(database) as made:
        for query in CROWD:
            made.sql(query)
        yield made


def plan_of(ground: Ground, name: str, parameters: Mapping[str, Any], *, generic: bool) -> Plan:
    ground.connection.execute(f"set plan_cache_mode = force_{'generic' if generic else 'custom'}_plan")
    names = list(dict.fromkeys(found[0] for found in PARAMETER.findall(statement("store", name))))
    body = PARAMETER.sub(
        lambda found: f"${names.index(found[1]) + 1}{found[2] or ''}", statement("store", name)
    ).replace("%%", "%")
    ground.connection.execute(f"prepare probe as {body}".encode())
    values = sql.SQL(", ").join(sql.Literal(parameters[name]) for name in names)
    explain = sql.SQL("explain (format json) execute probe({})").format(values)
    (row,) = ground.connection.execute(explain).fetchall()
    ground.connection.execute("deallocate probe")
    return walked(row["QUERY PLAN"][0]["Plan"], Plan())


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize("name", PAGES)
def test_no_table_is_walked(ground: Ground, name: str, generic: bool) -> None:
    (some,) = ground.sql("select operation_id from coatcheck.operations where phase = 'uncertain' limit 1")
    plan = plan_of(ground, name, {**some, **PAGES[name]}, generic=generic)
    assert plan.scanned.isdisjoint(BIG - {"allowances"})


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("list_doubts", {"outbox_doubt_idx", "outbox_parked_idx"}),
        ("find_overlaps", {"dispatches_doubt_idx"}),
        ("list_orphans", {"remote_jobs_orphans_idx"}),
    ],
)
def test_a_list_is_read_by_the_index_of_what_waits(ground: Ground, name: str, indexes: set[str]) -> None:
    assert indexes <= plan_of(ground, name, PAGES[name], generic=False).indexes
