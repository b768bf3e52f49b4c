"""Samples a program and its machine in a separate process: ``python -m traceviz.collectors.sampler``.

It ends upon SIGTERM, when all processes of the program have ended, or when the process that started it was killed.
Times are the wall clock at the start plus the monotonic clock since: setting the clock moves no sample.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import resource
import signal
from pathlib import Path

from traceviz.collectors.sampler.sampler import Sampler


def main() -> None:
    """Run the sampler as the command line requests."""
    parser = argparse.ArgumentParser(prog="python -m traceviz.collectors.sampler", description=__doc__)
    parser.add_argument("--pid", type=int, required=True, help="process id of the program")
    parser.add_argument("--out", type=Path, required=True, help="existing folder for the samples")
    parser.add_argument("--rate", type=float, default=10.0, help="samples per second")
    parser.add_argument("--wrapped", type=Path, help="file in which the pid of the program that --pid wraps will stand")
    parser.add_argument("--parent", type=int, help="process id of the recording, with which the sampler ends")
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program
    # As many open files as the system grants: three for each process of the program, and one for each thread.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.freeze()  # loaded objects stay: without this, every full collection scans all of Arrow and NumPy
    Sampler(options.pid, options.out, options.rate, options.wrapped, options.parent).run()


if __name__ == "__main__":
    main()
