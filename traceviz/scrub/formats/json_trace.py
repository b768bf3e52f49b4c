"""Scrubbing JSON traces of the profilers of PyTorch, TensorFlow and JAX, as plain or gzip streams.

The file is read twice: to find its secrets, and to rewrite it. Numbers and signs are copied. In members other than
events, only texts known to be harmless are kept. In events, a text is removed if its key names a person, a machine, a
place or a command. Other texts are cleaned.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.json.grammar import BrokenError, CutError
from traceviz.parsers.shared.json.stream import GZIP_MAGIC, TextStream
from traceviz.parsers.shared.json.walk import BLOCK_BYTES, Segment, SegmentKind
from traceviz.scrub.formats import json_text
from traceviz.scrub.formats.documents import clean_document, encoded, secrets_of_document
from traceviz.scrub.formats.json_text import parsed, quoted_of, text_of
from traceviz.scrub.result import CLEANED, PROPERTIES, Outcome
from traceviz.scrub.secrets.file_names import secrets_of_file_name
from traceviz.scrub.secrets.properties import (
    is_private,
    is_private_text,
    is_source,
    keeps_setting,
    without_folder,
)
from traceviz.scrub.secrets.redactor import Redactor, cached
from traceviz.scrub.secrets.search import check_stream, leak
from traceviz.scrub.secrets.secrets import secrets_of_property, secrets_of_text, secrets_of_variable
from traceviz.scrub.secrets.shapes import REMOVED
from traceviz.scrub.secrets.values import Secret
from traceviz.untrusted.json_documents import value_of

_KEPT_HEADERS = frozenset(
    {"displayTimeUnit", "name", "backend", "backend_config", "pg_name", "pg_desc", "category", "pg_type"}
)
"""Members other than events, at any depth, whose text is kept. Others are kept if :func:`keeps_setting` allows it."""
_OWN_WORDS = tuple(
    b"traceEvents schemaVersion deviceProperties distributedInfo displayTimeUnit baseTimeNanoseconds metadata name "
    b"cat ph ts dur pid tid args id bp python_function cpu_op kernel user_annotation gpu_user_annotation "
    b"thread_name process_name process_labels labels stream device grid block bytes correlation context python "
    b"python3 Trace Spans Traces".split()
)
"""Words of the format. A user with such a name must not change them."""
_CALLS = rb"(?:kernel|gpu_memcpy|gpu_memset|cuda_runtime|cuda_driver|cpu_op|Kernel|Memcpy|Memset|Runtime|Operator)"
_TEXT = rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_NAMES = re.compile(
    rb'"cat"\s*:\s*"%b"\s*,\s*"name"\s*:\s*%b|"name"\s*:\s*%b\s*,\s*"cat"\s*:\s*"%b"' % (_CALLS, _TEXT, _TEXT, _CALLS)
)
"""Names of kernels, calls and operations, with their members in either order."""
_MOST_KNOWN = 1 << 20
"""Maximum number of remembered tokens. Beyond it, known tokens are processed again."""


def secrets_of_json_trace(source: Path) -> list[Secret]:
    """Return the secrets of a JSON trace, up to any damage."""
    return _survey(source, lenient=True, has_names=False)[0]


def scrub_json_trace(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the JSON trace ``source`` to ``target``, compressed as the source is.

    Arguments and result: see :class:`~traceviz.scrub.formats.registry.FileFormat`.

    Raises:
        DamagedTraceError: ``source`` is truncated, or is not JSON.
        OutputError: a secret would remain in the output.
    """
    secrets, vocabulary = _survey(source)
    redactor = Redactor.of([*secrets, *known], [*vocabulary, *_OWN_WORDS])
    writer = _Writer(redactor)
    with source.open("rb") as file:
        compressed = file.read(2) == GZIP_MAGIC
    with _explained(source), _new_text(target, compressed=compressed) as output:
        for segment in json_text.segments(source):
            output.write(writer.segment(segment))
    # The written file is searched again: its raw text, and its decoded texts.
    size = check_stream(TextStream(target).blocks(BLOCK_BYTES), redactor)
    seen: set[bytes] = set()
    for segment in json_text.segments(target) if redactor.secrets else ():
        new = {token for token in json_text.tokens(segment.text) if b"\\" in token} - seen
        seen = (seen | new) if len(seen) < _MOST_KNOWN else new
        for token in map(parsed, new):
            if any(redactor.holds(_decoded(text)) for text in (token.key, token.value) if text is not None):
                raise leak("in a text")
    return +writer.removed, len(redactor.secrets), size


@contextmanager
def _new_text(target: Path, *, compressed: bool) -> Iterator[IO[bytes]]:
    """Open the file to write. A gzip header gets no name and no time."""
    with target.open("wb") as file:
        if compressed:
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                yield cast("IO[bytes]", packed)
        else:
            yield file


@contextmanager
def _explained(source: Path) -> Iterator[None]:
    try:
        yield
    except (CutError, BrokenError):
        raise DamagedTraceError(
            f"{source} is damaged: what cannot be read cannot be checked.", "A value in it is no JSON."
        ) from None


# --- secrets of this file --------------------------------------------------------------------------------------------


