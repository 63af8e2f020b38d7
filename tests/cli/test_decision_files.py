"""A list is no file of decisions: whoever hands one over is told how to make the one out of the other, and that way works."""

import json
import re
from pathlib import Path

import pytest

from coatcheck.app.reconciling.views import Doubt
from coatcheck.app.views import Operation
from coatcheck.cli.decision_file import read_decisions
from coatcheck.errors import Refused
from docs.pages import DOCS, read

OPERATION = "op_00000000000000000000000001"
LISTED = {"operation_id": OPERATION, "tenant_id": "ada", "revision": 3, "phase": "uncertain"}


def test_a_line_of_a_list_is_refused_with_the_way_to_take_what_counts(tmp_path: Path) -> None:
    path = tmp_path / "doubts.jsonl"
    path.write_text(json.dumps(LISTED))
    with pytest.raises(Refused, match=r"line 1: expected only .*, got 'phase'") as refused:
        read_decisions(str(path), with_job=False)
    assert refused.value.code == "refused"
    assert "`jq -c '{operation_id, revision}'`" in refused.value.next
    assert refused.value.next.endswith("nothing was decided yet")


def test_what_is_taken_out_of_a_list_is_a_file_of_decisions(tmp_path: Path) -> None:
    """As jq writes it, by the fields that the pages and the error name."""
    told = re.findall(r"^jq -c '\{([\w, ]+)\}' (\w+\.jsonl) > (\w+\.jsonl)", read(DOCS / "operating.md"), re.MULTILINE)
    assert [(listed, made) for _, listed, made in told] == [
        ("doubts.jsonl", "absent.jsonl"),
        ("prepared.jsonl", "cancel.jsonl"),
    ]
    for names, _, made in told:
        path = tmp_path / made
        path.write_text(json.dumps({name: LISTED[name] for name in names.split(", ")}, separators=(",", ":")) + "\n")
        (line,) = read_decisions(str(path), with_job=False)
        assert (line.operation_id, line.revision) == (OPERATION, 3)
        for listed in (Doubt, Operation):
            assert set(names.split(", ")) <= set(listed.__dataclass_fields__)
