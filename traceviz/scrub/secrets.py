"""Which values of a trace identify a person or a machine, and how they are taken out of the texts that stay.

Two kinds of knowledge meet here. *Patterns* recognise what is private by its shape: home folders, e-mail and hardware
addresses, access tokens, passwords in URLs. *Secrets* are values that the trace itself gives away (the value of an
environment variable, the name of the user) and that must occur nowhere in the output, not even inside an NVTX text.

Not every value can be looked for: with ``MODE=training`` in the environment, every range named "training" would lose
its name. A value counts as a secret if its variable is named like one (``API_KEY``), or if it is *distinctive*: six
characters or more, and neither a plain word, a number, a version nor the path of an installed program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

REMOVED = b"[removed]"
PATH = b"[path]"

SHORT = 8
"""Secrets below this length are recognised as whole words only: ``ann`` must not be found in ``channel``."""

_SENSITIVE_NAME = re.compile(
    rb"key|token|secret|passw|passphrase|_pwd$|cred|auth|cookie|private|cert|dsn$|conn_?str|webhook|account|e?mail"
    rb"|session|ssh_(?:client|connection)",
    re.IGNORECASE,
)
_HOST_NAME = re.compile(rb"host(?:name)?$|nodename$|nodelist$|addr$|ipaddr|display_name$", re.IGNORECASE)
_USER_NAME = re.compile(rb"^(?:user|logname|username|.*(?:_user|_username|:user_name))$", re.IGNORECASE)
_FOLDER_NAME = re.compile(rb"^(?:home|.*_home_dir|userprofile)$", re.IGNORECASE)
_APPEARANCE_NAME = re.compile(rb"^(?:ls_colors|ps\d|prompt_command|less.*|termcap|bash_func_.*)$", re.IGNORECASE)

_PLAIN_WORDS = re.compile(rb"[A-Za-z_.\-/ ]*")
_NUMBERS = re.compile(rb"[\d.,:;+\- ]*|0x[0-9a-fA-F,x]*")
_VERSION = re.compile(rb"[<>=^~v]*\d+(?:\.\d+)+[\w.+\-]{0,16}")
_SYSTEM_PATH = re.compile(rb"/(?:usr|opt|bin|sbin|lib|lib64|etc|proc|sys|dev|run|var|tmp|snap|nix)(?:/.*)?", re.DOTALL)
_SEPARATORS = re.compile(rb"[\s:;,\"']+")
_PORT = re.compile(rb"[_:]\d{2,5}$")
_ADDRESS = re.compile(rb"(?:\d{1,3}\.){3}\d{1,3}")
_HOME_USER = re.compile(rb"/(?:home|Users)/([^/\0\s:;,\"']+)")

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
        certain: Look for it even where it is also a word of kernel and function names.
    """

    text: bytes
    certain: bool = False


def secrets_of_variable(name: bytes, value: bytes) -> Iterator[Secret]:
    """Secrets that an environment variable (or an option with a value) gives away."""
    if _APPEARANCE_NAME.match(name):
        return
    yield from secrets_of_text(value)
    if _USER_NAME.match(name) or _HOST_NAME.search(name):
        yield from secrets_of_identity(value)
    if _FOLDER_NAME.match(name) and value.strip(b"/").count(b"/") >= 1:
        yield Secret(value.rstrip(b"/"), certain=True)
        yield from secrets_of_identity(value.rstrip(b"/").rpartition(b"/")[2])
    sensitive = _SENSITIVE_NAME.search(name) is not None
    if (sensitive and _could_be_secret(value)) or _is_distinctive(value, 6):
        yield Secret(value, certain=sensitive)
    for part in _SEPARATORS.split(value):
        if part != value and _is_distinctive(part, SHORT):
            yield Secret(part, certain=sensitive)


def secrets_of_identity(value: bytes) -> Iterator[Secret]:
    """The name of a user or a host; of a full host name also its first label."""
    for name in {value, value.partition(b".")[0]}:
        if len(name) >= 3 and name.lower() not in _COMMON and not _NUMBERS.fullmatch(name):
            yield Secret(name)


