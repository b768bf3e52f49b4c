"""Sampled stacks from literals: a stack is its frames as text, the outermost first.

::

    sampled(
        (0, 10, "train.py:90 main"),
        (10, 40, "train.py:90 main > train.py:41 decode_jpeg > PIL/Image.py:3000 open > read", {"samples": 4}),
    )

A frame's origin follows from its file: a folder is a package, ``threading.py`` and its like are Python's own library,
and a frame without a file is compiled code.
"""

from __future__ import annotations

import re
from typing import Any

STANDARD = r"^(threading|contextlib|queue|selectors|socket|json/|logging/|multiprocessing/|<frozen|importlib/)"
NS_PER_SAMPLE = 10


def sampled(*rows: tuple[Any, ...]) -> dict[str, Any]:
    """Return tables ``stacks`` and ``stack_frames`` for :func:`tests.analyses.builders.trace`.

    Args:
        rows: Start, duration, stack, and a dict of other columns. One sample stands for 10 ns unless it says otherwise.
    """
    numbers: dict[tuple[str, ...], int] = {}
    for _, _, stack, *_ in rows:
        frames = tuple(stack.split(" > "))
        for depth in range(1, len(frames) + 1):
            numbers.setdefault(frames[:depth], len(numbers))
    stacks = [
        (start, dur, numbers[tuple(stack.split(" > "))], max(1, dur // NS_PER_SAMPLE), *other)
        for start, dur, stack, *other in rows
    ]
    frames = [(number, numbers.get(chain[:-1]), *_frame(chain[-1])) for chain, number in numbers.items()]
    return {"stacks": stacks, "stack_frames": frames}


def _frame(text: str) -> tuple[str, str, int | None, str]:
    """Return function, file, line and origin."""
    match = re.fullmatch(r"(.+?):(\d+) (.+)", text)
    if match is None:
        return text, "", None, "native"
    file, line, function = match.groups()
    origin = "standard" if re.match(STANDARD, file) else "library" if "/" in file else "program"
    return function, file, int(line), origin
