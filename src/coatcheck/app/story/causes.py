"""Why a dispatch ended as it did, in words: each cause that is recorded has a sentence, so that no code word is left to be guessed.

The same failure means different things before and after the first byte: the outcome says which, the cause only how it came about.
"""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from coatcheck.app.story.wording import quoted

_CAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # before a connection
        "name_unknown": "the service's host name could not be resolved to an address",
        "resolve_timeout": "resolving the service's host name took longer than the time for sending",
        "connect_timeout": "no connection to the service came about in time",
        "refused": "the service's machine refused the connection",
        "unreachable": "the service's machine could not be reached over the network",
        "tls_failed": "the encrypted connection (TLS) could not be set up",
        "certificate_refused": "the service's certificate is not one to trust",
        "send_window_passed": "the time in which the first byte was allowed to leave had passed",
        "bad_request": "the configured address or key cannot be written into a request",
        "mark_commit_unknown": "the database did not say in time whether the mark was committed, so the worker sent nothing",
        "not_sent": "the request was never begun",
        # while sending or waiting
        "timeout": "the time for the whole exchange was over before a whole reply was there",
        "reset": "the connection was reset",
        "broken": "the connection broke",
        "closed": "the connection was closed before a whole reply was there",
        "cut": "the reply did not arrive whole",
        "cancelled": "the worker was told to stop in the middle of the exchange",
        "unforeseen": "the worker met an error that nobody foresaw",
        "lease_ended": "the worker stopped reporting: its lease on the request ended, and no end of the exchange was saved",
        # a reply that proves nothing
        "malformed_reply": "what came back is not HTTP",
        "too_large": "the reply was longer than a megabyte, and reading it was given up",
        "undecodable": "the reply's compression could not be undone",
        "empty": "the reply's body was empty",
        "not_utf8": "the reply's body is not readable text",
        "not_json": "the reply's body is not JSON: perhaps the page of a gateway, or a text that ends too early",
        "duplicate_key": "the reply's JSON names a field twice, so two readers would understand it differently",
        "not_finite": "the reply's JSON holds a number that JSON does not have",
        "too_deep": "the reply's JSON is nested too deep to be read",
        "no_id": "the reply says success but names no job",
        "unusable_id": "the reply says success, but what it gives as the job's id is none that could be asked for",
        "unframed": "only the end of the connection says that the reply is over, and it cannot be read, so a part may be missing",
    }
)

_NOT_STORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "expired": "the output's address is no longer good, and a look brought no better one",
        "status": "the output's address answered with a status that carries no output",
        "unreachable": "the output's address gave no usable answer",
        "timed_out": "fetching the output took too long",
        "cut_short": "the connection ended in the middle of the output",
        "length_mismatch": "the output has another length than the service declared",
        "checksum_mismatch": "the output has another checksum than the service declared",
        "unexpected_type": "what came is empty, or not the kind of media that the service declared",
        "too_large": "the output is larger than the settings allow",
        "encoded": "the output came compressed although it was asked for plain",
        "blocked_address": "the output's address lies where the settings do not allow fetching",
        "too_many_redirects": "the output's address led from one to the next too often",
        "sink_full": "the sink has no space left",
        "sink_failed": "the sink could not write it",
        "sink_conflict": "the sink has other bytes under the same name, and nothing there is overwritten",
    }
)


def why_not_stored(cause: str) -> str:
    """Why an output is not in the sink, as half a sentence."""
    return _NOT_STORED.get(cause, f"the recorded cause is {quoted(cause)}")


def why(cause: str | None) -> str:
    """A cause as half a sentence: `why("refused")` is `the service's machine refused the connection`."""
    if cause is None:
        return "no cause is recorded"
    if cause.startswith("status_") and cause.removeprefix("status_").isdecimal():
        return f"the service answered {status_words(int(cause.removeprefix('status_')))} and named no job"
    return _CAUSES.get(cause, f"the recorded cause is {quoted(cause)}")


def status_words(status: int) -> str:
    """`HTTP 502 (Bad Gateway)`."""
    try:
        return f"HTTP {status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return f"HTTP {status}"
