"""Adapters with the documented defaults, for tests to vary."""

from typing import Any

from coatcheck.config import Secret
from coatcheck.provider.echo import Echo
from coatcheck.provider.genace import STATUS_WORDS, Genace


def genace(**changes: Any) -> Genace:
    plain: dict[str, Any] = {
        "base_url": "https://api.example.com",
        "api_key": Secret("secret-key"),
        "create_path": "/api/v1/jobs",
        "job_path": "/api/v1/jobs/{id}",
        "list_path": "",
        "cancel_path": "",
        "cancel_method": "POST",
        "wait_param": "wait",
        "closed_statuses": frozenset({202, 204, 304, 408}),
        "status_words": STATUS_WORDS,
        "throttled_is_uncertain": False,
        "retry_after_cap_s": 300.0,
        "agent": "coatcheck/0.1.0",
    }
    return Genace(**{**plain, **changes})


def echo(**changes: Any) -> Echo:
    return Echo(service=genace(list_path="/api/v1/jobs", **changes))
