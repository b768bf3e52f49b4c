"""Search for secrets in the bytes of a file that is damaged or cannot be rewritten.

A report of Nsight Systems holds the environments of processes in the system's form (NUL-separated ``NAME=value``), and
the command line with one field of a message per argument::

    Z 10 --password  Z 10 hunter2-zz  Z 6 --data ...        tag of the field, length, text
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from traceviz.scrub.secrets.secrets import secrets_of_arguments, secrets_of_text, secrets_of_variable
from traceviz.scrub.secrets.values import Secret
from traceviz.untrusted.windows import windows

_VARIABLE = re.compile(rb"(?<=[\0\n])([A-Za-z_][A-Za-z0-9_]{1,127})=([^\0]{1,65536})(?=\0)")
_TEXT = re.compile(rb"[\x20-\x7e]{6,4096}")
_OPTION = re.compile(rb"Z[\x02-\xff][\x01-\x7f]?--?[A-Za-z]")
_TAG = b"Z"
_MOST_ARGUMENTS = 10_000
_LONGEST = 1 << 20
"""Maximum length in bytes of a variable or command line that is found as a whole."""
_MOST_TEXT = 64 << 20
"""Bytes that are searched for home folders, tokens and addresses. Beyond them, only variables are searched."""


def secrets_of_bytes(path: Path) -> Iterator[Secret]:
    """Yield the secrets in the raw bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    looked_at = 0
    for content, is_last in windows(path, _LONGEST):
        whole = len(content) if is_last else len(content) - _LONGEST
        for name, value in _VARIABLE.findall(content):
            yield from secrets_of_variable(name, value)
        for option in _OPTION.finditer(content, 0, whole):
            yield from secrets_of_arguments(_arguments(content, option.start()))
        if looked_at < _MOST_TEXT:
            for text in {match[0] for match in _TEXT.finditer(content) if is_last or match.end() < len(content)}:
                yield from secrets_of_text(text)
        looked_at += len(content)


def _arguments(content: bytes, place: int) -> list[bytes]:
    """Return the option whose field starts at ``place``, and the arguments up to the next option."""
    arguments: list[bytes] = []
    while content[place : place + 1] == _TAG and len(arguments) < _MOST_ARGUMENTS:
        size, shift, place = 0, 0, place + 1
        for byte in content[place : place + 3]:
            size |= (byte & 0x7F) << shift
            shift, place = shift + 7, place + 1
            if byte < 0x80:
                break
        argument = content[place : place + size]
        if arguments and argument.startswith(b"-"):
            break
        arguments.append(argument)
        place += size
    return arguments
