"""The service when nothing strikes it: keys, jobs that advance by the clock, the long poll, money, and the same seed twice."""

import json
import re
import threading
from typing import Any

import pytest

from coatcheck.sim import ThreadedService, simulated_service
from sim_service.raw_client import (
    connect,
    exchange,
    finished_job,
    get,
    listen,
    look,
    output_of,
    post,
    request_bytes,
)
from waiting import until


@pytest.mark.parametrize("authorization", ["", "Basic abc", "Bearer", "Bearer wrong"])
def test_without_an_accepted_key_nothing_is_created_or_shown(authorization: str) -> None:
    with simulated_service(api_keys=frozenset({"right"})) as sim:
        made = exchange(sim.base_url, request_bytes("POST", "/api/v1/jobs", b"{}", Authorization=authorization))
        seen = exchange(sim.base_url, request_bytes("GET", "/api/v1/jobs/job_x", Authorization=authorization))
        assert (made.status, seen.status, made.json()["error"]["code"]) == (401, 401, "unauthorized")
        assert [(record.authorized, record.created, record.complete) for record in sim.posts] == [(False, None, True)]
        assert (
            exchange(sim.base_url, request_bytes("POST", "/api/v1/jobs", b"{}", Authorization="Bearer right")).status
            == 201
        )


def test_keys_stay_out_of_the_ledger_and_of_reprs() -> None:
    with simulated_service(api_keys=frozenset({"key-of-the-tests"})) as sim:
        post(sim, {"prompt": "secret prompt"})
        shown = get(sim, "/_sim/ledger").data + get(sim, "/_sim/jobs").data
        assert b"key-of-the-tests" not in shown
        assert "secret prompt" not in repr(sim.posts)


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[1]", 422), (b'{"sim": {"create": "nonsense"}}', 422)])
def test_a_body_that_is_no_specification_creates_nothing(sim: ThreadedService, body: bytes, status: int) -> None:
    assert exchange(sim.base_url, request_bytes("POST", "/api/v1/jobs", body)).status == status
    assert sim.totals()["created"] == 0


def test_unknown_jobs_files_paths_and_methods_are_refused_and_stray_posts_written_down(sim: ThreadedService) -> None:
    paths = ["/api/v1/jobs/job_nobody", "/outputs/job_nobody/0", "/outputs/x", "/elsewhere", "/_sim/elsewhere"]
    assert {get(sim, path).status for path in paths} == {404}
    assert exchange(sim.base_url, request_bytes("DELETE", "/api/v1/jobs/job_x")).status == 405
    assert exchange(sim.base_url, request_bytes("POST", "/api/v2/jobs", b"{}")).status == 404
    assert exchange(sim.base_url, b"BANANA\r\n\r\n").status == 400
    assert [(record.path, record.created) for record in sim.posts] == [("/api/v2/jobs", None)]


def test_a_look_is_held_until_the_status_changes_and_then_tells_it(sim: ThreadedService) -> None:
    job_id = post(sim, {"sim": {"queued_s": 0.1, "processing_s": 0.1}}).json()["job_id"]
    told = [look(sim, job_id, wait=10).json() for _ in range(2)]
    assert [snapshot["status"] for snapshot in told] == ["processing", "succeeded"]
    always = {"id", "status", "created_at", "outputs"}
    assert [set(snapshot) for snapshot in told] == [always, always | {"credits"}]
    assert told[0]["created_at"] == told[1]["created_at"] == sim.jobs()[0]["created_at"]


def test_a_window_that_closes_first_brings_the_same_status_again(sim: ThreadedService) -> None:
    job_id = post(sim, {"sim": {"outcome": "stuck", "queued_s": 60}}).json()["job_id"]
    assert [look(sim, job_id, wait=wait).json()["status"] for wait in (0, 0.05)] == ["queued", "queued"]
    assert look(sim, job_id, wait=30, quiet_s=0.1).end == "silent"


@pytest.mark.parametrize("outcome", ["failed", "moderated", "cancelled", "expired"])
def test_a_job_that_does_not_succeed_says_why_and_gives_the_money_back(sim: ThreadedService, outcome: str) -> None:
    snapshot = look(sim, finished_job(sim, outcome=outcome, price=7, error_message="no luck")).json()
    assert (snapshot["status"], snapshot["outputs"], snapshot["error"]["message"]) == (outcome, [], "no luck")
    assert snapshot["credits"] == {"charged": 7, "refunded": 7}
    assert (sim.totals()["billed"], sim.totals()["refunded"], sim.totals()["net"]) == (7, 7, 0)


