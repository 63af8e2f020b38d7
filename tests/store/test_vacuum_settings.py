"""When autovacuum comes to which table: the migrations say so, and a database that was migrated has it."""

import postgres

LARGE = {"operations", "specifications", "dispatches", "history", "deliveries"}


def test_large_tables_are_vacuumed_at_a_twentieth_and_the_outbox_at_a_fiftieth(database: postgres.Database) -> None:
    """At PostgreSQL's own fifth, four times as much of what retention lets go would lie dead."""
    with database.connect() as connection:
        found = connection.execute(
            "select relname, split_part(option, '=', 2)::float8 from pg_class, unnest(reloptions) as option"
            " where relnamespace = 'coatcheck'::regnamespace and option like 'autovacuum_vacuum_scale_factor=%'"
        ).fetchall()
    assert dict(found) == {**dict.fromkeys(LARGE, 0.05), "outbox": 0.02}
