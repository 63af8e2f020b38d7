"""One operation shown as its story and its record: for people as chapters and tables, for programs as one object.

What a service wrote in its replies is evidence for the operator; a tenant's view (`--tenant`) never carries it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coatcheck.app.reading import Recorded
from coatcheck.app.story import Chapter, flat, tell
from coatcheck.app.story.wording import text_of
from coatcheck.app.views import Operation
from coatcheck.cli.output import write_line, write_object

_EVIDENCE = ("request_ids", "candidate_id", "reply")
"""Of a dispatch, what others wrote: apart from its other fields, and not there in a tenant's view."""
_RECORDED = ("job_operation_id", "job_resolved_at", "job_resolved_by", "job_resolution")
"""Whose its job is: for the story, which names nobody else's operation to a tenant."""
_HIDDEN = frozenset({"operation_id", *_EVIDENCE, *_RECORDED})
_DETAILS = frozenset({"marks_ms", "send_by_at", "displaced", "schema_version", "lease_token", "evidence"})
"""What only programs are shown, or the story tells already."""
_RECORDS = {"outputs": "index", "dispatches": "number", "messages": "lane"}
"""Rows with too many fields for a line, each shown as a record, and the field that names one."""


def write(found: Recorded, *, for_tenant: bool, as_json: bool) -> None:
    """Write it to stdout."""
    chapters = tell(found.record, found.kept, now=found.record.read_at, for_tenant=for_tenant)
    rows = _rows(found.view.operation_id, found.kept, with_evidence=not for_tenant)
    if as_json:
        write_object({**found.view.as_json(), **rows, "story": flat(chapters)})
    else:
        _print_story(chapters)
        _print_rows(found.view, rows)


def _rows(
    operation_id: str, kept: Mapping[str, list[dict[str, Any]]], *, with_evidence: bool
) -> dict[str, list[dict[str, object]]]:
    """What is kept about an operation, each row without the operation's own id and a message with the name it has outside."""
    rows: dict[str, list[dict[str, object]]] = {
        name: [{column: value for column, value in row.items() if column not in _HIDDEN} for row in found]
        for name, found in kept.items()
    }
    rows["messages"] = [{"message_id": f"{operation_id}.{row['lane']}", **row} for row in rows["messages"]]
    if with_evidence:
        told = zip(rows["dispatches"], kept["dispatches"], strict=True)
        rows["dispatches"] = [{**row, "evidence": _evidence(whole)} for row, whole in told]
    return rows


def _evidence(row: Mapping[str, Any]) -> dict[str, object]:
    """What the service wrote; the reply is bounded and without our credential since it was saved."""
    reply = None if row["reply"] is None else text_of(row["reply"])
    return {**{name: row[name] for name in _EVIDENCE}, "reply": reply}


def _print_story(chapters: Sequence[Chapter]) -> None:
    from coatcheck.cli.tables import show_lines  # noqa: PLC0415 - for people only

    for position, chapter in enumerate(chapters):
        if position:
            write_line("")
        show_lines(chapter.title, chapter.lines)


def _print_rows(operation: Operation, kept: Mapping[str, list[dict[str, object]]]) -> None:
    from coatcheck.cli.tables import show, show_fields, table  # noqa: PLC0415 - for people only

    show_fields(
        {name: getattr(operation, name) for name in Operation.__slots__ if name != "outputs"}, title="the record"
    )
    outputs: list[dict[str, object]] = [output.as_json() for output in operation.outputs]
    for title, name in _RECORDS.items():
        for row in {"outputs": outputs, **kept}[title]:
            fields = {field: value for field, value in row.items() if field not in _DETAILS and value is not None}
            show_fields(fields, title=f"{title}, {name} {row[name]}")
    if kept["incidents"]:
        columns = ("kind", "boundary", "count", "last_at", "detail")
        show(table(columns, ([row[name] for name in columns] for row in kept["incidents"]), title="\nincidents"))
    rows = [[row["at"], row["event"], _change(row), row["actor"], row["reason"]] for row in kept["history"]]
    used = 5 if any(row[-1] for row in rows) else 4
    heads = ("at", "event", "change", "by", "reason")
    show(table(heads[:used], (row[:used] for row in rows), title="\nhistory"))


def _change(row: Mapping[str, object]) -> str:
    """What a revision moved on the three axes; of the first one, where the operation begins."""
    if row["from_phase"] is None:
        return str(row["to_phase"])
    moved = [(row[f"from_{axis}"], row[f"to_{axis}"]) for axis in ("phase", "render_state", "delivery_state")]
    return ", ".join(f"{was} → {now}" for was, now in moved if was != now)
