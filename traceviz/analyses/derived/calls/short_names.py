"""Names as they stand within a sentence."""

from __future__ import annotations

import re

LONGEST_NAME = 48
"""Characters of a name within a sentence."""
_FRAME = re.compile(r"^(?:\$|(?:.*/)?)(?P<file>[^/()$:]+)(?:\(\d+\): |:\d+ )(?P<function>.+)$")
"""Frames of Python as torch (``lib/a.py(12): f``) and JAX (``$a.py:12 f``) name them."""


def shortened(name: str) -> str:
    """``name`` within a sentence; of a Python frame, the function and its file."""
    frame = _FRAME.match(name)
    text = f"{frame['function']} ({frame['file']})" if frame else name
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def function_of(kernel: str) -> str:
    """The function of a demangled kernel name, without its type and arguments."""
    plain = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel)
    return re.split(r"[<(]", plain, maxsplit=1)[0].rpartition(" ")[2] or kernel
