"""`migrate check` sees whatever is not as the migrations made it, and nothing where all is well."""

import psycopg
import pytest

import postgres
from coatcheck.store import catalogue
from coatcheck.store.catalogue import Kind

MISSING = {
    "column history.reason": "alter table coatcheck.history drop column reason",
    "constraint operations.operations_mark": "alter table coatcheck.operations drop constraint operations_mark",
    "index outbox.outbox_due_idx": "drop index coatcheck.outbox_due_idx",
    "trigger specifications.specifications_immutable": "drop trigger specifications_immutable on coatcheck.specifications",
    "function is_json(candidate text)": "drop function coatcheck.is_json(text)",
}
DIFFERENT = {
    "column operations.priority": "alter table coatcheck.operations alter column priority type integer",
    "column operations.authorised_by": "alter table coatcheck.operations alter column authorised_by drop not null",
    "column outbox.lease_count": "alter table coatcheck.outbox alter column lease_count set default 1",
    "constraint dispatches.dispatches_basis": "alter table coatcheck.dispatches drop constraint dispatches_basis,"
    " add constraint dispatches_basis check (basis <> '')",
    "index dispatches.dispatches_authorisation_idx": "update pg_index set indisvalid = false"
    " where indexrelid = 'coatcheck.dispatches_authorisation_idx'::regclass",
    "trigger history.history_append_only": "alter table coatcheck.history disable trigger history_append_only",
    "function lease_now()": "create or replace function coatcheck.lease_now() returns timestamptz language sql volatile"
    " parallel safe as 'select now()'",
    "function enqueue_v1(request jsonb)": "alter function coatcheck.enqueue_v1(jsonb) security invoker",
    "sequence lease_tokens": "alter sequence coatcheck.lease_tokens cache 50",
    "table specifications": "alter table coatcheck.specifications set unlogged",
}
CHANGES = [
    pytest.param(kind, subject, change, id=subject)
    for kind, changes in ((Kind.MISSING, MISSING), (Kind.DIFFERENT, DIFFERENT))
    for subject, change in changes.items()
]


def test_the_list_of_objects_is_what_the_migrations_make(database: postgres.Database) -> None:
    with database.connect() as connection:
        assert dict(catalogue.read(connection)) == dict(catalogue.expected()), "run `make catalogue`"


def test_a_sound_schema_has_no_findings_whatever_the_session_prefers(database: postgres.Database) -> None:
    with psycopg.connect(database.url, options="-c search_path=coatcheck,public") as connection:
        assert catalogue.inspect(connection).findings == []


@pytest.mark.parametrize(("kind", "subject", "change"), CHANGES)
def test_each_kind_of_drift_is_found_and_told(
    database: postgres.Database, kind: Kind, subject: str, change: str
) -> None:
    with database.connect() as connection:
        connection.execute(change.encode())
        (found,) = catalogue.inspect(connection).findings
    assert (found.kind, found.subject) == (kind, subject)
    object_kind, _, name = subject.partition(" ")
    assert found.detail.startswith(f"expected {catalogue.expected()[object_kind, name]}")
    assert (", got " in found.detail) is (kind is Kind.DIFFERENT)
    assert found.remedy


def test_what_somebody_added_is_none_of_our_business(database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute("create index ours on coatcheck.operations (created_at)")
        connection.execute("alter table coatcheck.workers add column mine text")
        connection.execute("create table coatcheck.mine (n integer)")
        assert catalogue.inspect(connection).findings == []


def test_a_role_of_least_privilege_may_check(database: postgres.Database) -> None:
    with database.connect() as connection:
        connection.execute("set role coatcheck_worker")
        assert catalogue.inspect(connection).findings == []
