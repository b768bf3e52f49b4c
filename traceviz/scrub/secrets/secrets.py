"""Which values of a trace identify a person or a machine, and how they are removed from the texts that stay.

There are two kinds of them. *Patterns* recognise private texts by their shape: home folders, e-mail and hardware
addresses, access tokens, passwords in URLs. *Secrets* are values that the trace itself gives away (the value of an
environment variable, the name of the user). They must occur nowhere in the output, not even inside an NVTX text.

Not every value can be looked for: with ``MODE=training`` in the environment, every range named "training" would lose
its name. A value counts as a secret if its variable is named like one (``API_KEY``), or if it is *distinctive*: six
characters or more, and neither a plain word, a number, a version nor the path of an installed program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from traceviz.plain_arguments import CREDENTIAL_SHAPE
from traceviz.scrub.secrets.addresses import addresses_in, is_version, without_addresses

REMOVED = b"[removed]"
PATH = b"[path]"

SHORT = 8
"""Secrets below this length are recognised as whole words only: ``ann`` must not be found in ``channel``."""

_SENSITIVE_NAME = re.compile(
    rb"key|token|secret|passw|passphrase|_pwd$|cred|auth|cookie|private|cert|dsn$|conn_?str|webhook|account|e?mail"
    rb"|session|ssh_(?:client|connection)",
    re.IGNORECASE,
)
_HOST_NAME = re.compile(rb"host(?:name)?$|node(?:name|list)?$|machine$|pod$|addr$|ipaddr|display_name$", re.IGNORECASE)
_USER_NAME = re.compile(rb"^(?:user|logname|username|.*(?:_user|_username|:user_name))$", re.IGNORECASE)
_FOLDER_NAME = re.compile(rb"^(?:home|.*_home_dir|userprofile)$", re.IGNORECASE)
_APPEARANCE_NAME = re.compile(rb"^(?:ls_colors|ps\d|prompt_command|less.*|termcap|bash_func_.*)$", re.IGNORECASE)

_PLAIN_WORDS = re.compile(rb"[A-Za-z_.\-/ ]*")
_NUMBERS = re.compile(rb"[\d.,:;+\- ]*|0x[0-9a-fA-F,x]*")
_VERSION = re.compile(rb"[<>=^~v]*\d+(?:\.\d+)+[\w.+\-]{0,16}")
_SYSTEM_PATH = re.compile(rb"/(?:usr|opt|bin|sbin|lib|lib64|etc|proc|sys|dev|run|var|tmp|snap|nix)(?:/.*)?", re.DOTALL)
_PUNCTUATION = b",;:"
"""Ends of a word in a sentence, which leave it a plain word."""
_SEPARATORS = re.compile(rb"[\s:;,\"']+")
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
        folds: Look for it in upper and lower case: the name of a host or a user.
    """

    text: bytes
    certain: bool = False
    folds: bool = False


def secrets_of_variable(name: bytes, value: bytes) -> Iterator[Secret]:
    """Secrets that an environment variable (or an option with a value) gives away."""
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
    is_word = len(value) < 6 or value.lower() in _COMMON or (value.isdigit() and len(value) < SHORT)
    if (sensitive and not is_word) or is_distinctive(value, 6):
        yield Secret(value, certain=sensitive)
    for part in _SEPARATORS.split(value):
        if part != value and is_distinctive(part, SHORT):
            yield Secret(part, certain=sensitive)


def secrets_of_identity(value: bytes) -> Iterator[Secret]:
    """The name of a user or a host; of a full host name also its first label."""
    for name in {value, value.partition(b".")[0]}:
        if len(name) >= 3 and name.lower() not in _COMMON and not _NUMBERS.fullmatch(name):
            yield Secret(name, folds=True)


def secrets_of_property(key: str, text: bytes) -> Iterator[Secret]:
    """Secrets in the text of a property by their shape; versions have none."""
    if not is_version(key, text.decode("utf-8", "replace")):
        yield from secrets_of_text(text)


def secrets_of_text(text: bytes) -> Iterator[Secret]:
    """Secrets in any text by their shape: users whose home folders it names, tokens, addresses."""
    for user in _HOME_USER.findall(text):
        yield from secrets_of_identity(user)
    for pattern in (_TOKEN, _EMAIL, _HARDWARE_ADDRESS):
        for match in pattern.finditer(text):
            yield Secret(match.group(), certain=True)
    stated = (_value(match) for match in _STATED.finditer(text) if _is_stated(match))
    for value in chain(stated, _URL_PASSWORD.findall(text)):
        if is_distinctive(value, 6):
            yield Secret(value, certain=True)
    yield from (Secret(address, certain=True) for address in addresses_in(text))


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


