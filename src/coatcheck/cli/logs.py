"""What our processes log: on stderr, as JSON for machines and as key=value for people.

Only our own records keep their words. What other libraries say may quote an address, a header or a body, so of their records only the
place and the level are shown; of exceptions only the class.
"""

import logging
import sys
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog
from structlog.typing import EventDict

_OURS = "coatcheck"


class Guard(logging.Filter):
    """Takes away from a record whatever could carry a secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: a record is made harmless, not dropped."""
        if record.exc_info and record.exc_info[0] is not None:
            record.error = record.exc_info[0].__name__
        record.exc_info = record.exc_text = record.stack_info = None
        if record.name.split(".")[0] != _OURS:
            record.msg, record.args = f"{record.name} has something to say", None
            record.place = f"{record.module}.{record.funcName}:{record.lineno}"
        return True


def configure(level: str, number: int | None = None) -> None:
    """Send this process's log to stderr. `level` is a name of the standard library in lower case, `number` this process's among several."""
    for_people = sys.stderr.isatty()
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(Guard())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                _at,
                partial(_numbered, number),
                _extra,
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # repr escapes what a terminal would obey
                structlog.processors.KeyValueRenderer(key_order=["at", "level", "event"], drop_missing=True)
                if for_people
                else structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


_extra = structlog.stdlib.ExtraAdder()


def _at(_logger: Any, _method: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    event["at"] = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return event


def _numbered(number: int | None, _logger: Any, _method: str, event: EventDict) -> EventDict:
    """Whose record it is, where several processes write to one place."""
    if number is not None:
        event["process_number"] = number
    return event
