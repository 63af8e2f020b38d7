"""The evidence about one operation, asked for and shown: its story with the commands that decide, and jobs that may be the one."""

from collections.abc import Mapping

from coatcheck.app.library import Coatcheck
from coatcheck.app.reconciling.views import Candidate, Evidence
from coatcheck.app.story import flat
from coatcheck.app.story.wording import amount, quoted, word
from coatcheck.cli.options import actor_of
from coatcheck.cli.output import write_line, write_object


async def found_for(operation: str, *, ask: bool) -> Evidence:
    """What there is; without `ask` the service is left alone. Raises `NotFound` and `Unavailable`."""
    async with Coatcheck() as coatcheck:
        return await coatcheck.for_operator(actor_of(None)).evidence(operation, ask=ask)


def write(found: Evidence, *, as_json: bool) -> None:
    """Write it to stdout."""
    if as_json:
        write_object(_as_json(found))
    else:
        _print(found)


def _as_json(found: Evidence) -> Mapping[str, object]:
    return {
        **found.doubt.as_json(),
        "candidates": [each.as_json() for each in found.candidates],
        "service": found.service,
        "possible": [each.as_json() for each in found.possible],
        "story": flat(found.story),
    }


def _print(found: Evidence) -> None:
    from coatcheck.cli.tables import show_lines  # noqa: PLC0415 - for people only

    for chapter in found.story:
        show_lines(chapter.title, chapter.lines)
        write_line("")
    show_lines("Jobs that may be the one", [found.service, *map(_candidate, found.candidates)])


def _candidate(each: Candidate) -> str:
    sources = {
        "reply": "named by the part of the reply that arrived",
        "orphan": "came late for an earlier dispatch of this operation",
        "reference": "repeats this dispatch",
        "list": "in the service's list",
    }
    parts = [
        word(each.remote_job_id, "an id that does not print"),
        sources[each.source],
        *([f"status {each.remote_status}"] if each.remote_status else []),
        *([f"created at {each.created_at:%Y-%m-%d %H:%M:%SZ}"] if each.created_at else []),
        *([f"taken by {each.taken_by}"] if each.taken_by else []),
        *(
            [f"adopting it counts {amount(each.spends, each.unit or '')} of the present dispatch as spent"]
            if each.spends
            else []
        ),
        *(
            [f"dealt with already, by {quoted(each.resolved_by)}: {quoted(each.resolution or '')}"]
            if each.resolved_by
            else []
        ),
    ]
    return f"  {'; '.join(parts)}"