def is_distinctive(value: bytes, least: int) -> bool:
    """Whether a value has at least ``least`` characters, and is no word, number, version or program."""
    if len(value) < least or value.lower() in _COMMON:
        return False
    if _NUMBERS.fullmatch(value) or _VERSION.fullmatch(value) or _SYSTEM_PATH.fullmatch(value):
        return False
    return len(value) >= 16 or not _PLAIN_WORDS.fullmatch(value)


# --- shapes that are private in any text -----------------------------------------------------------------------------

_TOKEN = re.compile(CREDENTIAL_SHAPE.encode())
_STATED = re.compile(
    rb"(?:(?P<sure>pass(?:word|wd|phrase))|(?P<weak>secret|token)|(?:api|access)[_\-]?key)[\"']?(?:=|:(?!:) ?)"
    rb"[\"']?(?P<secret>[^\s\"'&;,<>()\[\]{}|=]{6,})"
    rb"|bearer (?P<bearer>[\w\-.~+/]{6,})",
    re.IGNORECASE,
)
"""``password=...``, ``api_key: ...``, ``Bearer ...``: the text after it is a secret, unless it is a word or a number.
After ``password`` any text is a secret; after ``token``, which models have many of, only one with some digits."""
_SOME_DIGITS = re.compile(rb"(?:[^\d]*\d){3}")
_EMAIL = re.compile(
    rb"(?<![\w.+\-])(?<!\[removed\])(?:[\w.+\-]|\[removed\])+@[\w\-]+(?:\.[\w\-]+)*\.[A-Za-z]{2,}(?![\w])"
)
_HARDWARE_ADDRESS = re.compile(rb"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}[:\-]){5,7}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")

_URL_PASSWORD = re.compile(rb"(?<=://)[^/\s@:]*:(?P<secret>[^/\s@]+)(?=@)")

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


def _shorten(match: re.Match[bytes]) -> bytes:
    """The base name of a path; nothing of a home folder, whose base name is the user's."""
    path = match.group()
    if _PERSONAL_FOLDER.fullmatch(path):
        return PATH
    return PATH + b"/" + re.split(rb"[/\\]", path.rstrip(b"/\\"))[-1]


def _without_stated(match: re.Match[bytes]) -> bytes:
    """``password=...`` without the password."""
    whole = match.group()
    return whole.removesuffix(_value(match)) + REMOVED if match["sure"] or _is_stated(match) else whole


def _value(match: re.Match[bytes]) -> bytes:
    return match["secret"] or match["bearer"]


def _is_stated(match: re.Match[bytes]) -> bool:
    """Whether a text that is stated to be a secret looks like one."""
    value = _value(match)
    return is_distinctive(value, 6) and (not match["weak"] or _SOME_DIGITS.match(value) is not None)


def _without_patterns(text: bytes, paths: re.Pattern[bytes]) -> bytes:
    """``text`` without parts that are private by their shape; absolute paths that ``paths`` matches keep base names."""
    if b"@" in text:
        text = _URL_PASSWORD.sub(REMOVED, text)
        text = _EMAIL.sub(REMOVED, text)
    text = _TOKEN.sub(REMOVED, text)
    if b"=" in text or b":" in text or b" " in text:
        text = _STATED.sub(_without_stated, text)
    if b":" in text or b"-" in text:
        text = _HARDWARE_ADDRESS.sub(REMOVED, text)
    text = without_addresses(text, REMOVED)
    if b"/" in text:
        text = paths.sub(_shorten, text)
    return _WINDOWS_PATH.sub(_shorten, text) if b":\\" in text else text


SQL_WORDS = b"create table integer real text blob numeric null primary key index sqlite format"
"""Words of every database: a user of such a name must not change them."""


def base_name(name: bytes) -> bytes:
    """The last part of a program's name that may be a path."""
    return re.split(rb"[/\\]", name.rstrip(b"/\\"))[-1]


