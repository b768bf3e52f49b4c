"""Demangler with limits: a separate program, which :mod:`traceviz.parsers.nvprof.demangle` starts.

A mangled name of 500 characters can stand for gigabytes of text, and the demangler ends the whole process if it gets no
memory. So it runs in a separate process with little memory and a timer that ends it. It reads names from standard
input, one per line, and answers each at once with a line: ``+`` and the name as in the source, ``-`` if it is not a
mangled name, ``!`` if the result is too long. If the process ends early, the number of its answers identifies the name
that crashed it.

It imports no part of traceviz and no site packages except the demangler, so that it starts fast.
"""

from __future__ import annotations

import os
import resource
import signal
import sys

MOST_MEMORY = 48 << 20
"""Bytes that a name may take in addition to the program itself."""
MOST_SECONDS = 0.5
"""Processor time that a name may take."""
LONGEST_RESULT = 100_000
"""Maximum characters of a demangled name; the longest real ones have some ten thousand."""
LONGEST_RESULTS = 64 << 20
"""Maximum characters of all names of one process: tens of thousands of long ones."""
_UNKNOWN_SIZE = 512 << 20
"""Address space for the program itself if the system does not report its size."""


def limit() -> None:
    """Limit this process to little memory and no core file, and let the timer end it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 (pathlib takes longer than the work)
            size = int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        size = _UNKNOWN_SIZE
    for what, wanted in ((resource.RLIMIT_AS, size + MOST_MEMORY), (resource.RLIMIT_CORE, 0)):
        _, most = resource.getrlimit(what)
        resource.setrlimit(what, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its input


def main() -> None:
    """Answer each line of standard input."""
    sys.path.append(sys.argv[1])
    from pycxxfilt import demangle  # noqa: PLC0415 (only the caller knows its folder)

    limit()
    room = LONGEST_RESULTS
    for line in sys.stdin.buffer:
        answer = b"-"
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        try:
            text = demangle(line[:-1].decode())
        except (ValueError, MemoryError):
            text = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        if text is not None:
            fits = len(text) <= min(LONGEST_RESULT, room)
            room -= len(text) if fits else 0
            answer = b"+" + text.encode("utf-8", "replace") if fits else b"!"
        _write(answer.replace(b"\n", b" ") + b"\n")


def _write(answer: bytes) -> None:
    """Write at once: buffered output would be lost with the process."""
    while answer:
        answer = answer[os.write(1, answer) :]


if __name__ == "__main__":
    main()
