"""The POST's reply cut at any byte, by FIN and by RST: doubt unless the whole reply arrived, one POST each, and no id is invented."""

from uuid import UUID

import pytest

from faults.stage import QUICK, Stage
from figures import Report


def whole_reply(stage: Stage) -> int:
    """The bytes of a reply that nobody cuts."""
    stage.enqueue()
    stage.work()
    (post,) = stage.sim.posts
    assert post.reply_bytes > 40
    return post.reply_bytes


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_every_operation_is_uncertain_unless_the_whole_reply_arrived(stage: Stage, end: str, figures: Report) -> None:
    whole = whole_reply(stage)
    # so many doubts in a row would pause the account
    stage.rows("update coatcheck.providers set doubt_limit = null returning name")
    cut: dict[UUID, int] = {}
    for at in range(whole + 1):
        (one,) = stage.enqueue({**QUICK, "create": {"kind": "cut", "at": at, "end": end}})
        cut[one] = at
    stage.work()
    stage.check()
    record = stage.record()
    for operation_id, at in cut.items():
        operation, (dispatch,) = record.operations[operation_id], record.dispatches[operation_id]
        (post,) = record.posts_of(operation_id)
        assert operation["phase"] == ("accepted" if at == whole else "uncertain"), at
        assert operation["remote_job_id"] == dispatch["remote_job_id"] == (post.created if at == whole else None)
        assert dispatch["bytes_received"] == at
        assert dispatch["outcome"] == operation["phase"]
        assert (dispatch["http_status"], dispatch["stage"]) in {
            (None, "body_sent"),
            (201, "status_received"),
            (201, "body_received"),
        }
    # whoever decides later finds what of the body had arrived, up to the id itself
    (*_, last) = cut
    body = bytes(record.dispatches[last][0]["reply"])
    made = {operation_id: str(record.posts_of(operation_id)[0].created).encode() for operation_id in cut}
    assert made[last] in body
    for operation_id, at in cut.items():
        own = body.replace(made[last], made[operation_id])
        kept = bytes(record.dispatches[operation_id][0]["reply"] or b"")
        assert kept == own[: max(0, len(body) - (whole - at))]
        # the id is a candidate from the byte on that ends it, and an acceptance only with the last one
        shown = b'"' + made[operation_id] + b'"' in kept and at < whole
        assert record.dispatches[operation_id][0]["candidate_id"] == (made[operation_id].decode() if shown else None), (
            at
        )
    figures("wire cuts", len(cut))
    # and no amount of time makes another POST of any of them
    stage.finish()
    assert len(stage.sim.posts) == whole + 2


@pytest.mark.parametrize("framing", [{"kind": "chunked", "broken": True}, {"kind": "wrong_length", "delta": 10}])
def test_a_reply_whose_framing_never_ended_is_doubt_although_its_json_did(
    stage: Stage, framing: dict[str, object]
) -> None:
    (one,) = stage.enqueue({**QUICK, "create": framing})
    stage.work()
    stage.check()
    (dispatch,) = stage.dispatches(one)
    assert stage.operation(one)["phase"] == dispatch["outcome"] == "uncertain"
    # the id is kept as a candidate for whoever decides, and never taken for one
    assert dispatch["remote_job_id"] is None
    assert str(stage.sim.posts[0].created).encode() in dispatch["reply"]
