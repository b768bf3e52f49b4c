"""Scrubbing an XPlane capture: the file is rewritten field by field, and then its bytes are searched.

Fields other than texts are copied byte for byte. Texts are cleaned: names of planes, lines, events and stats, and texts
of stats. A plane stores most texts of stats once, among the names of its stats. Bytes in stats are embedded messages,
such as compiled programs with the paths of their sources. Only listed messages are kept, and only their numbers. An
unknown field is kept if it is a number.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from traceviz.core.errors import DamagedTraceError, UnknownFormatError
from traceviz.parsers.shared.json.stream import GZIP_MAGIC
from traceviz.parsers.xplane.decode.raw import Kind, Plane, Space
from traceviz.parsers.xplane.decode.scan import read_space
from traceviz.parsers.xplane.decode.wire import BYTES, VARINT, BrokenMessageError, read_fields
from traceviz.scrub.result import CLEANED, HOSTS, MESSAGES, PROPERTIES, Outcome
from traceviz.scrub.secrets.addresses import is_version
from traceviz.scrub.secrets.file_names import secrets_of_file_name, secrets_of_host
from traceviz.scrub.secrets.properties import is_private, is_source, keeps_setting, without_folder
from traceviz.scrub.secrets.redactor import Redactor, cached
from traceviz.scrub.secrets.search import PACKED, leak
from traceviz.scrub.secrets.secrets import secrets_of_text, secrets_of_variable
from traceviz.scrub.secrets.shapes import REMOVED
from traceviz.scrub.secrets.values import Secret

_KEPT_MESSAGES = frozenset({"profile_options", "core_details"})
"""Stats with a message whose numbers are kept."""
_OPERATION = re.compile(r"[A-Z][A-Za-z0-9]*|(?:\w+::)+\w+")
"""Names of operations and functions on the host: ``MatMul``, ``ThreadpoolListener::Run``."""
_AGAIN = "Copy the file again, or convert what is left, and scrub that: traceviz convert TRACE -o DIR."

Rule = Callable[[bytes], bytes | None]
"""Returns the new content of a field; ``None`` to remove the field."""


def secrets_of_xplane(source: Path) -> list[Secret]:
    """Return the secrets of an XPlane file, as far as it can be read."""
    return list(_secrets_of(read_space(_content(source)[0]), source))


def scrub_xplane(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the XPlane file ``source`` to ``target``, compressed as the source is.

    Arguments and result: see :class:`~traceviz.scrub.formats.registry.FileFormat`.

    Raises:
        UnknownFormatError: ``source`` is not an XPlane file.
        DamagedTraceError: it violates its format.
        OutputError: a secret would remain in the output.
    """
    data, compressed = _content(source)
    space = read_space(data)
    if not any(plane.name for plane in space.planes):
        raise UnknownFormatError(
            f"{source} is no trace that scrub can write again.",
            "It holds no plane with a name.",
            "Scrub an XPlane file, what nsys export --type sqlite wrote, or a folder of traceviz convert.",
        )
    if space.damage:
        damage = space.damage[0]
        what = f"{source} is damaged: what cannot be read cannot be checked."
        raise DamagedTraceError(what, f"{damage.where}: {damage.what}", _AGAIN)
    # Names of kernels and operations: all on devices, but on the host no annotations of the program.
    vocabulary = (
        name.encode()
        for plane in space.planes
        for name in plane.names
        if plane.name.startswith("/device:") or _OPERATION.fullmatch(name)
    )
    redactor = Redactor.of([*_secrets_of(space, source), *known], vocabulary)
    writer = _Writer(redactor)
    try:
        clean = writer.space(data, space)
    except BrokenMessageError as error:
        raise DamagedTraceError(f"{source} is damaged.", "A name in it is no message.", _AGAIN) from error
    # The content is searched: its raw bytes, and its texts. Short secrets are searched as whole words, in the texts
    # only: in the raw bytes, the length before a text may look like a letter.
    position = redactor.position_in(clean, PACKED)
    if position >= 0:
        raise leak(f"at byte {position}")
    written = read_space(clean)
    texts = [*written.errors, *written.warnings, *written.hostnames]
    for plane in written.planes:
        texts += [plane.name, *(line.name for line in plane.lines), *plane.names, *plane.display_names, *plane.texts]
    if any(redactor.holds(text.encode()) for text in texts):
        raise leak("in a text")
    target.write_bytes(gzip.compress(clean, mtime=0) if compressed else clean)
    return +writer.removed, len(redactor.secrets), len(clean)


def _content(source: Path) -> tuple[bytes, bool]:
    try:
        raw = source.read_bytes()
        return (gzip.decompress(raw), True) if raw.startswith(GZIP_MAGIC) else (raw, False)
    except (OSError, EOFError) as error:
        raise DamagedTraceError(f"{source} cannot be read.", str(error)) from error


# --- secrets of this file --------------------------------------------------------------------------------------------