def secrets_of_host(name: bytes) -> Iterator[Secret]:
    """The name of a host as profilers name their files after it; of ``10.0.0.7_6003`` also without the port."""
    without_port = _PORT.sub(b"", name)
    for secret in {*secrets_of_identity(name), *secrets_of_identity(without_port)}:
        yield Secret(secret.text, certain=_is_distinctive(secret.text, 6))
    if _ADDRESS.fullmatch(without_port):
        yield Secret(without_port, certain=True)


def secrets_of_text(text: bytes) -> Iterator[Secret]:
    """What any text gives away by its shape: the users whose home folders it names, tokens, addresses."""
    for user in _HOME_USER.findall(text):
        yield from secrets_of_identity(user)
    for pattern in (_TOKEN, _EMAIL, _HARDWARE_ADDRESS):
        for match in pattern.finditer(text):
            yield Secret(match.group(), certain=True)


def secrets_of_arguments(arguments: Iterable[bytes]) -> Iterator[Secret]:
    """Secrets of a command line: ``--name value`` and ``--name=value`` are judged like variables."""
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
    """``(name, value)`` of an environment as the operating system stores it: NUL-separated ``name=value``."""
    pairs = (item.partition(b"=") for item in block.split(b"\0"))
    return [(name, value) for name, equals, value in pairs if equals and name]


def _could_be_secret(value: bytes) -> bool:
    return len(value) >= 6 and value.lower() not in _COMMON and not (value.isdigit() and len(value) < SHORT)


def _is_distinctive(value: bytes, least: int) -> bool:
    if len(value) < least or value.lower() in _COMMON:
        return False
    if _NUMBERS.fullmatch(value) or _VERSION.fullmatch(value) or _SYSTEM_PATH.fullmatch(value):
        return False
    return len(value) >= 16 or not _PLAIN_WORDS.fullmatch(value)


# --- shapes that are private in any text -----------------------------------------------------------------------------

