"""Recognition of traces of PyTorch's profiler, and of others in the format of Chrome's trace viewer."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from traceviz.parsers.base import HEAD_BYTES, Match
from traceviz.parsers.shared.json.stream import HEAD_TEXT_BYTES, head_text

_FAR = HEAD_TEXT_BYTES
"""Bytes of text to search: a list of devices or metadata of the user may come first."""

_OURS = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds|trace_id)"\s*:'
    rb'|"cat"\s*:\s*"(?:cpu_op|cpu_instant_event|cuda_runtime|cuda_driver|gpu_memcpy|gpu_memset|user_annotation'
    rb'|gpu_user_annotation|python_function|Operator|Runtime|ac2g|fwdbwd)"'
)
_EVENT = re.compile(rb'"traceEvents"\s*:|"ph"\s*:\s*"[A-Za-z(){}]"')
_PLANE_NAME = re.compile(
    rb'"name"\s*:\s*"(?:[^"/\s]+ )?/(?:host|device):[A-Z][^"]*'
    rb'(?<! Compute)(?<! Tensors)"'  # lanes of TensorFlow 1
)


def sniff_file(head: bytes, path: Path) -> Match:
    """Return how sure it is that ``head`` is the start of a trace of this format; total."""
    text = head_text(head)
    if not text.startswith((b"{", b"[")):
        return Match.NO
    if not _EVENT.search(text) and len(text) >= HEAD_BYTES:
        with suppress(OSError, ValueError), path.open("rb") as file:
            text = head_text(file.read(_FAR)) or text
    if not _EVENT.search(text):
        return Match.NO
    if _OURS.search(text):
        return Match.YES
    return Match.NO if _PLANE_NAME.search(text) else Match.MAYBE
