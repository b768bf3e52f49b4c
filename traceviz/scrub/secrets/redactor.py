"""Removal of a trace's secrets from its texts.

One pattern with shared prefixes searches all secrets, so that the time does not grow with their number. A text is
searched as written and decoded (:mod:`traceviz.scrub.secrets.spellings`).
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from traceviz.scrub.secrets.addresses import is_version
from traceviz.scrub.secrets.properties import without_folders
from traceviz.scrub.secrets.secrets import base_name
from traceviz.scrub.secrets.shapes import PATH, REMOVED, Hit, any_paths, first_folder, hits, path_pattern
from traceviz.scrub.secrets.spellings import any_of, readings, spellings
from traceviz.scrub.secrets.values import SHORT, Secret, is_word

SQL_WORDS = b"create table integer real text blob numeric null primary key index sqlite format"
"""Words in every database. A user with such a name must not change them."""
TEXT, BINARY, PACKED = 1, 5, SHORT
"""Kinds of searched bytes, as the length of the shortest secret that does not occur in them by chance."""
_MOST_ROUNDS = 4
"""Maximum number of times that a text is cleaned. After a removal, the text before it has another neighbour."""
_LONGEST_PART = 24
"""Maximum letters and digits around a secret that are removed with it, as the rest of a word would be meaningless."""
_LETTERS_BEFORE = re.compile(rb"(?<![A-Za-z0-9])[A-Za-z0-9]+\Z")
_LETTERS_AFTER = re.compile(rb"[A-Za-z0-9]{1,24}(?![A-Za-z0-9])")


@dataclass(frozen=True)
class Redactor:
    """Removes the secrets of one trace from its texts."""

    secrets: tuple[bytes, ...] = ()
    folded: frozenset[bytes] = frozenset()

    @classmethod
    def of(cls, secrets: Iterable[Secret], vocabulary: Iterable[bytes] = ()) -> Redactor:
        """Return a redactor of ``secrets``.

        Args:
            secrets: Secrets, repeated or not.
            vocabulary: Names of kernels and functions. A secret that is not certain and occurs in one of them as a word
                is not searched. A user named ``max`` must not rename every kernel that computes a maximum.
        """
        everything = frozenset(secret for secret in secrets if not secret.text.startswith((REMOVED, PATH)))
        certain = {secret.text for secret in everything if secret.certain}
        folded = frozenset(secret.text for secret in everything if secret.folds)
        possible = {secret.text for secret in everything} - certain
        common = cls(tuple(possible), folded).words_of(vocabulary) if possible else set()
        return cls(tuple(sorted(certain | (possible - common), key=lambda text: (-len(text), text))), folded)

    @cached_property
    def spelled(self) -> tuple[bytes, ...]:
        """Spellings of the secrets in raw bytes: encoded, and with the usual upper and lower case if they fold."""
        cases = (bytes.lower, bytes.upper, bytes.capitalize, bytes.title)
        more = {spell(text) for text in self.folded.intersection(self.secrets) for spell in cases}
        encoded = set(chain.from_iterable(map(spellings, {*self.secrets, *more})))
        return (*self.secrets, *sorted(encoded.difference(self.secrets)))

    @cached_property
    def reach(self) -> int:
        """Bytes of the longest text that :meth:`position_in` finds, with its neighbours."""
        return max(map(len, self.spelled), default=0) + 2

    def position_in(self, content: bytes | mmap.mmap, kind: int = TEXT) -> int:
        """Return the position of the first secret in raw bytes; -1 if they hold none.

        Args:
            content: The bytes.
            kind: ``TEXT``; ``BINARY``, where four letters occur by chance among numbers; or ``PACKED``, where whole
                words do.
        """
        if kind not in self._raw:
            is_packed = kind == PACKED
            self._raw[kind] = _pattern(
                text for text in self.spelled if len(text) >= kind and not (is_packed and is_word(text))
            )
        pattern = self._raw[kind]
        match = pattern.search(content) if pattern is not None else None
        return -1 if match is None else match.start()

    @cached_property
    def _raw(self) -> dict[int, re.Pattern[bytes] | None]:
        """Patterns of the secrets in raw bytes, by kind."""
        return {}

    @cached_property
    def _paths(self) -> re.Pattern[bytes]:
        """Pattern of absolute paths below the known folders of this trace."""
        return path_pattern({folder for folder in map(first_folder, self.secrets) if folder is not None})

    @cached_property
    def _pattern(self) -> re.Pattern[bytes] | None:
        return _pattern(self.secrets, self.folded)

    def words_of(self, vocabulary: Iterable[bytes]) -> set[bytes]:
        """Return the secrets that occur in ``vocabulary``, except in paths, from which they are removed anyway."""
        text = b"\n".join(_replaced(name, hits(name, self._paths)) for name in vocabulary)
        found: set[bytes] = set()
        spelled = {text.lower() if text in self.folded else text: text for text in self.secrets}
        left = set(self.secrets)
        while (pattern := _pattern(left, self.folded)) is not None:
            new = {spelled.get(match, spelled.get(match.lower(), b"")) for match in set(pattern.findall(text))} & left
            if not new:
                break
            found |= new
            left -= new  # it may have hidden another that starts with it
        return found

    def holds(self, text: bytes) -> bool:
        """Return whether ``text`` holds a secret."""
        pattern = self._pattern
        return pattern is not None and any(pattern.search(reading.text) is not None for reading in readings(text))

    def clean(self, text: bytes) -> bytes:
        """Return ``text`` without secrets and without parts that are private by their shape."""
        return self._cleaned(text, lambda text: hits(text, self._paths))

    def clean_message(self, text: bytes) -> bytes:
        """Like :meth:`clean`, but shorten all absolute paths. This is for texts of a profiler, not of a program."""
        return self._cleaned(text, lambda text: chain(hits(text, self._paths), any_paths(text)))

    def clean_source(self, text: bytes) -> bytes:
        """Clean places in source code, ``users/ada/train.py:12``, and remove their folders, which may be relative."""
        return self.clean_message(without_folders(self.clean_message(text)))

    def clean_property(self, key: str, text: bytes) -> bytes:
        """Clean the text of a property as a message. A version is kept, although it may look like an address."""
        return text if self.is_version(key, text) else self.clean_message(text)

    def is_version(self, key: str, text: bytes) -> bool:
        """Return whether the text of a property is a version without a secret."""
        return is_version(key, text.decode("utf-8", "replace")) and not self.holds(text)

    def clean_module(self, name: bytes) -> bytes:
        """Return the cleaned base name of a library or program; clean others, such as ``[kernel.kallsyms]``."""
        is_path = name.startswith(b"/") or name[1:3] == b":\\"
        return self.clean(PATH + b"/" + base_name(name) if is_path else name)

    def _cleaned(self, text: bytes, shapes: Callable[[bytes], Iterable[Hit]]) -> bytes:
        for _ in range(_MOST_ROUNDS):
            new = _replaced(text, chain(shapes(text), self._known(text)))
            if new == text:
                break
            text = new
        return text

    def _known(self, text: bytes) -> Iterator[Hit]:
        """Yield the secrets in a text, extended to whole words."""
        if self._pattern is None:
            return
        for reading in readings(text):
            at = 0
            while match := self._pattern.search(reading.text, at):
                before = _LETTERS_BEFORE.search(reading.text, max(at, match.start() - _LONGEST_PART), match.start())
                after = _LETTERS_AFTER.match(reading.text, match.end())
                begin = before.start() if before and match.group()[:1].isalnum() else match.start()
                at = after.end() if after and match.group()[-1:].isalnum() else match.end()
                yield Hit(*reading.place(begin, at))


def cached(function: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Add a cache of recent results to ``function``, as names repeat in traces."""
    return lru_cache(maxsize=1 << 16)(function)


