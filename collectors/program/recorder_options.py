"""The command line and the signals of a recorder that runs alongside the program: of the samplers, as modules.

It ends with the program, or upon SIGTERM. Little is imported here: a sampler loads it before it samples.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_options(module: str, text: str | None, rate_hz: float, further: Mapping[str, Any]) -> argparse.Namespace:
    """Return the options of this process: its own, and those that :func:`.companion_process.start_recorder` adds.

    SIGTERM is blocked from now on, so that it can be waited for. Ctrl-C is for the program.

    Args:
        module: The module that Python runs.
        text: Its description.
        rate_hz: Default of the samples per second.
        further: Options of this recorder alone: name, and what ``add_argument`` takes.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=text)
    parser.add_argument("--pid", type=int, required=True, help="process id of the program")
    parser.add_argument("--out", type=Path, required=True, help="existing folder for the samples")
    parser.add_argument("--rate", type=float, default=rate_hz, help="samples per second")
    parser.add_argument("--wrapped", type=Path, help="file in which the pid of the program that --pid wraps will stand")
    for name, settings in further.items():
        parser.add_argument(name, **settings)
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return options
