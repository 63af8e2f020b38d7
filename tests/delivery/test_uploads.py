"""An upload: nothing of it is left unless it is published, and what is published is durable and never changes."""

import asyncio
import errno
import gc
import hashlib
import itertools
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coatcheck.delivery.file_sink import BUFFERED_BYTES, INCOMING, FileSink, FileUpload
from coatcheck.delivery.outcome import Reason, Stopped
from coatcheck.seams import Ids, Seams
from delivery.origin import final_objects, temporaries
from delivery.sinks import BODY, PLACE, SHA256, SMALL, descriptors, put, reason_of, stored
from waiting import until_async


@pytest.mark.parametrize("count", [1, len(SMALL), len(SMALL) + 1])
def test_a_small_output_makes_no_temporary_before_it_is_published(count: int, tmp_path: Path) -> None:
    """In however many parts it comes; more than that does not stay in memory."""
    body = BODY[:count]

    async def story() -> list[Path]:
        upload = FileSink(tmp_path, seams=Seams.real()).begin(PLACE)
        for part in (body[: count // 2], body[count // 2 :]):
            await upload.write(part)
        before = temporaries(tmp_path)
        await upload.publish(sha256=hashlib.sha256(body).hexdigest(), bytes_count=count, extension="png")
        assert temporaries(tmp_path) == []
        return before

    assert len(asyncio.run(story())) == (count > BUFFERED_BYTES)
    (found,) = final_objects(tmp_path)
    assert found.read_bytes() == body


def test_a_temporary_that_cannot_be_removed_undoes_no_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(name: str, *, dir_fd: int) -> None:
        raise PermissionError(f"{name} in {dir_fd}")

    monkeypatch.setattr(os, "unlink", refusing)
    assert asyncio.run(put(FileSink(tmp_path, seams=Seams.real()))) == final_objects(tmp_path)[0].as_uri()
    assert len(temporaries(tmp_path)) == 1


def test_nothing_is_touched_before_the_first_write_and_nothing_left_after_a_discard(tmp_path: Path) -> None:
    async def story() -> None:
        upload = FileSink(tmp_path, seams=Seams.real()).begin(PLACE)
        assert not (tmp_path / INCOMING).exists()
        await upload.write(BODY)
        assert len(temporaries(tmp_path)) == 1
        await upload.discard()
        await upload.discard()
        for late in (SMALL, BODY):
            with pytest.raises(Stopped):
                await upload.write(late)
        with pytest.raises(Stopped):
            await upload.publish(sha256=SHA256, bytes_count=len(BODY), extension="png")

    asyncio.run(story())
    assert temporaries(tmp_path) == []
    assert final_objects(tmp_path) == []


class Stuck:
    """An os call of the sink that ends only when it is freed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self._real = getattr(os, name)
        self.entered, self.free = threading.Event(), threading.Event()
        monkeypatch.setattr(os, name, self._call)

    def _call(self, *arguments: Any, **named: Any) -> Any:
        self.entered.set()
        assert self.free.wait(20)
        return self._real(*arguments, **named)


@pytest.mark.parametrize(("stuck", "body"), [("write", BODY), ("fsync", BODY), ("write", SMALL), ("fsync", SMALL)])
def test_a_discard_waits_for_what_a_cancelled_caller_left_running(
    stuck: str, body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A descriptor closed under a running write could by then name another file."""
    tmp_path.joinpath(INCOMING).mkdir()
    call = Stuck(monkeypatch, stuck)

    async def story() -> None:
        upload: FileUpload = FileSink(tmp_path, seams=Seams.real()).begin(PLACE)
        storing = asyncio.create_task(stored(upload, body))
        await until_async(call.entered.is_set)
        storing.cancel()
        discarding = asyncio.create_task(upload.discard())
        done, _ = await asyncio.wait([discarding], timeout=0.05)
        assert not done
        assert len(temporaries(tmp_path)) == 1
        call.free.set()
        await discarding

    asyncio.run(story())
    assert temporaries(tmp_path) == []


def test_a_discard_goes_on_when_its_own_caller_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it still waits for a thread: a worker that ends cancels what cleans up, too."""
    call = Stuck(monkeypatch, "fsync")

    async def story() -> None:
        sink = FileSink(tmp_path, seams=Seams.real(), threads=1)
        upload = sink.begin(PLACE)
        await upload.write(BODY)
        busy = asyncio.create_task(put(sink, replace(PLACE, index=3)))
        await until_async(call.entered.is_set)
        discarding = asyncio.create_task(upload.discard())
        await asyncio.wait([discarding], timeout=0.01)
        discarding.cancel()
        await asyncio.wait([discarding])
        call.free.set()
        await busy
        await sink.run(lambda: None)

    asyncio.run(story())
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("body", [BODY, SMALL], ids=["large", "small"])
def test_a_call_whose_caller_was_cancelled_troubles_nobody(
    body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is queued behind a full sink is given up with its caller; asyncio has nothing to report."""
    call, reported = Stuck(monkeypatch, "write"), list[dict[str, Any]]()

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        sink = FileSink(tmp_path, seams=Seams.real(), threads=1)
        storing = [asyncio.create_task(put(sink, replace(PLACE, index=index), body)) for index in range(3)]
        await until_async(call.entered.is_set)
        for each in storing:
            each.cancel()
        await asyncio.sleep(0)
        call.free.set()
        await asyncio.wait(storing)
        await sink.run(lambda: None)

    asyncio.run(story())
    gc.collect()
    assert reported == []
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("body", [BODY, SMALL], ids=["large", "small"])
def test_bytes_are_flushed_before_their_name_and_the_name_from_leaf_to_root(
    body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, flushed = tmp_path / "made" / "sink", list[str]()
    fsync, link = os.fsync, os.link

    def flushing(descriptor: int) -> None:
        flushed.append(os.path.relpath(Path(f"/proc/self/fd/{descriptor}").readlink(), tmp_path))
        fsync(descriptor)

    def linking(*names: str, **named: Any) -> None:
        flushed.append("linked")
        link(*names, **named)

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(os, "link", linking)
    asyncio.run(put(FileSink(root, seams=Seams.real()), body=body))
    made, temporary, rest = flushed[:2], flushed[2], flushed[3:]
    assert made == ["made", "."]
    assert temporary.startswith(f"made/sink/{INCOMING}/op-1-2-")
    folders = [f"made/sink/{PLACE.tenant_folder}/{PLACE.operation_id}", f"made/sink/{PLACE.tenant_folder}", "made/sink"]
    assert rest == ["linked", *folders]
    flushed.clear()
    asyncio.run(put(FileSink(root, seams=Seams.real()), body=body))
    assert flushed[1:] == ["linked", f"{folders[0]}/2-{hashlib.sha256(body).hexdigest()}.png", *folders]


@pytest.mark.parametrize("body", [BODY, SMALL], ids=["large", "small"])
def test_an_upload_is_published_once(body: bytes, tmp_path: Path) -> None:
    """Written on, its temporary would change the object: they are one file."""

    async def story() -> None:
        upload = FileSink(tmp_path, seams=Seams.real()).begin(PLACE)
        await stored(upload, body)
        with pytest.raises(Stopped):
            await upload.publish(sha256=SHA256, bytes_count=len(body), extension="jpg")
        with pytest.raises(Stopped):
            await upload.write(b"more")
        await upload.discard()

    asyncio.run(story())
    (found,) = final_objects(tmp_path)
    assert found.read_bytes() == body


@pytest.mark.parametrize("body", [BODY, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("nth", range(5))
def test_a_flush_that_fails_is_a_value_and_the_next_upload_is_right(
    nth: int, body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary, the three folders, and nothing."""
    real, count = os.fsync, itertools.count()

    def failing(descriptor: int) -> None:
        if next(count) == nth:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    if nth < 4:
        assert reason_of(tmp_path, body=body) == Reason.SINK_FAILED
    assert temporaries(tmp_path) == []
    uri = asyncio.run(put(FileSink(tmp_path, seams=Seams.real()), body=body))
    (found,) = final_objects(tmp_path)
    assert (found.as_uri(), found.read_bytes()) == (uri, body)


def test_other_bytes_than_are_named_get_no_name(tmp_path: Path) -> None:
    async def story() -> None:
        upload = FileSink(tmp_path, seams=Seams.real()).begin(PLACE)
        await upload.write(SMALL)
        with pytest.raises(Stopped):
            await upload.publish(sha256=SHA256, bytes_count=len(SMALL) + 1, extension="png")
        await upload.discard()

    asyncio.run(story())
    assert final_objects(tmp_path) == temporaries(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_storage_that_has_no_room_is_full(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", refusing)
    assert reason_of(tmp_path) == reason_of(tmp_path, body=SMALL) == Reason.SINK_FULL
    assert temporaries(tmp_path) == []


def test_a_close_that_fails_leaves_neither_descriptor_nor_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(put(FileSink(tmp_path, seams=Seams.real())))
    real = os.close

    def failing(descriptor: int) -> None:
        is_temporary = Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".part"
        real(descriptor)
        if is_temporary:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", failing)
    sink = FileSink(tmp_path, seams=Seams.real())
    before = descriptors()
    asyncio.run(put(sink, replace(PLACE, index=3)))
    assert descriptors() == before
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("is_link", [True, False], ids=["link", "file"])
def test_what_has_the_temporarys_name_is_left_alone(is_link: bool, tmp_path: Path) -> None:
    class Known(Ids):
        def uuid7(self) -> UUID:
            return UUID(int=1)

    outside = tmp_path / "outside"
    planted = tmp_path / "sink" / INCOMING / f"op-1-2-{UUID(int=1)}.part"
    planted.parent.mkdir(parents=True)
    if is_link:
        planted.symlink_to(outside)
    else:
        planted.write_bytes(b"another's")
    before = descriptors()
    with pytest.raises(Stopped):
        asyncio.run(put(FileSink(tmp_path / "sink", seams=replace(Seams.real(), ids=Known()))))
    assert not outside.exists()
    assert is_link or planted.read_bytes() == b"another's"
    assert descriptors() == before


@pytest.mark.parametrize("body", [b"", SMALL, BODY], ids=["nothing", "small", "large"])
def test_what_was_discarded_is_not_published(body: bytes, tmp_path: Path) -> None:
    """A small one touched no storage at all."""
    root = tmp_path / "sink"

    async def story() -> None:
        upload = FileSink(root, seams=Seams.real()).begin(PLACE)
        await upload.write(body)
        await upload.discard()
        with pytest.raises(Stopped):
            await upload.publish(sha256=SHA256, bytes_count=len(body), extension="png")

    asyncio.run(story())
    assert root.exists() == (body is BODY)
    assert final_objects(root) == temporaries(root) == []
