"""The database that every other test is given: fresh, migrated, and with a time of its own."""

import postgres


def offsets(database: postgres.Database) -> tuple[float, float]:
    """How far the database's two times are ahead of the server's, in whole seconds."""
    with database.connect() as connection:
        found = connection.execute(
            "select extract(epoch from coatcheck.due_now() - statement_timestamp())::float8,"
            " extract(epoch from coatcheck.lease_now() - clock_timestamp())::float8"
        ).fetchone()
    assert found is not None
    due, lease = found
    return round(due), round(lease)


def test_a_database_is_migrated_and_tells_the_true_time(database: postgres.Database) -> None:
    assert offsets(database) == (0, 0)


def test_moved_time_moves_both_functions_and_adds_up(database: postgres.Database) -> None:
    database.move_time(3600)
    assert offsets(database) == (3600, 3600)
    database.move_time(-1800)
    assert offsets(database) == (1800, 1800)


def test_moved_time_reaches_a_statement_that_was_planned_before(database: postgres.Database) -> None:
    with database.connect() as connection:
        statement = "select round(extract(epoch from coatcheck.due_now() - statement_timestamp()))::int"
        for _ in range(8):
            assert connection.execute(statement, prepare=True).fetchone() == (0,)
        database.move_time(60)
        assert connection.execute(statement, prepare=True).fetchone() == (60,)


def test_time_moved_in_one_database_is_not_moved_in_another(
    database: postgres.Database, template: postgres.Template
) -> None:
    database.move_time(3600)
    with template.copy() as other:
        assert offsets(other) == (0, 0)
