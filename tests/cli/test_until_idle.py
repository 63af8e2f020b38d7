"""`worker --until-idle` ends where only waiting rows are left, each tried once more, however many there are; and one bad key costs one."""

import json

import psycopg

import postgres
from cli.terminal import Terminal
from coatcheck.sim import ThreadedService

MANY = 100
"""More than a worker's places for dispatches."""


def enqueue_many(database: postgres.Database, count: int) -> None:
    """Enqueue through the SQL function, in one transaction."""
    with psycopg.connect(database.url) as connection:
        for number in range(count):
            text = json.dumps({"prompt": f"p{number}"})
            wish = {"v": 1, "tenant_id": "t1", "operation_key": f"k{number}", "provider": "genace"}
            request = json.dumps({**wish, "specification_text": text})
            connection.execute("select coatcheck.enqueue_v1(%s::text::jsonb)", [request])


def test_more_paused_rows_than_places_are_each_tried_once_more_and_no_oftener(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    enqueue_many(database, MANY)
    with database.connect() as connection:
        connection.execute(
            "insert into coatcheck.providers (name, account, kind) values ('genace', 'genace', 'genace')"
        )
    assert provided.run("providers", "pause", "genace", "--reason", "maintenance").code == 0
    ended = provided.run("worker", "--until-idle")
    assert ended.code == 0, ended.err
    with database.connect() as connection:
        tries = connection.execute("select min(wait_count), max(wait_count), count(*) from coatcheck.outbox").fetchone()
    assert tries == (2, 2, MANY)
    assert not service.posts


def test_one_bad_key_rejects_one_operation_and_pauses_the_account_for_the_rest(
    provided: Terminal, service: ThreadedService, database: postgres.Database
) -> None:
    service.script([{"on": "create", "kind": "status", "status": 401}])
    enqueue_many(database, 20)
    ended = provided.run("worker", "--until-idle")
    assert ended.code == 0, ended.err
    phases = [each["phase"] for each in provided.run("operations", "list", "--json").objects]
    assert (phases.count("rejected"), phases.count("prepared")) == (1, 19)
    assert len(service.posts) == 1
    (paused,) = provided.run("providers", "list", "--json").objects
    assert "401" in paused["dispatch_pause_reason"]
