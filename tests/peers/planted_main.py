"""A contestant that does its work with the standard library and psycopg, and wrong if it is told to."""

import json
import sys
import urllib.request

import psycopg
from bench.peers.programs import workload

TABLE = "create table renders (prompt text primary key, remote_job_id text, is_done boolean not null default false)"
SAVE = "update renders set remote_job_id = %s where prompt = %s"
DONE = "update renders set is_done = true where prompt = %s"


def fill(order: workload.Order) -> None:
    if order.settings["fault"] == "unfilled":
        sys.exit("nothing was filled")
    with psycopg.connect(order.database_url) as connection:
        connection.execute(TABLE)
        for prompt in order.prompts():
            connection.execute("insert into renders (prompt) values (%s)", (prompt,))


def work(order: workload.Order) -> None:
    fault = order.settings["fault"]
    with psycopg.connect(order.database_url, autocommit=True) as connection:
        for prompt in order.prompts():
            remote_job_id = submitted(order, prompt)
            if fault != "unsaved":
                connection.execute(SAVE, (remote_job_id, prompt))
            asked(order, f"/{remote_job_id}")
            asked(order, f"/{remote_job_id}")
            if fault != "not done":
                connection.execute(DONE, (prompt,))
        # until it is killed
        sys.stdin.read()


def submitted(order: workload.Order, prompt: str) -> str:
    """The remote job's id, unless it is told to end."""
    fault = order.settings["fault"]
    remote_job_id = asked(order, "", f'{{"prompt": "{prompt}"}}'.encode())
    if fault == "sent twice":
        remote_job_id = asked(order, "", f'{{"prompt": "{prompt}"}}'.encode())
    if fault == "died":
        sys.exit("it died")
    return remote_job_id


def asked(order: workload.Order, path: str, body: bytes | None = None) -> str:
    request = urllib.request.Request(f"{order.service_url}/api/v1/jobs{path}", data=body)
    with urllib.request.urlopen(request) as reply:
        return str(json.load(reply).get("job_id"))


if __name__ == "__main__":
    if workload.is_filling():
        fill(workload.order())
    else:
        workload.ready()
        work(workload.order())
