"""Secrets that a trace reveals: values of variables and options, names of users and hosts, and shapes in its texts.

There are two kinds of private texts. *Shapes* are recognised anywhere (:mod:`traceviz.scrub.secrets.shapes`). *Secrets*
are values that the trace itself reveals, such as the value of an environment variable or the name of the user, and
texts recognised once by their shape. They must not occur in the output, not even inside an NVTX text. A value of a
variable counts as a secret if its variable is named like one (``API_KEY``), or if it is distinctive
(:mod:`traceviz.scrub.secrets.values`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from traceviz.scrub.secrets.addresses import is_version
from traceviz.scrub.secrets.shapes import hits
from traceviz.scrub.secrets.values import SHORT, Secret, is_common, is_distinctive, secrets_of_identity

_SENSITIVE_NAME = re.compile(
    rb"key|token|secret|passw|passphrase|_pwd$|cred|auth|cookie|private|cert|dsn$|conn_?str|webhook|account|e?mail"
    rb"|session|ssh_(?:client|connection)",
    re.IGNORECASE,
)
_HOST_NAME = re.compile(rb"host(?:name)?$|node(?:name|list)?$|machine$|pod$|addr$|ipaddr|display_name$", re.IGNORECASE)
_USER_NAME = re.compile(rb"^(?:user|logname|username|.*(?:_user|_username|:user_name))$", re.IGNORECASE)
_FOLDER_NAME = re.compile(rb"^(?:home|.*_home_dir|userprofile)$", re.IGNORECASE)
_APPEARANCE_NAME = re.compile(rb"^(?:ls_colors|ps\d|prompt_command|less.*|termcap|bash_func_.*)$", re.IGNORECASE)

_PUNCTUATION = b",;:"
"""Characters at the end of a word in a sentence. The word still counts as a plain word."""
_SEPARATORS = re.compile(rb"[\s:;,\"']+")


def secrets_of_variable(name: bytes, value: bytes) -> Iterator[Secret]:
    """Yield the secrets that an environment variable (or an option with a value) reveals."""
    if _APPEARANCE_NAME.match(name) or is_version(name.decode("utf-8", "replace"), value.decode("utf-8", "replace")):
        return
    yield from secrets_of_text(value)
    if _USER_NAME.match(name) or _HOST_NAME.search(name):
        yield from secrets_of_identity(value)
    if _FOLDER_NAME.match(name) and value.strip(b"/").count(b"/") >= 1:
        yield Secret(value.rstrip(b"/"), certain=True)
        yield from secrets_of_identity(value.rstrip(b"/").rpartition(b"/")[2])
    sensitive = _SENSITIVE_NAME.search(name) is not None
    value = value.strip(_PUNCTUATION)
    is_word = len(value) < 6 or is_common(value) or (value.isdigit() and len(value) < SHORT)
    if (sensitive and not is_word) or is_distinctive(value, 6):
        yield Secret(value, certain=sensitive)
    for part in _SEPARATORS.split(value):
        if part != value and is_distinctive(part, SHORT):
            yield Secret(part, certain=sensitive)


def secrets_of_property(key: str, text: bytes) -> Iterator[Secret]:
    """Yield the secrets in the text of a property by their shape. Versions have none."""
    if not is_version(key, text.decode("utf-8", "replace")):
        yield from secrets_of_text(text)


def secrets_of_text(text: bytes) -> Iterator[Secret]:
    """Yield the secrets in any text by their shape: users of home folders, tokens, addresses."""
    for hit in hits(text):
        yield from hit.secrets


def secrets_of_arguments(arguments: Iterable[bytes]) -> Iterator[Secret]:
    """Yield the secrets of a command line. ``--name value`` and ``--name=value`` are judged like variables."""
    option = b""
    for argument in arguments:
        name, equals, value = argument.partition(b"=")
        if argument.startswith(b"-"):
            option = b"" if equals else argument.lstrip(b"-").replace(b"-", b"_")
            if equals:
                yield from secrets_of_variable(name.lstrip(b"-").replace(b"-", b"_"), value)
        else:
            yield from secrets_of_variable(option, argument)
            option = b""


def variables_of_block(block: bytes) -> list[tuple[bytes, bytes]]:
    """Return ``(name, value)`` of an environment as stored by the operating system: NUL-separated ``name=value``."""
    pairs = (item.partition(b"=") for item in block.split(b"\0"))
    return [(name, value) for name, equals, value in pairs if equals and name]


def base_name(name: bytes) -> bytes:
    """Return the last part of a program's name, which may be a path."""
    return re.split(rb"[/\\]", name.rstrip(b"/\\"))[-1]
