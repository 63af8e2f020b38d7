"""A line of a spool is read as it was written, or recognised as something else."""

import json
from contextlib import suppress
from dataclasses import fields, replace

import pytest

from coatcheck.core import events as ev
from coatcheck.spool import record as records
from coatcheck.spool.record import Damaged, Foreign, Record, read, written
from spool.records import DISPATCH, EXCHANGE, FINAL, JOB, REPLIES, record

LINE = written(record())


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: str(reply.kind))
def test_every_kind_of_reply_comes_back_as_it_was(reply: ev.Reply) -> None:
    line = written(record(reply))
    assert read(line) == record(reply)
    assert read(line.rstrip(b"\n")) == record(reply)
    assert line.count(b"\n") == 1
    assert line.isascii()


def test_the_examples_leave_no_field_at_its_default_and_no_kind_out() -> None:
    """So that a field which is added later and not written is noticed here."""
    assert {type(reply) for reply in REPLIES} == set(ev.Reply.__args__)
    bare = type(EXCHANGE)(stage=EXCHANGE.stage)
    assert [each.name for each in fields(EXCHANGE) if getattr(EXCHANGE, each.name) == getattr(bare, each.name)] == [
        "stage"
    ]


def test_what_was_not_held_is_not_held_when_it_is_read() -> None:
    free = replace(record(), held=None, unit=None)
    assert read(written(free)) == free


def test_a_first_look_is_left_to_the_observer() -> None:
    accepted = ev.Accepted(dispatch_id=DISPATCH, remote_job_id=JOB, snapshot=FINAL)
    assert read(written(record(accepted))) == record(replace(accepted, snapshot=None))


def test_a_line_that_was_cut_at_any_byte_is_damaged() -> None:
    for length in range(len(LINE) - 1):
        with pytest.raises(Damaged):
            read(LINE[:length])


def test_a_line_in_which_any_byte_is_another_never_says_something_else() -> None:
    for at in range(len(LINE) - 1):
        bent = LINE[:at] + bytes([LINE[at] ^ 1]) + LINE[at + 1 :]
        with suppress(Damaged, Foreign):
            assert read(bent) == record()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"null",
        b"[]",
        b"7",
        b"{}",
        b'{"v":1,"sha256":"","end":{}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"\0" * 4096,
    ],
    ids=lambda line: ascii(line[:12]),
)
def test_what_was_never_a_line_is_damaged(line: bytes) -> None:
    with pytest.raises(Damaged) as told:
        read(line)
    assert told.value.__cause__ is None


def test_a_whole_line_of_another_version_is_told_from_a_damaged_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "VERSION", records.VERSION + 1)
    newer = written(record())
    with pytest.raises(Foreign):
        read(LINE)
    monkeypatch.undo()
    with pytest.raises(Foreign):
        read(newer)


def test_a_whole_line_with_a_field_or_a_kind_that_nobody_knows_is_of_another_version() -> None:
    end = json.loads(LINE)["end"]
    for strange in (
        {**end, "more": 1},
        {**end, "reply": {**end["reply"], "kind": "paid"}},
        {**end, "exchange": {**end["exchange"], "stage": "dreamt"}},
        {name: value for name, value in end.items() if name != "account"},
        {**end, "operation_id": 7},
        {**end, "held": "much"},
        {**end, "kept_at": "2026-01-02T03:04:05"},
        {**end, "begun_ago_s": "1.5"},
        {**end, "begun_ago_s": None},
        {**end, "number": True},
        {**end, "account": ["genace"]},
        {**end, "reply": {**end["reply"], "remote_job_id": 5}},
        {**end, "reply": {**end["reply"], "remote_job_id": "\ud800"}},
        {**end, "exchange": {**end["exchange"], "headers": [["x-request-id", 5]]}},
        {**end, "exchange": {**end["exchange"], "headers": [["x-request-id", None]]}},
        {**end, "exchange": {**end["exchange"], "marks_ms": [["connecting", "soon"]]}},
        {**end, "exchange": {**end["exchange"], "status": 1.5}},
    ):
        line = records._text({"v": records.VERSION, "sha256": records._checksum(strange), "end": strange})
        with pytest.raises(Foreign):
            read(line)


def test_a_record_shows_what_its_line_needs_and_no_secret() -> None:
    assert {each.name for each in fields(Record)} == {
        *("operation_id", "reply", "exchange", "account", "number", "authorisation"),
        *("authorised_by", "settle_s", "begun_ago_s", "held", "unit", "kept_at"),
    }
