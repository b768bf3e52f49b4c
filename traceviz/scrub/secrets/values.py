"""Values that identify a person or a machine: secrets, and the test for values that are distinctive enough to search.

Not every value can be searched. With ``MODE=training`` in the environment, every range named "training" would lose its
name. A value is *distinctive* if it has at least six characters, and is neither a plain word, a number, a version nor
the path of an installed program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from traceviz.scrub.secrets.addresses import is_address

SHORT = 8
"""Secrets below this length are recognised as whole words only: ``ann`` must not match in ``channel``."""
_LONG = 16
"""The same limit for words of letters only: ``telemetry`` must not match in ``opentelemetry``."""

_PLAIN_WORDS = re.compile(rb"[A-Za-z_.\-/ ]*")
_NUMBERS = re.compile(rb"[\d.,:;+\- ]*|0x[0-9a-fA-F,x]*")
_VERSION = re.compile(rb"[<>=^~v]*\d+(?:\.\d+)+[\w.+\-]{0,16}")
_SYSTEM_PATH = re.compile(rb"/(?:usr|opt|bin|sbin|lib|lib64|etc|proc|sys|dev|run|var|tmp|snap|nix)(?:/.*)?", re.DOTALL)
_NAME_OF_ADDRESS = re.compile(rb"(?:ip|ec2)-(\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})", re.IGNORECASE)
_COMMON = frozenset(
    b"true false none null default localhost unknown node local auto linux normal quiet user users root ubuntu admin "
    b"administrator nobody jovyan docker centos ec2-user runner vscode opc app guest test shared public nvidia "
    b"removed path xterm-256color utf-8 en_us.utf-8 c.utf-8 127.0.0.1 0.0.0.0 x86_64 amd64 aarch64".split()
)


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that must not occur in the output.

    Args:
        text: The value, as UTF-8.
        certain: If true, search it even if it is a word in kernel and function names.
        folds: If true, search it in upper and lower case, as for names of hosts and users.
    """

    text: bytes
    certain: bool = False
    folds: bool = False


def is_word(text: bytes) -> bool:
    """Return whether a secret is searched as a whole word only, since other words may contain it."""
    return len(text) < SHORT or (len(text) < _LONG and text.isalpha())


def is_common(value: bytes) -> bool:
    """Return whether many programs and machines have this value."""
    return value.lower() in _COMMON


def is_distinctive(value: bytes, least: int) -> bool:
    """Return whether a value has at least ``least`` characters, and is not a word, number, version or program."""
    if len(value) < least or is_common(value):
        return False
    if _NUMBERS.fullmatch(value) or _VERSION.fullmatch(value) or _SYSTEM_PATH.fullmatch(value):
        return False
    return len(value) >= _LONG or not _PLAIN_WORDS.fullmatch(value)


def secrets_of_identity(value: bytes) -> Iterator[Secret]:
    """Yield the name of a user or a host; for a full host name also its first label."""
    for name in {value, value.partition(b".")[0]}:
        if len(name) >= 3 and not is_common(name) and not _NUMBERS.fullmatch(name):
            yield Secret(name, folds=True)


def secrets_of_address(address: bytes) -> Iterator[Secret]:
    """Yield an address in the forms to search: ``10.0.0.7``, and the name that clouds make of it, ``ip-10-0-0-7``."""
    yield Secret(address.partition(b"%")[0], certain=True, folds=not is_address(address))
    name = _NAME_OF_ADDRESS.fullmatch(address)
    if name:
        yield Secret(name[1].replace(b"-", b"."), certain=True)
    elif is_address(address):
        yield Secret(b"ip-" + address.replace(b".", b"-"), certain=True, folds=True)
