"""What went against the protocol, as a person lists it: counted, with its side and its meaning."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from coatcheck.app.story.events import meaning
from docs.test_words import incident_kinds
from faults.stage import QUICK
from operating.office import Office

WRONG = {"queued_s": 0, "processing_s": 0.3, "look": {"kind": "wrong_id", "times": 2}}
BARE = {**QUICK, "outcome": "succeeded", "look": {"kind": "unknown_word", "nth": 1}}


def listed(office: Office, *words: str) -> list[dict[str, Any]]:
    ended = office.terminal().run("incidents", "list", *words, "--json")
    assert ended.code == 0, ended.err
    return ended.objects


def test_incidents_are_listed_by_kind_by_tenant_and_since_an_instant(office: Office) -> None:
    mine, theirs = office.asked("ada", WRONG), office.asked("bob", BARE)
    office.work()
    both = listed(office)
    assert [(each["operation_id"], each["tenant_id"], each["kind"]) for each in both] == [
        (mine, "ada", "wrong_id"),
        (theirs, "bob", "unknown_status"),
    ]
    assert set(both[0]) == {
        "operation_id",
        "tenant_id",
        "kind",
        "boundary",
        "count",
        "first_at",
        "last_at",
        "detail",
        "meaning",
    }
    assert (both[0]["boundary"], both[0]["count"]) == ("theirs", 2)
    assert both[0]["meaning"] == "A look brought another job than it asked for. Nothing of it was saved."
    assert [each["kind"] for each in listed(office, "--kind", "unknown_status")] == ["unknown_status"]
    assert [each["operation_id"] for each in listed(office, "--tenant", "bob")] == [theirs]
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert listed(office, "--since", later) == []
    assert len(listed(office, "--since", "2020-01-01")) == 2
    assert office.terminal().run("incidents", "list", "--since", "yesterday").code == 2
    people = office.terminal().run("incidents", "list").out
    assert "wrong_id" in people
    assert "brought another job" in people
    assert office.terminal().run("incidents", "list", "--tenant", "nobody").err == "no incident\n"


def test_every_kind_of_incident_has_a_meaning() -> None:
    assert [kind for kind in incident_kinds() if meaning(kind).startswith("The incident ")] == []


def test_what_others_wrote_cannot_move_a_cursor(office: Office) -> None:
    operation = office.asked()
    office.rows(
        "insert into coatcheck.incidents (operation_id, kind, boundary, detail, first_at, last_at)"
        " values (%s, 'malformed', 'theirs', %s, now(), now()) returning kind",
        office.uuid(operation),
        "\x1b[31m red",
    )
    assert "\x1b[31m" not in office.terminal().run("incidents", "list").out
    assert json.loads(office.terminal().run("incidents", "list", "--json").out)["detail"] == "\x1b[31m red"
