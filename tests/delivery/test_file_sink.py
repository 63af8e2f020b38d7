"""A final object is absent or complete, lies inside the root, and is never overwritten."""

import asyncio
import contextlib
import hashlib
import os
import resource
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coatcheck.delivery.file_sink import INCOMING, FileSink
from coatcheck.delivery.outcome import Reason, Stopped
from coatcheck.delivery.sink import Place
from coatcheck.errors import Refused
from coatcheck.seams import Seams
from delivery.origin import final_objects, temporaries
from delivery.sinks import BODY, PLACE, SHA256, SMALL, descriptors, put, reason_of

HOSTILE = [
    *(
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "a\\b",
        ".",
        "",
        " ",
        "a\0b",
        "CON",
        "NUL.txt",
        "a.",
        "a ",
        "~root",
    ),
    *("-rf", "a\nb", "\u202egnp.exe", "x" * 300, "%2e%2e%2f", "a:b", "\ud800", "é", "日本", "🧥", "$(id)", "`id`", "*"),
    *(chr(code) for code in range(0x20)),
    *(chr(code) + ".." for code in range(0x21, 0x7F)),
    *("../" * depth + "x" for depth in range(1, 21)),
    *(
        f"..{separator}etc"
        for separator in ("\u2215", "\u2044", "\uff0f", "%c0%af", "\\\\", "//", "/./", "\x85", "\u2028")
    ),
    *(
        "con",
        "aux.h",
        "lpt1",
        ".incoming",
        "..;",
        "....//",
        "\ufeff..",
        "a\u200b",
        "op\x7f",
        "\u0000",
        "..%00",
        "a" * 101,
    ),
]


