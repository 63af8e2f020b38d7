"""An application that orders one thing after the other and keeps a log of what it heard, which outlives it: `asks`, then `ok` or `failed`.

What was asked for and has neither word is unknown to it: it was killed, or cut off, before it heard.
"""

import json
import os
import sys

import psycopg

from coatcheck.enqueue import enqueue_sync, prepare
from coatcheck.errors import CoatcheckError
from coatcheck.seams import Point
from faults.strike import Striking, read


class Log:
    """Lines that are in the file once they are written, whatever befalls the process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def says(self, word: str, key: str) -> None:
        os.write(self._file, f"{word} {key}\n".encode())


def main(url: str, strikes: str, path: str, orders: str) -> None:
    """`orders`: a JSON list of requests without their version, each with a specification."""
    striking, log = Striking(read(strikes)), Log(path)
    with psycopg.connect(url) as connection:
        for order in json.loads(orders):
            log.says("asks", order["key"])
            try:
                enqueue_sync(connection, prepare(**order), faults=striking)
            except CoatcheckError:
                connection.rollback()
                log.says("failed", order["key"])
                continue
            if Point.E4_COMMIT_SENT in {strike.point for strike in striking.strikes}:
                # the commit is on its way and nobody will read what became of it
                connection.pgconn.send_query(b"commit")
                connection.pgconn.flush()
                striking.reached(Point.E4_COMMIT_SENT)
            connection.commit()
            striking.reached(Point.E5_COMMITTED_BEFORE_REPLY)
            log.says("ok", order["key"])


def run(arguments: list[str]) -> None:
    """The course of a process: the database's address, the strikes, the log, and the orders."""
    url, strikes, path, orders = arguments
    main(url, strikes, path, orders)


if __name__ == "__main__":
    run(sys.argv[1:])