def _survey(source: Path, *, lenient: bool = False, has_names: bool = True) -> tuple[list[Secret], set[bytes]]:
    """Return the secrets, and names of kernels and calls if requested.

    Args:
        source: The file.
        lenient: If true, return the results before any damage; else raise.
        has_names: If true, collect names.
    """
    secrets = set(secrets_of_file_name(source))
    names: set[bytes] = set()
    seen: set[bytes] = set()
    try:
        with _explained(source):
            for segment in json_text.segments(source):
                if segment.kind is SegmentKind.HEADER:
                    secrets.update(secrets_of_document(_value(segment.text), segment.key))
                elif segment.kind is SegmentKind.EVENTS:
                    text = segment.text
                    if has_names:
                        names.update(first or second for first, second in _NAMES.findall(text))
                    seen = seen if len(seen) < _MOST_KNOWN else set()
                    new = set(json_text.tokens(text)) - seen
                    seen |= new
                    for token in map(parsed, new):
                        value = _decoded(token.value) if token.value is not None else b""
                        key = _decoded(token.key) if token.key is not None else b""
                        word = key.decode("utf-8", "replace")
                        secrets.update(secrets_of_property(word, value))
                        secrets.update(secrets_of_text(key))
                        if value and is_private_text(word):
                            secrets.update(secrets_of_variable(key, value))
                    if any(map(_opens_private, new)):
                        for begin, end, quoted in json_text.containers(text, _is_private):
                            name = _decoded(quoted).decode("utf-8", "replace")
                            secrets.update(secrets_of_document(_value(text[begin:end]), name))
    except DamagedTraceError:
        if not lenient:
            raise
    return list(secrets), names


def _opens_private(token: bytes) -> bool:
    if token[-1:] not in (b"{", b"["):
        return False
    taken = parsed(token)
    return bool(taken.opens) and taken.key is not None and _is_private(taken.key)


def _is_private(key: bytes) -> bool:
    return is_private(_decoded(key).decode("utf-8", "replace"))


def _decoded(quoted: bytes) -> bytes:
    try:
        return text_of(quoted)
    except ValueError:
        return quoted


def _value(text: bytes) -> Any:
    """Parse a value of the file; return its text if it is not standard JSON."""
    try:
        return value_of(text.decode("utf-8", "replace"))
    except ValueError:
        return text.decode("utf-8", "replace")


# --- rewriting the file ----------------------------------------------------------------------------------------------


class _Writer:
    """Rewrites segments, and counts the removed parts."""

    def __init__(self, redactor: Redactor) -> None:
        self.removed: Counter[str] = Counter()
        self._redactor = redactor
        self._clean = cached(lambda text: redactor.clean(without_folder(text)))
        self._known: dict[bytes, tuple[bytes, str]] = {}

    def segment(self, segment: Segment) -> bytes:
        """Return the output for ``segment``."""
        text = segment.text
        if segment.kind is SegmentKind.HEADER:
            value = _value(text)
            if not isinstance(value, str | dict | list):
                return text
            return encoded(
                clean_document(
                    value,
                    self._redactor,
                    self.removed,
                    lambda key, text: key in _KEPT_HEADERS or keeps_setting(key, text),
                    segment.key,
                )
            )
        if segment.kind is SegmentKind.EVENTS:
            distinct = set(json_text.tokens(text))
            if any(map(_opens_private, distinct)):
                parts, at = [], 0
                for begin, end, _ in json_text.containers(text, _is_private):
                    empty = not text[begin + 1 : end - 1].strip()
                    self.removed[PROPERTIES] += not empty
                    parts += [text[at:begin], text[begin:end] if empty else b'"%b"' % REMOVED]
                    at = end
                text = b"".join([*parts, text[at:]])
            changes = any(self._result(token)[0] != token for token in distinct)
        else:
            changes = text.startswith(b'"')
        return json_text.replaced(text, self._token) if changes else text

    def _token(self, token: bytes) -> bytes:
        new, noun = self._result(token)
        if noun:
            self.removed[noun] += 1
        return new

    def _result(self, token: bytes) -> tuple[bytes, str]:
        """Return the output for ``token``, and the kind of data that this removes."""
        known = self._known.get(token)
        if known is not None:
            return known
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        key, between, value, opens = parsed(token)
        noun, word, new = "", "", b""
        if key is not None:
            word = _decoded(key).decode("utf-8", "replace")
            key, changed = _changed(key, self._redactor.clean)
            noun = CLEANED if changed else ""
            new = b'"%b"' % key + between
        if value is not None:
            if is_private_text(word) and value:
                noun = PROPERTIES if value != REMOVED else noun
                value = REMOVED
            else:
                value, changed = _changed(value, self._cleaner(word))
                noun = CLEANED if changed else noun
        self._known[token] = new + (b'"%b"' % value if value is not None else opens), noun
        return self._known[token]

    def _cleaner(self, key: str) -> Callable[[bytes], bytes]:
        """Return the cleaning function for texts under ``key``."""
        if is_source(key):
            return self._redactor.clean_source
        return lambda text: text if self._redactor.is_version(key, text) else self._clean(text)


def _changed(quoted: bytes, clean: Callable[[bytes], bytes]) -> tuple[bytes, bool]:
    """Clean a text between its quotes; return it and whether it changed. Undecodable text is removed."""
    try:
        text = text_of(quoted)
    except ValueError:
        return REMOVED, True
    new = clean(text)
    return (quoted, False) if new == text else (quoted_of(new), True)
