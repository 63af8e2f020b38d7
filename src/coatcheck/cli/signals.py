"""Signals by which workers are told to end. One that asks to drain does so however often, and never makes a good end a death.

So once all is done such a signal is ignored, by the process as a whole: what the system's own answer would be, one thread that is left could
still give. An interrupt is heard on, for to leave the embedded server takes its time, and a person may have none.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable

DRAINING = (signal.SIGTERM, signal.SIGHUP)
"""They ask to drain: somebody's wish, and a terminal or a line that is gone."""
ORDERS = (signal.SIGINT, *DRAINING)


def heeded() -> Iterable[signal.Signals]:
    """Those that ask to drain, without a hangup where whoever started us wants it ignored, as `nohup` does."""
    return [each for each in DRAINING if each is signal.SIGTERM or signal.getsignal(each) is not signal.SIG_IGN]


def heed(signals: Iterable[signal.Signals], told: Callable[[], object]) -> None:
    """From now on the running loop calls `told` for each of these that comes, until `deafen`."""
    # not by the loop's own means, which give the signal back to the system the moment the loop is closed
    loop = asyncio.get_running_loop()
    for each in signals:
        signal.signal(each, lambda *_: loop.call_soon_threadsafe(told))


def deafen() -> None:
    """From now on nobody who asks to drain is heard: call it before the loop ends, in a process that has done so."""
    for each in DRAINING:
        signal.signal(each, signal.SIG_IGN)
