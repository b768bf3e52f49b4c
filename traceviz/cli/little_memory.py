"""Commands where the address space is limited (``ulimit -v``): they work with little, or say what they need.

Compiled libraries end a process that gets no memory (Polars), or cannot even be loaded. So the work is done in a child
process, and this one says in words how that ended.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

import click

from traceviz.core.errors import OutOfMemoryError, TracevizError
from traceviz.core.process.memory import address_limit, keep_large_blocks_apart, use_one_heap
from traceviz.core.units import format_value

LEAST = 600 * 10**6
"""Address space that the libraries take, and a small trace: below, they cannot even be loaded."""
_PLENTY = 16 * 10**9
"""Where there is so much, nothing needs to be spared."""

_SPARING = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the other pools reserve gigabytes of addresses in advance
    "ARROW_IO_THREADS": "1",
    "OMP_NUM_THREADS": "1",  # of Arrow; each thread takes the addresses of its stack
    "POLARS_MAX_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",  # of Polars, for files
    "_RJEM_MALLOC_CONF": "background_thread:false,narenas:1",  # the allocator of Polars
}
_RETURNING = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",  # of Polars: only some calls end the time to keep pages
}
_SET_PARENT_DEATH_SIGNAL = 1
_CRASHES = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP})
_PASSED_ON = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
_SHORTAGE = re.compile(
    r"alloc|out of memory|failed to map|cannot map|new thread|worker thread|spawn threads|temporarily unavailable",
    re.IGNORECASE,
)


def within_address_space(work: Callable[[], Any], least: int = LEAST) -> Any:
    """What ``work`` returns; where the address space is limited, it runs in a child process that spares it.

    Args:
        work: The command.
        least: Address space that it takes even for a small trace.

    Raises:
        OutOfMemoryError: there is too little to begin, or there was while it worked.
    """
    limit = address_limit()
    if limit is None:
        return work()
    if limit < least:
        raise OutOfMemoryError(
            f"traceviz needs about {format_value(least, 'bytes')} of address space to begin.",
            f"This process may use {format_value(limit, 'bytes')}: ulimit -v.",
            _RAISE_IT,
        )
    if limit < _PLENTY:
        _spare()
    with tempfile.TemporaryFile() as errors:
        waited = _PASSED_ON | {signal.SIGCHLD}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
        _flush()
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            _end_with_parent()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return _in_words(work, limit)
        code = _end_of(child, waited)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if -code in _CRASHES:
            raise _too_little(limit)
        _copy(errors)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise click.exceptions.Exit(code)


_RAISE_IT = "Raise it in the shell that starts traceviz: ulimit -v unlimited"


def _spare() -> None:
    """Make the libraries, which are not loaded yet, start no threads and reserve no addresses."""
    for name, value in _SPARING.items():
        os.environ.setdefault(name, value)
    use_one_heap()


def give_back_soon() -> None:
    """Make the libraries, which are not loaded yet, return memory to the system soon after it is freed.

    They keep it otherwise for what comes next, which is faster: each time the system clears the pages anew.
    """
    for name, value in _RETURNING.items():
        os.environ.setdefault(name, value)
    keep_large_blocks_apart()


def _end_with_parent() -> None:
    """Have the system end this process when its parent is killed: nobody would wait for what it does."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))


def _flush() -> None:
    """Write what waits: the child would write it once more."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _in_words(work: Callable[[], Any], limit: int) -> Any:
    """What ``work`` returns; whatever it raises for lack of memory is one error."""
    try:
        return work()
    except (TracevizError, click.ClickException, click.exceptions.Exit, click.Abort, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        if _is_shortage(error):
            raise _too_little(limit) from error
        raise


def _is_shortage(error: BaseException) -> bool:
    """Whether an error says that there is no memory; panics of Polars are no :class:`Exception`."""
    is_panic = type(error).__name__ == "PanicException"
    return is_panic or isinstance(error, MemoryError | ImportError) or _SHORTAGE.search(str(error)) is not None


def _too_little(limit: int) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"The work needs more address space than this process may use: {format_value(limit, 'bytes')}.",
        "ulimit -v limits it.",
        _RAISE_IT,
    )


def _end_of(child: int, waited: frozenset[signal.Signals]) -> int:
    """How the child ended: its exit code, or minus the signal. Signals for this process are passed on to it."""
    while True:
        arrived = signal.sigwaitinfo(waited)
        if arrived.si_signo != signal.SIGCHLD:
            if arrived.si_code <= 0:  # what a terminal sends, the child got itself
                with suppress(ProcessLookupError):
                    os.kill(child, arrived.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended == child:
            return os.waitstatus_to_exitcode(status)


def _copy(errors: BinaryIO) -> None:
    """Give out what the child wrote to stderr."""
    errors.seek(0)
    with suppress(OSError):
        while block := errors.read(2**16):
            os.write(2, block)
