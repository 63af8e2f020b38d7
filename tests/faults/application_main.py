"""An application in a process of its own: an order and its operation in one transaction. Killed by its strikes, or in mid-commit."""

import os
import signal
import sys

import psycopg

from coatcheck.enqueue import enqueue_sync, prepare
from coatcheck.seams import Point
from faults.strike import Striking, read


def main(url: str, strikes: str) -> None:
    striking = Striking(read(strikes))
    with psycopg.connect(url) as connection:
        connection.execute("insert into orders values ('order-7')")
        request = prepare(tenant_id="ada", key="order-7", provider="genace", specification={"prompt": "a red bird 7"})
        enqueue_sync(connection, request, faults=striking)
        if Point.E4_COMMIT_SENT in {strike.point for strike in striking.strikes}:
            # the commit is on its way and nobody will read what became of it
            connection.pgconn.send_query(b"commit")
            connection.pgconn.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        connection.commit()
        striking.reached(Point.E5_COMMITTED_BEFORE_REPLY)


def run(arguments: list[str]) -> None:
    """The course of a process: the database's address, and the strikes."""
    url, strikes = arguments
    main(url, strikes)


if __name__ == "__main__":
    run(sys.argv[1:])
