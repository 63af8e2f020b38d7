"""An output arrives byte for byte under a name of our own, whatever its answer looks like and whoever else fetches it."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from coatcheck.delivery.fetch import AT_ONCE_BYTES
from coatcheck.delivery.file_sink import BUFFERED_BYTES
from coatcheck.delivery.outcome import NotStored, OutputSource, Reason, Stored
from coatcheck.seams import Point, Seams
from delivery.origin import (
    OPERATION,
    PNG,
    Answer,
    Recorder,
    chunked,
    deliver,
    final_objects,
    response,
    run_against,
    sending,
    serving,
    silent_after,
    temporaries,
)
from waiting import until_async

PNG_SHA256 = hashlib.sha256(PNG).hexdigest()


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (response(), {}),
        (response(), {"bytes": len(PNG), "sha256": PNG_SHA256}),
        (response(), {"sha256": PNG_SHA256.upper(), "content_type": None}),
        (response(length=False), {"bytes": len(PNG)}),
        (chunked(PNG), {}),
        (chunked(PNG, size=1), {"bytes": len(PNG)}),
        (response(headers=["Content-Encoding: identity", "Content-Type: text/html"]), {}),
    ],
)
def test_an_output_is_stored_byte_for_byte(data: bytes, declared: dict[str, Any], tmp_path: Path) -> None:
    result = run_against(sending(data), tmp_path, declared)
    assert isinstance(result, Stored)
    (found,) = final_objects(tmp_path)
    assert found.read_bytes() == PNG
    assert found.as_uri() == result.uri
    assert (result.sha256, result.bytes, result.sniffed_type) == (PNG_SHA256, len(PNG), "image/png")
    assert result.declared_type == declared.get("content_type", "image/png")
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("longer", [0, 1])
def test_what_takes_long_to_digest_is_digested_beside_the_event_loop(
    longer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody else's replies wait for the loop; a small part is digested sooner than a thread begins."""
    threads: list[int] = []
    to_thread = asyncio.to_thread

    async def noted(work: Callable[..., object], *arguments: Any) -> object:
        threads.append(len(arguments[0]))
        return await to_thread(work, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    picture = PNG + bytes(AT_ONCE_BYTES + longer - len(PNG))
    result = run_against(sending(response(picture)), tmp_path)
    assert isinstance(result, Stored)
    assert result.sha256 == hashlib.sha256(picture).hexdigest()
    assert threads == [len(picture)] * longer


def test_the_name_owes_nothing_to_the_service(tmp_path: Path) -> None:
    hostile = ["/../../evil.sh", "/CON", "/%2e%2e/x", "/a.php;.png", "/\u202egnp.exe", "/" + "x" * 300]
    disposition = 'Content-Disposition: attachment; filename="../../evil.sh"'
    for index, path in enumerate(hostile):

        async def story(index: int = index, path: str = path) -> Stored | NotStored:
            async with serving(sending(response(headers=[disposition]))) as origin:
                # A right-to-left mark is refused outright, so it goes through as a quoted one.
                url = origin.url(path.replace("\u202e", "%E2%80%AE"))
                declared = origin.output(url=url, index=index, content_type="../../x")
                return await deliver(declared, tmp_path / "sink", origin.policy)

        assert isinstance(asyncio.run(story()), Stored)
    tenant = hashlib.sha256(b"tenant-a").hexdigest()[:32]
    assert {str(found.relative_to(tmp_path)) for found in final_objects(tmp_path)} == {
        f"sink/{tenant}/{OPERATION}/{index}-{PNG_SHA256}.png" for index in range(len(hostile))
    }


BODY_CUTS = [len(PNG) * step // 64 for step in range(64)] + [len(PNG) - 1]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("encode", [response, chunked])
def test_a_body_cut_anywhere_leaves_no_object_and_a_whole_one_then_arrives(
    encode: Callable[[bytes], bytes], reset: bool, tmp_path: Path
) -> None:
    async def story() -> None:
        whole = encode(PNG)
        start = whole.index(b"\r\n\r\n") + 4
        left = [start + cut for cut in BODY_CUTS]

        async def answer(path: str, writer: asyncio.StreamWriter) -> None:
            await sending(whole[: left[0]] if left else whole, reset=reset and bool(left))(path, writer)

        async with serving(answer) as origin:
            while left:
                result = await deliver(origin.output(), tmp_path, origin.policy)
                assert isinstance(result, NotStored)
                # A reset may overtake the headers on their way.
                assert result.reason == Reason.CUT_SHORT or (reset and result.reason == Reason.UNREACHABLE)
                assert final_objects(tmp_path) == []
                assert temporaries(tmp_path) == []
                left.pop(0)
            assert isinstance(await deliver(origin.output(), tmp_path, origin.policy), Stored)
        (found,) = final_objects(tmp_path)
        assert found.read_bytes() == PNG
        assert len(origin.heads) == len(BODY_CUTS) + 1

    asyncio.run(story())


@pytest.mark.parametrize("bytes_count", [8000, 3_000_000])
def test_a_cancelled_delivery_leaves_nothing(bytes_count: int, tmp_path: Path) -> None:
    sent = response(PNG + bytes(4_000_000))[:bytes_count]

    async def story() -> None:
        faults = Recorder(Point.V5_BODY_BYTES)
        async with serving(silent_after(sent)) as origin:
            task = asyncio.create_task(deliver(origin.output(), tmp_path, origin.policy, seams=Seams(faults=faults)))
            await faults.event.wait()
            if bytes_count > BUFFERED_BYTES:
                await until_async(lambda: temporaries(tmp_path))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert temporaries(tmp_path) == []
        assert final_objects(tmp_path) == []

    asyncio.run(story())


def test_several_deliverers_of_one_output_end_with_one_object(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(sending(response())) as origin:
            results = await asyncio.gather(*(deliver(origin.output(), tmp_path, origin.policy) for _ in range(8)))
        assert len({result.uri for result in results if isinstance(result, Stored)}) == 1
        assert all(isinstance(result, Stored) for result in results)
        assert len(final_objects(tmp_path)) == 1
        assert temporaries(tmp_path) == []

    asyncio.run(story())


def test_the_points_of_a_delivery_are_passed_in_order(tmp_path: Path) -> None:
    async def story() -> list[Point]:
        faults = Recorder()
        async with serving(sending(response())) as origin:
            result = await deliver(origin.output(), tmp_path, origin.policy, seams=Seams(faults=faults))
        assert isinstance(result, Stored)
        return list(dict.fromkeys(faults.seen))

    assert asyncio.run(story()) == [
        Point.V3_RESOLVED,
        Point.V4_CONNECTED,
        Point.V5_BODY_BYTES,
        Point.V6_BODY_COMPLETE,
        Point.V7_VERIFIED,
        Point.V8_PUBLISHED,
    ]


def test_a_url_is_a_secret_of_its_source() -> None:
    output = OutputSource(
        operation_id="o", tenant_id="t", index=0, url="https://h/?SECRET", content_type=None, bytes=None, sha256=None
    )
    assert "SECRET" not in repr(output)


def test_answers_in_pieces_of_any_size_are_the_same(tmp_path: Path) -> None:
    """The sniff waits for its head, however slowly that comes."""

    def in_pieces(sizes: Sequence[int]) -> Answer:
        async def answer(_path: str, writer: asyncio.StreamWriter) -> None:
            data, start = response(), 0
            for size in sizes:
                writer.write(data[start : start + size])
                await writer.drain()
                start += size
            writer.write(data[start:])
            await writer.drain()

        return answer

    for sizes in ([1] * 400, [45, 4096], [44, 4095, 1]):
        assert isinstance(run_against(in_pieces(sizes), tmp_path), Stored)
    assert len(final_objects(tmp_path)) == 1
