"""Samples a program and its machine in a separate process: ``python -m traceviz.collectors.sampler``.

It ends upon SIGTERM, when all processes of the program have ended, or when the process that started it was killed.
Times are the wall clock at the start plus the monotonic clock since: setting the clock moves no sample.
"""

from __future__ import annotations

import contextlib
import gc
import resource

from traceviz.collectors.program.recorder_options import read_options
from traceviz.collectors.sampler.sampler import Sampler


def main() -> None:
    """Run the sampler as the command line requests."""
    parent = {"type": int, "help": "process id of the recording, with which the sampler ends"}
    options = read_options("traceviz.collectors.sampler", __doc__, 10.0, {"--parent": parent})
    # As many open files as the system grants: three for each process of the program, and one for each thread.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.freeze()  # loaded objects stay: without this, every full collection scans all of Arrow and NumPy
    Sampler(options.pid, options.out, options.rate, options.wrapped, options.parent).run()


if __name__ == "__main__":
    main()