def _replaced(text: bytes, found: Iterable[Hit]) -> bytes:
    """Return ``text`` with its private parts replaced. If parts overlap, the enclosing one decides."""
    merged: list[Hit] = []
    for hit in sorted(found, key=lambda hit: (hit.begin, -hit.end)):
        last = merged[-1] if merged else None
        if last is None or hit.begin >= last.end:
            merged.append(hit)
        elif hit.end > last.end:
            merged[-1] = Hit(last.begin, hit.end)
    if not merged:
        return text
    parts, at = [], 0
    for hit in merged:
        parts += [text[at : hit.begin], hit.instead]
        at = hit.end
    return b"".join([*parts, text[at:]])


# --- one pattern of many texts ---------------------------------------------------------------------------------------


def _pattern(texts: Iterable[bytes], folded: frozenset[bytes] = frozenset()) -> re.Pattern[bytes] | None:
    """Return a pattern of the longest of ``texts`` at a position: ``folded`` ones in any case, words only whole."""
    groups: dict[tuple[bytes, bytes, bool], set[bytes]] = {}
    for text in texts:
        before, after = b"", b""
        if is_word(text):
            before, after = rb"(?<![A-Za-z0-9])", rb"(?![A-Za-z0-9])"
        elif text.replace(b".", b"").isdigit():  # 10.0.0.1 is not a part of 110.0.0.12
            before, after = rb"(?<![0-9])", rb"(?![0-9]|\.[0-9])"
        folds = text in folded
        groups.setdefault((before, after, folds), set()).add(text.lower() if folds else text)
    branches = []
    for (before, after, folds), members in groups.items():
        inner = any_of(members)
        branches.append(before + (b"(?i:%b)" % inner if folds else b"(?:%b)" % inner) + after)
    return re.compile(b"|".join(branches)) if branches else None
