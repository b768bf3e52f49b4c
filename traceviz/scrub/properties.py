"""Which of the properties that a trace states (settings, arguments of operations, stats) may keep their text.

A property is a key and a value. Numbers stay. A text goes where its key says that it names a person, a machine, a place
or a command; other texts stay, without secrets and with absolute paths shortened.
"""

from __future__ import annotations

import re

_PRIVATE_KEY = re.compile(
    r"(?:.*[_\-. ])?(?:"
    r"argv|cmd(?:line)?|command(?:[_ ]?line)?|env(?:iron(?:ment)?)?|cwd|home"
    r"|host(?:[_ ]?names?)?|node[_ ]?name|user(?:[_ ]?names?)?|login|account|e?mail|serial|uuid|guid"
    r"|paths?|dir(?:ector(?:y|ies))?s?|folders?|files?|file[_ ]?(?:names?|patterns?)|repository|workspace|log[_ ]?dir"
    r"|session(?:[_ ]?id)?|token|secret|password|credentials?|(?:api|access|private|secret)[_ ]?key"
    r")",
    re.IGNORECASE,
)
_TELLING_KEY = re.compile(
    r"version|vendor|device_(?:name|type)|framework|backend|platform|compiler|algorithm|autotune|precision|strategy",
    re.IGNORECASE,
)
_PLAIN_VALUE = re.compile(
    r"[+-]?\d{0,20}(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?|true|false|none|v?\d+(?:\.\w{1,16}){1,6}"
    r"|running|finished|failed|killed|interrupted|recording|recorded|unused|not-asked",  # how a run went
    re.IGNORECASE,
)
_SOURCE_KEY = re.compile(r"source(?:_(?:stack|file|info|line))?|(?:source_)?location", re.IGNORECASE)
_FOLDERS = re.compile(rb"[^\s\"'<>(),;|]*[/\\](?=[^/\\\s]*)")
_FRAME = re.compile(rb"^\$.*[/\\](?=[^/\\]*:\d+ )")


def is_private(key: str) -> bool:
    """Whether texts under ``key`` go: ``repository_path``, ``hostname``, ``command_line``."""
    return _PRIVATE_KEY.fullmatch(key) is not None


def is_source(key: str) -> bool:
    """Whether texts under ``key`` name places in the program's source, as paths that need not be absolute."""
    return _SOURCE_KEY.fullmatch(key) is not None


def keeps_setting(key: str, value: str) -> bool:
    """Whether the text of a setting stays: versions, kinds, and numeric options do, anything else does not."""
    return not is_private(key) and (_PLAIN_VALUE.fullmatch(value) is not None or _TELLING_KEY.search(key) is not None)


def without_folders(text: bytes) -> bytes:
    """Places in source, ``users/ada/train.py:12``, without their folders: ``train.py:12``."""
    return _FOLDERS.sub(b"", text)


def without_folder(name: bytes) -> bytes:
    """The name of an operation; of a Python frame, ``$/home/ada/train.py:12 step``, without the folder of its file."""
    return _FRAME.sub(b"$", name) if name.startswith(b"$") else name