def _secrets_of(space: Space, path: Path) -> Iterator[Secret]:
    """Yield host names, values of private properties, and secrets in texts by their shape."""
    for host in space.hostnames:
        yield from secrets_of_host(host.encode())
    yield from secrets_of_file_name(path)
    for text in (*space.errors, *space.warnings):
        yield from secrets_of_text(text.encode())
    for plane in space.planes:
        lines = (line.name for line in plane.lines)
        for text in {plane.name, *lines, *plane.names, *plane.display_names, *plane.texts} - _versions(plane):
            yield from secrets_of_text(text.encode())
        for key, value in _texts_by_key(plane):
            if is_private(key):
                yield from secrets_of_variable(key.encode(), value.encode())


def _texts_by_key(plane: Plane) -> Iterator[tuple[str, str]]:
    """Yield keys and texts: of events with a key that decides on their treatment, of event names, and of the plane."""
    for key in (key for key in plane.keys if is_private(key) or is_source(key)):
        stats = plane.stats_of(key)
        values = set(stats.value[stats.kind == Kind.TEXT].tolist())
        yield from ((key, plane.texts[value]) for value in values)
    for stats_of_name in (*plane.name_stats.values(), plane.properties):
        yield from ((key, value) for key, value in stats_of_name.items() if isinstance(value, str))


def _versions(plane: Plane) -> frozenset[str]:
    """Return properties of the plane that are versions, which may look like addresses."""
    properties = plane.properties.items()
    return frozenset(value for key, value in properties if isinstance(value, str) and is_version(key, value))


# --- rewriting the file ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Writer:
    """Rewrites messages, and counts the removed parts."""

    redactor: Redactor
    removed: Counter[str] = field(default_factory=Counter)

    def space(self, data: bytes, space: Space) -> bytes:
        """Rewrite the file. Planes are read twice: as columns, for the meaning of their numbers, and as bytes."""
        planes = iter(space.planes)

        def plane(content: bytes) -> bytes:
            return _PlaneWriter(self.redactor, self.removed, next(planes)).plane(content)

        return _rewritten(data, {1: plane, 2: self.message, 3: self.message, 4: self.host})

    def message(self, content: bytes) -> bytes:
        """Clean a text of the profiler."""
        return _counted(content, self.redactor.clean_message(content), self.removed)

    def host(self, content: bytes) -> None:
        """Remove the name of a host."""
        self.removed[HOSTS] += bool(content)


@dataclass
class _PlaneWriter:
    """Rewrites the messages of one plane."""

    redactor: Redactor
    removed: Counter[str]
    read: Plane

    def __post_init__(self) -> None:
        redactor = self.redactor
        self._clean_name = cached(lambda name: redactor.clean(without_folder(name)))
        self._clean_text = cached(redactor.clean_message)
        self._clean_source = cached(redactor.clean_source)
        self._keys: dict[int, str] = {}
        self._versions = _versions(self.read)

    def plane(self, content: bytes) -> bytes:
        """Rewrite the plane."""
        for number, wire, begin, end in read_fields(content, 0, len(content)):
            if (number, wire) == (5, BYTES):
                entry = content[begin:end]
                self._keys[_last_number(entry, 1)] = _last_text(_last_text(entry, 2), 2).decode("utf-8", "replace")
        return _rewritten(
            content,
            {
                2: self.name,
                3: self.line,
                # ``metadata`` (3) of an event name is an embedded message, 6 a list of numbers.
                4: lambda entry: _rewritten(
                    entry,
                    {
                        2: lambda name: _rewritten(
                            name, {2: self.name, 3: self.embedded, 4: self.name, 5: self.stat, 6: _same}
                        )
                    },
                ),
                # A stat name is a key, or a text that stats refer to.
                5: lambda entry: _rewritten(
                    entry, {2: lambda name: _rewritten(name, {2: self._key_or_text, 3: self.text})}
                ),
                6: lambda stat: self.stat(stat, of_plane=True),
            },
        )

    def name(self, content: bytes) -> bytes:
        """Clean the name of an event, a line, or the plane."""
        return _counted(content, self._clean_name(content), self.removed)

    def text(self, content: bytes) -> bytes:
        """Clean a text value."""
        is_harmless = content.decode("utf-8", "replace") in self._versions and not self.redactor.holds(content)
        return content if is_harmless else _counted(content, self._clean_text(content), self.removed)

    def source(self, content: bytes) -> bytes:
        """Clean a text that names places in source code."""
        return _counted(content, self._clean_source(content), self.removed)

    def _key_or_text(self, content: bytes) -> bytes:
        text = content.decode("utf-8", "replace")
        if text in self._private_texts:
            self.removed[PROPERTIES] += 1
            return REMOVED
        return self.source(content) if text in self._source_texts else self.text(content)

    @cached_property
    def _private_texts(self) -> frozenset[str]:
        """Texts referred to by a private stat, or by a setting of the plane that is removed."""
        settings = {
            value
            for key, value in self.read.properties.items()
            if isinstance(value, str) and not keeps_setting(key, value)
        }
        private = {value for key, value in _texts_by_key(self.read) if is_private(key)}
        return frozenset(settings | private) - set(self.read.keys) - set(self.read.properties)

    @cached_property
    def _source_texts(self) -> frozenset[str]:
        """Texts referred to by a stat that names places in source code."""
        return frozenset(value for key, value in _texts_by_key(self.read) if is_source(key)) - set(self.read.keys)

    def embedded(self, content: bytes) -> None:
        """Remove an embedded message."""
        self.removed[MESSAGES] += bool(content)

    def line(self, content: bytes) -> bytes:
        """Rewrite a line. Most lines have only numbers in their events. These are copied without parsing each event."""
        # The stats of a line's events hold texts or bytes directly if two sizes differ: that of the line reduced to
        # events, stats, texts and bytes, and that of the line reduced to events and stats. Protobuf computes both
        # without a Python object per event.
        if _size_of_known(_WITH_TEXTS, content) != _size_of_known(_SHELL, content):
            return _rewritten(
                content, {2: self.name, 4: lambda event: _rewritten(event, {4: self.stat}), 11: self.name}
            )
        shell = _SHELL.FromString(content)
        name, shown = self.name(shell.name), self.name(shell.display_name)
        if (name, shown) == (shell.name, shell.display_name):
            return content
        return _rewritten(content, {2: lambda _: name, 4: _same, 11: lambda _: shown})

    def stat(self, content: bytes, *, of_plane: bool = False) -> bytes | None:
        """Rewrite a stat; return ``None`` to remove it."""
        key = self._keys.get(_last_number(content, 1), "")

        def text(value: bytes) -> bytes:
            shown = value.decode("utf-8", "replace")
            if is_private(key) or (of_plane and not keeps_setting(key, shown)):
                self.removed[PROPERTIES] += 1
                return REMOVED
            return self.source(value) if is_source(key) else self.text(value)

        def message(value: bytes) -> bytes | None:
            if key not in _KEPT_MESSAGES:
                self.embedded(value)
                return None
            try:
                return _rewritten(value, {})  # only its numbers
            except BrokenMessageError:
                return None

        return _rewritten(content, {5: text, 6: message})