# --- the secrets of one trace ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Redactor:
    """Takes the secrets of one trace out of its texts."""

    secrets: tuple[bytes, ...] = ()
    folded: frozenset[bytes] = frozenset()

    @classmethod
    def of(cls, secrets: Iterable[Secret], vocabulary: Iterable[bytes] = ()) -> Redactor:
        """A redactor of ``secrets``.

        Args:
            secrets: Secrets, repeated or not.
            vocabulary: Names of kernels and functions. A secret that is not certain and occurs in one of them as a
                word is not looked for: a user named ``max`` must not rename every kernel that computes a maximum.
        """
        everything = frozenset(secret for secret in secrets if not secret.text.startswith((REMOVED, PATH)))
        certain = {secret.text for secret in everything if secret.certain}
        folded = frozenset(secret.text for secret in everything if secret.folds)
        possible = {secret.text for secret in everything} - certain
        common = cls(tuple(possible), folded).words_of(vocabulary) if possible else set()
        return cls(tuple(sorted(certain | (possible - common), key=lambda text: (-len(text), text))), folded)

    @cached_property
    def spelled(self) -> tuple[bytes, ...]:
        """The secrets as they are searched for in raw bytes: those that fold in their usual spellings."""
        spellings = (bytes.lower, bytes.upper, bytes.capitalize, bytes.title)
        more = {spell(text) for text in self.folded.intersection(self.secrets) for spell in spellings}
        return (*self.secrets, *sorted(more.difference(self.secrets)))

    @cached_property
    def _paths(self) -> re.Pattern[bytes]:
        """Absolute paths in names of ranges and kernels: only below folders of which this trace or any system has
        some, since ``/job:localhost/task:0`` and ``/v1/completions`` are no paths.
        """
        of_trace = {match.group(1) for match in map(_FIRST_FOLDER.match, self.secrets) if match}
        roots = b"|".join([_ROOTS, *map(re.escape, of_trace)])
        return re.compile(
            rb"%b/(?:%b)(?:/%b+)+/?|%b/root(?![\w/])|\[removed\](?:/%b+)+/?"
            % (_PATH_START, roots, _PATH_END, _PATH_START, _PATH_END)
        )

    @cached_property
    def _pattern(self) -> re.Pattern[bytes] | None:
        long = [self._escaped(text) for text in self.secrets if len(text) >= SHORT]
        short = [self._escaped(text) for text in self.secrets if len(text) < SHORT]
        branches = long + ([rb"(?<![A-Za-z0-9])(?:%b)(?![A-Za-z0-9])" % b"|".join(short)] if short else [])
        return re.compile(b"|".join(branches)) if branches else None

    def _escaped(self, text: bytes) -> bytes:
        return b"(?i:%b)" % re.escape(text) if text in self.folded else re.escape(text)

    def words_of(self, vocabulary: Iterable[bytes]) -> set[bytes]:
        """Those secrets that occur in ``vocabulary`` other than in a path, from which they are removed anyway."""
        text = b"\n".join(_without_patterns(name, self._paths) for name in vocabulary)
        return {secret for secret in self.secrets if Redactor((secret,), self.folded).holds(text)}

    def holds(self, text: bytes) -> bool:
        """Whether ``text`` holds a secret."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def clean(self, text: bytes) -> bytes:
        """``text`` without secrets and without parts that are private by their shape."""
        return self._without_secrets(_without_patterns(self._without_secrets(text), self._paths))

    def clean_message(self, text: bytes) -> bytes:
        """Like :meth:`clean`, with all absolute paths shortened: for texts of a profiler, not of a program."""
        return self._without_secrets(_ANY_PATH.sub(_shorten, self.clean(text)))

    def clean_property(self, key: str, text: bytes) -> bytes:
        """The text of a property, cleaned as a message; a version stays, though it may look like an address."""
        return text if self.is_version(key, text) else self.clean_message(text)

    def is_version(self, key: str, text: bytes) -> bool:
        """Whether the text of a property is a version, and no secret is in it."""
        return is_version(key, text.decode("utf-8", "replace")) and not self.holds(text)

    def clean_module(self, name: bytes) -> bytes:
        """The base name of a library or program, cleaned; other names, such as ``[kernel.kallsyms]``, stay."""
        is_path = name.startswith(b"/") or name[1:3] == b":\\"
        return self.clean(PATH + b"/" + base_name(name) if is_path else name)

    def _without_secrets(self, text: bytes) -> bytes:
        return self._pattern.sub(REMOVED, text) if self._pattern is not None else text


def cached(function: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """``function`` with a cache of its latest results: names repeat in traces."""
    return lru_cache(maxsize=1 << 16)(function)
