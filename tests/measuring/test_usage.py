"""What limits a figure is read from shares that were measured: each cause is named where it was one, and nothing is claimed that nobody saw."""

import os
import resource

import pytest

from coatcheck.bench import kernel, shown
from coatcheck.bench.figure import quantile
from coatcheck.bench.usage import Reading, Shares, Usage, Watch
from coatcheck.seams import Clock

CORES = os.cpu_count() or 1


def usage(
    *,
    worker: float | Shares | None = 0.1,
    machine: float | None = 0.5,
    flushing: float | None = 0.1,
    server: float = 0.2,
) -> Usage:
    parties: dict[str, Shares] = {"worker": worker if isinstance(worker, tuple) else (worker,), "PostgreSQL": (server,)}
    return Usage(seconds=1.0, parties=parties, machine=machine, flushing=flushing)


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        (usage(worker=0.9), "worker CPU"),
        (usage(worker=0.9, machine=CORES), "worker CPU"),
        (usage(machine=CORES), "all cores busy"),
        (usage(flushing=0.6), "fsync"),
        (usage(), "waiting"),
        (usage(server=1.0), "waiting"),
        (usage(worker=(0.2, 0.85)), "worker CPU"),
        (usage(worker=(0.8, 0.8, 0.8)), "waiting"),
        (usage(worker=None, machine=None, flushing=None), "unknown"),
    ],
)
def test_the_cause_is_named_first(seen: Usage, cause: str) -> None:
    assert seen.limit.startswith(f"{cause} (worker ")


def test_what_belongs_to_nobody_in_the_run_is_the_others() -> None:
    assert "others 0.20" in usage(worker=0.1, server=0.2, machine=0.5).limit


def test_of_several_processes_the_sum_is_told_and_each() -> None:
    assert "(worker 1.20 (0.70, 0.50), PostgreSQL 0.20, others 0.40 of" in usage(worker=(0.7, 0.5), machine=1.8).limit
    assert "(worker ? (0.70, ?), PostgreSQL 0.20, others" in usage(worker=(0.7, None)).limit


def test_a_share_that_nobody_told_is_a_question_mark() -> None:
    assert "worker ?" in usage(worker=None).limit
    assert "flushing" not in usage(flushing=None).limit


class Moved(Clock):
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 100.0

    def boottime(self) -> float:
        return self.at


def test_shares_are_of_the_time_that_passed() -> None:
    clock, spent = Moved(), {"worker": 7.0}
    readings: dict[str, list[Reading]] = {"worker": [lambda: spent["worker"], lambda: 3.0], "gone": [lambda: None]}
    watch = Watch(clock, readings, lambda: None)
    clock.at += 4
    spent["worker"] += 2
    seen = watch.usage()
    assert (seen.seconds, seen.parties, seen.flushing) == (4, {"worker": (0.5, 0), "gone": (None,)}, None)


def test_the_kernel_tells_what_this_process_used() -> None:
    own = resource.getrusage(resource.RUSAGE_SELF)
    told = kernel.cpu_s(os.getpid())
    assert told is not None
    assert told == pytest.approx(own.ru_utime + own.ru_stime, abs=0.5)
    held = kernel.resident_bytes(os.getpid())
    assert held is not None
    # the kernel adds up both now and then only
    assert 0 < held < own.ru_maxrss * 1024 * 1.2
    assert kernel.parent(os.getpid()) == os.getppid()


def test_of_a_process_that_is_gone_nothing_is_told() -> None:
    assert kernel.cpu_s(2**22 + 1) is None
    assert kernel.family_cpu_s(2**22 + 1) is None
    assert kernel.resident_bytes(2**22 + 1) is None
    assert kernel.name(2**22 + 1) is None


def test_a_child_that_ends_between_two_readings_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be among neither those that have ended nor those that live, and a server would seem to have used less than before."""
    ended, read = iter([1.0, 3.0, 3.0]), kernel.cpu_s(os.getpid())
    monkeypatch.setattr(kernel, "_ended_cpu_s", lambda _: next(ended))
    monkeypatch.setattr(kernel, "children", lambda _: [])
    monkeypatch.setattr(kernel, "cpu_s", lambda _: read)
    assert kernel.family_cpu_s(os.getpid()) == 3.0 + (read or 0.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0312, "0.031"),
        (0, "0.000"),
        (4.567, "4.57"),
        (45.67, "45.7"),
        (1834.2, "1 834"),
        (-0.5, "-0.500"),
    ],
)
def test_three_digits_count(value: float | None, text: str) -> None:
    assert shown(value) == text


def test_a_quantile_is_one_of_the_samples() -> None:
    samples = [float(number) for number in range(100, 0, -1)]
    assert (quantile(samples, 0.5), quantile(samples, 0.99), quantile([7.0], 0.99)) == (51, 100, 7)