def _counted(before: bytes, after: bytes, removed: Counter[str]) -> bytes:
    removed[CLEANED] += before != after
    return after


def _same(content: bytes) -> bytes:
    return content


def _last_number(message: bytes, field_number: int) -> int:
    """Return the value of a number field of ``message``; 0 if absent."""
    fields = read_fields(message, 0, len(message))
    values = [value for number, wire, value, _ in fields if (number, wire) == (field_number, VARINT)]
    return values[-1] if values else 0


def _last_text(message: bytes, field_number: int) -> bytes:
    """Return the content of a field of ``message``; empty if absent."""
    fields = read_fields(message, 0, len(message))
    texts = [message[begin:end] for number, wire, begin, end in fields if (number, wire) == (field_number, BYTES)]
    return texts[-1] if texts else b""


def _rewritten(content: bytes, rules: Mapping[int, Rule]) -> bytes:
    """Rewrite the texts and embedded messages of ``content`` by ``rules``. Those without a rule are removed.

    Unchanged fields are copied with their tags, so that an unchanged message stays byte-identical.
    """
    parts = []
    at = 0
    for number, wire, begin, end in read_fields(content, 0, len(content)):
        before = content[begin:end] if wire == BYTES else b""
        after = before if wire != BYTES else rules[number](before) if number in rules else None
        if wire != BYTES or after == before:
            parts.append(content[at:end])
        elif after is not None:
            parts.append(_varint(number << 3 | BYTES) + _varint(len(after)) + after)
        at = end
    return b"".join(parts)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


# --- finding lines whose events hold texts ---------------------------------------------------------------------------

_F = descriptor_pb2.FieldDescriptorProto


def _message_classes(*stat_fields: int) -> Any:
    """Create a message class for lines that knows only events, their stats, and ``stat_fields`` of stats as bytes."""
    name = f"traceviz.scrub{len(stat_fields)}"
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=name, syntax="proto2")
    stat = file.message_type.add(name="Stat")
    for number in stat_fields:
        stat.field.add(name=f"field{number}", number=number, label=_F.LABEL_REPEATED, type=_F.TYPE_BYTES)
    for message, inner in (("Event", "Stat"), ("Line", "Event")):
        file.message_type.add(name=message).field.add(
            name="inner", number=4, label=_F.LABEL_REPEATED, type=_F.TYPE_MESSAGE, type_name=f".{name}.{inner}"
        )
    line = file.message_type[-1]
    line.field.add(name="name", number=2, label=_F.LABEL_OPTIONAL, type=_F.TYPE_BYTES)
    line.field.add(name="display_name", number=11, label=_F.LABEL_OPTIONAL, type=_F.TYPE_BYTES)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{name}.Line"))


_WITH_TEXTS, _SHELL = _message_classes(5, 6), _message_classes()


def _size_of_known(message_class: Any, line: bytes) -> int:
    message = message_class.FromString(line)
    message.DiscardUnknownFields()
    return int(message.ByteSize())