def test_an_object_is_named_by_tenant_hash_operation_index_and_content(tmp_path: Path) -> None:
    uri = asyncio.run(put(FileSink(tmp_path, seams=Seams.real())))
    tenant = hashlib.sha256(b"tenant-a").hexdigest()[:32]
    expected = tmp_path / tenant / "op-1" / f"2-{SHA256}.png"
    assert uri == expected.as_uri()
    assert expected.read_bytes() == BODY
    assert temporaries(tmp_path) == []


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    asyncio.run(put(FileSink(tmp_path / "made", seams=Seams.real())))
    (found,) = final_objects(tmp_path)
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    folders = [folder for folder in found.parents if tmp_path in folder.parents]
    assert len(folders) == 3
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_the_same_bytes_again_are_already_done(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, seams=Seams.real())
    first = asyncio.run(put(sink))
    (found,) = final_objects(tmp_path)
    before = found.stat()
    assert asyncio.run(put(sink)) == first
    assert final_objects(tmp_path) == [found]
    assert (found.stat().st_ino, found.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("body", [BODY, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("planted", ["cut short", "changed", "empty"])
def test_an_object_with_other_bytes_is_reported_and_not_overwritten(planted: str, body: bytes, tmp_path: Path) -> None:
    asyncio.run(put(FileSink(tmp_path, seams=Seams.real()), body=body))
    (found,) = final_objects(tmp_path)
    planted_bytes = {"cut short": body[:-1], "changed": body[:-1] + b"X", "empty": b""}[planted]
    found.write_bytes(planted_bytes)
    assert reason_of(tmp_path, body=body) == Reason.SINK_CONFLICT
    assert found.read_bytes() == planted_bytes
    assert temporaries(tmp_path) == []


def test_two_uploads_of_one_place_end_with_one_object(tmp_path: Path) -> None:
    async def story() -> set[str]:
        sinks = [FileSink(tmp_path, seams=Seams.real()) for _ in range(8)]
        return set(await asyncio.gather(*(put(sink) for sink in sinks)))

    assert len(asyncio.run(story())) == 1
    assert len(final_objects(tmp_path)) == 1
    assert temporaries(tmp_path) == []


@contextmanager
def file_size_limit(most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_storage_is_a_value_and_leaves_nothing(tmp_path: Path) -> None:
    with file_size_limit(len(BODY) // 2):
        assert reason_of(tmp_path) == Reason.SINK_FULL
    assert temporaries(tmp_path) == []
    assert final_objects(tmp_path) == []


@pytest.mark.parametrize("level", ["root", "incoming", "tenant", "operation"])
@pytest.mark.parametrize("trap", ["link", "file"])
def test_a_link_or_a_file_in_place_of_a_folder_is_refused(level: str, trap: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "sink", tmp_path / "outside"
    outside.mkdir()
    sink = FileSink(root, seams=Seams.real())
    folder = {
        "root": root,
        "incoming": root / INCOMING,
        "tenant": root / PLACE.tenant_folder,
        "operation": root / PLACE.tenant_folder / PLACE.operation_id,
    }[level]
    folder.parent.mkdir(parents=True, exist_ok=True)
    if trap == "link":
        folder.symlink_to(outside, target_is_directory=True)
    else:
        folder.write_bytes(b"in the way")
    with pytest.raises(Stopped) as stopped:
        asyncio.run(put(sink))
    assert stopped.value.outcome.reason == Reason.SINK_FAILED
    assert list(outside.iterdir()) == []
    assert level in {"root", "incoming"} or temporaries(root) == []


def test_a_link_in_place_of_the_object_is_a_conflict_even_when_the_bytes_match(tmp_path: Path) -> None:
    asyncio.run(put(FileSink(tmp_path / "sink", seams=Seams.real())))
    (found,) = final_objects(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    found.rename(elsewhere)
    found.symlink_to(elsewhere)
    assert reason_of(tmp_path / "sink") == Reason.SINK_CONFLICT


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name[:100])
        Path(path.name[:100]).rename(path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, _socket], ids=["pipe", "folder", "socket"])
def test_what_is_no_file_in_place_of_the_object_is_a_conflict(make: Callable[[Path], None], tmp_path: Path) -> None:
    """None of them hangs or keeps a descriptor."""
    asyncio.run(put(FileSink(tmp_path, seams=Seams.real())))
    (found,) = final_objects(tmp_path)
    found.unlink()
    make(found)
    assert reason_of(tmp_path) == Reason.SINK_CONFLICT
    before = descriptors()
    assert reason_of(tmp_path) == Reason.SINK_CONFLICT
    assert descriptors() == before


@pytest.mark.parametrize("name", HOSTILE)
def test_no_tenants_name_leads_out_of_the_root(name: str, tmp_path: Path) -> None:
    root = tmp_path / "sink"
    asyncio.run(put(FileSink(root, seams=Seams.real()), Place(operation_id="op-1", tenant_id=name, index=0)))
    (found,) = final_objects(tmp_path)
    assert found.resolve().is_relative_to(root)
    assert len(found.relative_to(root).parts) == 3


def test_hostile_operation_ids_are_refused_before_anything_is_touched() -> None:
    assert len(HOSTILE) >= 150
    plain = {"CON", "con", "lpt1"}
    for name in [name for name in HOSTILE if name not in plain]:
        with pytest.raises(Refused):
            Place(operation_id=name, tenant_id="t", index=0)
    with pytest.raises(Refused):
        Place(operation_id="op-1", tenant_id="t", index=-1)


def test_a_sweep_removes_old_temporaries_and_nothing_else(tmp_path: Path) -> None:
    async def story() -> int:
        sink = FileSink(tmp_path, seams=Seams.real())
        await put(sink)
        left, fresh = sink.begin(PLACE), sink.begin(PLACE)
        await left.write(BODY)
        (old,) = temporaries(tmp_path)
        await fresh.write(BODY)
        os.utime(old, (0, 0))
        # whatever it is called, a folder is none of ours
        folder = tmp_path / INCOMING / "0.part"
        folder.mkdir()
        os.utime(folder, (0, 0))
        stranger = tmp_path / INCOMING / "notes.txt"
        stranger.write_bytes(b"not ours")
        os.utime(stranger, (0, 0))
        count = await sink.sweep(3600)
        assert not old.exists()
        folder.rmdir()
        assert len(temporaries(tmp_path)) == 2
        await left.discard()
        await fresh.discard()
        return count

    assert asyncio.run(story()) == 1
    assert len(final_objects(tmp_path)) == 1


def test_an_upload_whose_temporary_was_swept_fails_as_a_value(tmp_path: Path) -> None:
    async def story() -> None:
        upload = FileSink(tmp_path, seams=Seams.real()).begin(PLACE)
        await upload.write(BODY)
        temporaries(tmp_path)[0].unlink()
        with pytest.raises(Stopped) as stopped:
            await upload.publish(sha256=SHA256, bytes_count=len(BODY), extension="png")
        assert stopped.value.outcome.reason == Reason.SINK_FAILED
        await upload.discard()

    asyncio.run(story())
    assert final_objects(tmp_path) == []


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, seams=Seams.real())

    async def story() -> tuple[int, int]:
        await put(sink)
        before = descriptors()
        for _ in range(20):
            await put(sink)
        return before, descriptors()

    before, after = asyncio.run(story())
    assert after == before
