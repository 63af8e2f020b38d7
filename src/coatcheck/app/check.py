"""One line of doctor's report. Findings are values: what was read, what it should be, and what helps."""

import enum
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """WARNING: it works and should not stay so. FAILED: something cannot work."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report; `remedy` is empty where all is well."""

    name: str
    verdict: Verdict
    reading: str
    limit: str
    remedy: str = ""


def judged(
    name: str, reading: str, limit: str, *, holds: bool, remedy: str, otherwise: Verdict = Verdict.WARNING
) -> Check:
    """A check that holds, or its finding with the remedy."""
    return Check(
        name=name,
        verdict=Verdict.OK if holds else otherwise,
        reading=reading,
        limit=limit,
        remedy="" if holds else remedy,
    )