def test_a_course_sets_words_money_and_files(sim: ThreadedService) -> None:
    outputs = [{"type": "audio/wav", "bytes": 100}, {"type": "video/mp4"}]
    job_id = finished_job(sim, outputs=outputs, final_word="complete", refund=2, outputs_as="urls")
    snapshot = look(sim, job_id).json()
    assert (snapshot["status"], snapshot["credits"]) == ("complete", {"charged": 5, "refunded": 2})
    sound, film = (get(sim, url) for url in snapshot["outputs"])
    assert (sound.body[:4], len(sound.body), sound.header("content-type")) == (b"RIFF", 100, "audio/wav")
    assert (film.body[4:8], film.header("content-type")) == (b"ftyp", "video/mp4")


def test_a_job_that_is_over_at_once_says_so_in_the_reply_to_its_post(sim: ThreadedService) -> None:
    reply = post(sim, {"sim": {"queued_s": 0, "processing_s": 0}}).json()
    assert (reply["job_id"], reply["status"], len(reply["outputs"])) == (reply["id"], "succeeded", 1)


def test_files_are_what_their_snapshot_declares_and_credentials_sent_to_them_are_noticed(sim: ThreadedService) -> None:
    job_id = finished_job(sim)
    (declared,) = look(sim, job_id).json()["outputs"]
    (listed,) = sim.jobs()[0]["outputs"]
    assert {name: declared[name] for name in ("type", "bytes", "sha256")}.items() <= listed.items()
    get(sim, output_of(sim, job_id))
    assert (sim.jobs()[0]["downloads"], sim.jobs()[0]["downloads_with_credentials"]) == (1, 1)


def test_requests_follow_one_another_on_one_connection(sim: ThreadedService) -> None:
    asked = request_bytes("GET", "/_sim/jobs", Connection="keep-alive")
    with connect(sim.base_url) as connection:
        connection.sendall(asked + asked + request_bytes("GET", "/_sim/jobs"))
        seen = listen(connection)
    assert (seen.data.count(b"HTTP/1.1 200"), seen.end) == (3, "fin")


INSTANT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def replies(seed: int) -> list[bytes]:
    """Forty creations under a mix, and a look at each job there is."""
    kinds = {"accept_then_drop": 0.1, "cut": {"p": 0.2, "at": 50, "end": "rst"}, "status": 0.1, "throttled": 0.1}
    with simulated_service(seed=seed) as sim:
        sim.script({"mix": {**kinds, "look.malformed": 0.3}, "service": {"queued_s": 0, "processing_s": 0}})
        seen = [post(sim, {"prompt": f"coat {number % 30}"}) for number in range(40)]
        seen += [look(sim, job["id"]) for job in sim.jobs()]
        port = sim.base_url.encode()
        return [INSTANT.sub(b"then", reply.data.replace(port, b"http://sim")) + reply.end.encode() for reply in seen]


def test_the_same_seed_and_order_bring_the_same_replies_and_another_seed_others() -> None:
    first = replies(11)
    assert first == replies(11)
    assert first != replies(12)
    assert 10 < sum(b"HTTP/1.1 201" in reply and b"fin" in reply for reply in first) < 40


def test_a_service_that_was_away_comes_back_on_its_port_with_its_jobs(sim: ThreadedService) -> None:
    job_id = finished_job(sim)
    address = sim.base_url
    sim.stop()
    with pytest.raises(ConnectionRefusedError):
        look(sim, job_id)
    sim.start()
    assert (sim.base_url, look(sim, job_id).status) == (address, 200)


def test_stopping_resets_what_is_held_open(sim: ThreadedService) -> None:
    job_id = post(sim, {"sim": {"outcome": "stuck", "queued_s": 60}}).json()["job_id"]
    ended: list[str] = []
    held = threading.Thread(target=lambda: ended.append(look(sim, job_id, wait=50).end))
    held.start()
    until(lambda: held_now(sim) == 1)
    sim.stop()
    held.join(10)
    sim.start()
    assert ended[0] in {"rst", "fin"}


def test_the_back_room_tells_in_which_tenth_of_a_second_looks_came(sim: ThreadedService) -> None:
    job_id = post(sim, {}).json()["job_id"]
    for _ in range(3):
        look(sim, job_id)
    told = json.loads(get(sim, "/_sim/looks").body)
    assert (told["count"], told["held"], told["jobs"]) == (3, 0, 1)
    assert sum(count for _, count in told["by_tenth"]) == 3
    assert told["by_tenth"] == sorted(told["by_tenth"])


def held_now(sim: ThreadedService) -> Any:
    return json.loads(get(sim, "/_sim/ledger").body)["looks"]["held"]