_TOKEN = re.compile(
    rb"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|hf_|sk-|xox[abprs]-|AKIA|glpat-|ya29\.|eyJ)[A-Za-z0-9_\-]{12,}[\w.\-]*"
)
_EMAIL = re.compile(rb"[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)*\.[A-Za-z]{2,}(?![\w])")
_HARDWARE_ADDRESS = re.compile(rb"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}[:\-]){5,7}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_URL_PASSWORD = re.compile(rb"(?<=://)[^/\s@:]+:[^/\s@]+(?=@)")

_ROOTS = (
    rb"home|Users|root|mnt|media|scratch|gpfs\w*|lustre\w*|global|nfs\w*|data|work|workspace|workspaces|tmp|var|srv"
    rb"|storage|projects?|private|Volumes|opt|usr|etc|lib|lib64|run|proc|cluster|export|nethome|users|u|fs\d*|autofs|net"
)
_PATH_END = rb"[^/\s\0\"'<>|:;,(){}]"
_PATH_START = rb"(?:(?<=://)|(?<![\w.\-/\]]))"
_FIRST_FOLDER = re.compile(rb"/([\w.\-]+)/[^/]")
_ANY_PATH = re.compile(rb"(?<![\w.\-/\]:])/%b+(?:/%b+)+/?" % (_PATH_END, _PATH_END))
_WINDOWS_PATH = re.compile(rb"(?<![\w])[A-Za-z]:\\(?:[^\\\s\0\"'<>|:;,]+\\)*[^\\\s\0\"'<>|:;,]*")
_PERSONAL_FOLDER = re.compile(
    rb"/(?:home|Users|nethome|users|u)/[^/]+/?|/root/?|[A-Za-z]:\\Users\\[^\\]+\\?", re.IGNORECASE
)


def _paths_below(roots: Iterable[bytes]) -> re.Pattern[bytes]:
    """Matches absolute paths below the usual folders of a system and below ``roots``."""
    known = b"|".join([_ROOTS, *map(re.escape, roots)])
    return re.compile(
        rb"%b/(?:%b)(?:/%b+)+/?|%b/root(?![\w/])|\[removed\](?:/%b+)+/?"
        % (_PATH_START, known, _PATH_END, _PATH_START, _PATH_END)
    )


def _shorten(match: re.Match[bytes]) -> bytes:
    """The base name of a path; nothing of a home folder, whose base name is the user's."""
    path = match.group()
    if _PERSONAL_FOLDER.fullmatch(path):
        return PATH
    return PATH + b"/" + re.split(rb"[/\\]", path.rstrip(b"/\\"))[-1]


def _without_patterns(text: bytes, paths: re.Pattern[bytes]) -> bytes:
    """``text`` without what is private by its shape; absolute paths that ``paths`` matches keep their base name."""
    if b"@" in text:
        text = _URL_PASSWORD.sub(REMOVED, text)
        text = _EMAIL.sub(REMOVED, text)
    text = _TOKEN.sub(REMOVED, text)
    if b":" in text or b"-" in text:
        text = _HARDWARE_ADDRESS.sub(REMOVED, text)
    if b"/" in text:
        text = paths.sub(_shorten, text)
    return _WINDOWS_PATH.sub(_shorten, text) if b":\\" in text else text


def base_name(name: bytes) -> bytes:
    """The last part of a program's name that may be a path."""
    return re.split(rb"[/\\]", name.rstrip(b"/\\"))[-1]


# --- the secrets of one trace ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Redactor:
    """Takes the secrets of one trace out of its texts."""

    secrets: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, found: Iterable[Secret], vocabulary: Iterable[bytes] = ()) -> Redactor:
        """A redactor of ``found``.

        Args:
            found: Secrets, repeated or not.
            vocabulary: Names of kernels and functions. A secret that is not certain and occurs in one of them as a
                word is not looked for: a user named ``max`` must not rename every kernel that computes a maximum.
        """
        everything = frozenset(found)
        certain = {secret.text for secret in everything if secret.certain}
        possible = {secret.text for secret in everything} - certain
        common = cls(tuple(possible)).words_of(vocabulary) if possible else set()
        return cls(tuple(sorted(certain | (possible - common), key=lambda text: (-len(text), text))))

    @cached_property
    def _paths(self) -> re.Pattern[bytes]:
        """Paths in names of ranges and kernels: only below folders of which this trace or any system has some, since
        ``/job:localhost/task:0`` and ``/v1/completions`` are no paths.
        """
        return _paths_below({match.group(1) for match in map(_FIRST_FOLDER.match, self.secrets) if match})

    @cached_property
    def _pattern(self) -> re.Pattern[bytes] | None:
        long = [re.escape(text) for text in self.secrets if len(text) >= SHORT]
        short = [re.escape(text) for text in self.secrets if len(text) < SHORT]
        branches = long + ([rb"(?<![A-Za-z0-9])(?:%b)(?![A-Za-z0-9])" % b"|".join(short)] if short else [])
        return re.compile(b"|".join(branches)) if branches else None

    def words_of(self, vocabulary: Iterable[bytes]) -> set[bytes]:
        """Those secrets that occur in ``vocabulary`` other than in a path, from which they are removed anyway."""
        text = b"\n".join(_without_patterns(name, self._paths) for name in vocabulary)
        return {secret for secret in self.secrets if Redactor((secret,)).holds(text)}

    def holds(self, text: bytes) -> bool:
        """Whether ``text`` holds a secret."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def clean(self, text: bytes) -> bytes:
        """``text`` without secrets and without what is private by its shape."""
        return self._without_secrets(_without_patterns(self._without_secrets(text), self._paths))

    def clean_message(self, text: bytes) -> bytes:
        """Like :meth:`clean`, with all absolute paths shortened: for what a profiler, not a program, has written."""
        return self._without_secrets(_ANY_PATH.sub(_shorten, self.clean(text)))

    def clean_module(self, name: bytes) -> bytes:
        """The base name of a library or program, cleaned; other names, such as ``[kernel.kallsyms]``, as they are."""
        is_path = name.startswith(b"/") or name[1:3] == b":\\"
        return self.clean(PATH + b"/" + base_name(name) if is_path else name)

    def _without_secrets(self, text: bytes) -> bytes:
        return self._pattern.sub(REMOVED, text) if self._pattern is not None else text


def cached(function: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """``function`` that remembers its latest answers: names repeat in traces."""
    return lru_cache(maxsize=1 << 16)(function)
