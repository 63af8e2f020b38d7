"""The words of the simulated service: what can be struck, by what, and how a connection ends."""

import enum


class Role(enum.StrEnum):
    """What a rule is about."""

    CREATE = "create"
    LOOK = "look"
    LIST = "list"
    OUTPUT = "output"
    JOB = "job"


class End(enum.StrEnum):
    """How a connection is ended: an orderly FIN or a reset."""

    FIN = "fin"
    RST = "rst"


class Kind(enum.StrEnum):
    """Every fault that can be scripted."""

    ACCEPT_THEN_DROP = "accept_then_drop"
    DROP_BEFORE_ACCEPT = "drop_before_accept"
    DROP_BEFORE_BODY = "drop_before_body"
    STALL_BEFORE_BODY = "stall_before_body"
    EARLY_REPLY = "early_reply"
    DROP = "drop"
    CUT = "cut"
    STALL = "stall"
    SLOW = "slow"
    INFORMATIONAL = "informational"
    CHUNKED = "chunked"
    GZIP = "gzip"
    NO_LENGTH = "no_length"
    WRONG_LENGTH = "wrong_length"
    GARBAGE_STATUS_LINE = "garbage_status_line"
    HUGE_HEADERS = "huge_headers"
    STATUS = "status"
    ERROR_WITH_JOB_ID = "error_with_job_id"
    THROTTLED = "throttled"
    REDIRECT = "redirect"
    MALFORMED = "malformed"
    CLOSED_WINDOW = "closed_window"
    WRONG_ID = "wrong_id"
    WRONG_REFERENCE = "wrong_reference"
    UNFILTERED = "unfiltered"
    REGRESSION = "regression"
    UNKNOWN_WORD = "unknown_word"
    NO_OUTPUTS = "no_outputs"
    DECLARE_WRONG = "declare_wrong"
    EXPIRED = "expired"
    REPLACED = "replaced"
    ENDLESS = "endless"
    LARGE = "large"
    COURSE = "course"
