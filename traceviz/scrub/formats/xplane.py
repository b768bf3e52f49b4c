"""Scrubbing an XPlane capture: the file is written again field by field, and then searched byte by byte.

Fields that are no texts stay as they are, to the byte. Texts are cleaned where they stand: names of planes, lines,
events and stats, and texts of stats, most of which a plane keeps once, among the names of its stats. Bytes in stats are
messages of their own, such as compiled programs with the paths of their sources: only listed messages stay, with only
their numbers. A field that the format does not know stays if it is a number.
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
"""Stats that hold a message whose numbers stay."""
_OPERATION = re.compile(r"[A-Z][A-Za-z0-9]*|(?:\w+::)+\w+")
"""Names of operations and functions on the host: ``MatMul``, ``ThreadpoolListener::Run``."""
_AGAIN = "Copy the file again, or convert what is left, and scrub that: traceviz convert TRACE -o DIR."

Rule = Callable[[bytes], bytes | None]
"""Gives the new content of a field; ``None`` where the field goes."""


def secrets_of_xplane(source: Path) -> list[Secret]:
    """Secrets of an XPlane file, as far as it can be read."""
    return list(_secrets_of(read_space(_content(source)[0]), source))


def scrub_xplane(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the XPlane file ``source`` to ``target``, compressed as the source is.

    Arguments and result: see :class:`~traceviz.scrub.formats.registry.FileFormat`.

    Raises:
        UnknownFormatError: ``source`` is no XPlane file.
        DamagedTraceError: it breaks the rules of its format.
        OutputError: a secret would have stayed in the output.
    """
    data, compressed = _content(source)
    space = _whole_space(source, data)
    redactor = Redactor.of([*_secrets_of(space, source), *known], _vocabulary(space))
    writer = _Writer(redactor)
    try:
        clean = writer.space(data, space)
    except BrokenMessageError as error:
        raise DamagedTraceError(f"{source} is damaged.", "A name in it is no message.", _AGAIN) from error
    _check(clean, redactor)
    target.write_bytes(gzip.compress(clean, mtime=0) if compressed else clean)
    return +writer.removed, len(redactor.secrets), len(clean)


def _content(source: Path) -> tuple[bytes, bool]:
    try:
        raw = source.read_bytes()
        return (gzip.decompress(raw), True) if raw.startswith(GZIP_MAGIC) else (raw, False)
    except (OSError, EOFError) as error:
        raise DamagedTraceError(f"{source} cannot be read.", str(error)) from error


def _whole_space(source: Path, data: bytes) -> Space:
    space = read_space(data)
    if not any(plane.name for plane in space.planes):
        raise UnknownFormatError(
            f"{source} is no trace that scrub can write again.",
            "It holds no plane with a name.",
            "Scrub an XPlane file, what nsys export --type sqlite wrote, or a folder of traceviz convert.",
        )
    if space.damage:
        damage = space.damage[0]
        raise DamagedTraceError(
            f"{source} is damaged: what cannot be read cannot be checked.",
            f"{damage.where}: {damage.what}",
            _AGAIN,
        )
    return space


# --- what is private in this file ------------------------------------------------------------------------------------


def _secrets_of(space: Space, path: Path) -> Iterator[Secret]:
    """Host names, values of private properties, and secrets in texts by their shape."""
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


def _vocabulary(space: Space) -> Iterator[bytes]:
    """Names of kernels and operations: all on devices, and on the host those that are no annotations of the program."""
    for plane in space.planes:
        is_of_device = plane.name.startswith("/device:")
        yield from (name.encode() for name in plane.names if is_of_device or _OPERATION.fullmatch(name))


def _texts_by_key(plane: Plane) -> Iterator[tuple[str, str]]:
    """Keys and texts, of events as far as they are to be treated by their key, of their names, and of the plane."""
    for key in (key for key in plane.keys if is_private(key) or is_source(key)):
        stats = plane.stats_of(key)
        values = set(stats.value[stats.kind == Kind.TEXT].tolist())
        yield from ((key, plane.texts[value]) for value in values)
    for stats_of_name in (*plane.name_stats.values(), plane.properties):
        yield from ((key, value) for key, value in stats_of_name.items() if isinstance(value, str))


def _versions(plane: Plane) -> frozenset[str]:
    """Properties of the plane that are versions, which may look like addresses."""
    properties = plane.properties.items()
    return frozenset(value for key, value in properties if isinstance(value, str) and is_version(key, value))


# --- writing the file again ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Writer:
    """Writes messages again, and counts the parts that it removes."""

    redactor: Redactor
    removed: Counter[str] = field(default_factory=Counter)

    def space(self, data: bytes, space: Space) -> bytes:
        """The whole file. Planes are looked at twice: as columns, for the meaning of their numbers, and as bytes."""
        planes = iter(space.planes)

        def plane(content: bytes) -> bytes:
            return _PlaneWriter(self.redactor, self.removed, next(planes)).plane(content)

        return _rewritten(data, {1: plane, 2: self.message, 3: self.message, 4: self.host})

    def message(self, content: bytes) -> bytes:
        """A text of the profiler."""
        return _counted(content, self.redactor.clean_message(content), self.removed)

    def host(self, content: bytes) -> None:
        """The name of a host, which goes."""
        self.removed[HOSTS] += bool(content)


@dataclass
class _PlaneWriter:
    """Writes the messages of one plane again."""

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
        """The plane itself."""
        self._keys = dict(_stat_names(content))
        return _rewritten(
            content,
            {
                2: self.name,
                3: self.line,
                4: lambda entry: _rewritten(entry, {2: self.event_name}),
                5: lambda entry: _rewritten(entry, {2: self.stat_name}),
                6: lambda stat: self.stat(stat, of_plane=True),
            },
        )

    def name(self, content: bytes) -> bytes:
        """The name of an event, a line, or the plane."""
        return _counted(content, self._clean_name(content), self.removed)

    def text(self, content: bytes) -> bytes:
        """A text value."""
        is_harmless = content.decode("utf-8", "replace") in self._versions and not self.redactor.holds(content)
        return content if is_harmless else _counted(content, self._clean_text(content), self.removed)

    def source(self, content: bytes) -> bytes:
        """A text that names places in source."""
        return _counted(content, self._clean_source(content), self.removed)

    def event_name(self, content: bytes) -> bytes:
        """An entry of the event names; ``metadata`` (3) is a message of its own, 6 a list of numbers."""
        return _rewritten(content, {2: self.name, 3: self.embedded, 4: self.name, 5: self.stat, 6: _same})

    def stat_name(self, content: bytes) -> bytes:
        """An entry of the stat names, which is a key, or a text to which stats refer."""
        return _rewritten(content, {2: self._key_or_text, 3: self.text})

    def _key_or_text(self, content: bytes) -> bytes:
        text = content.decode("utf-8", "replace")
        if text in self._private_texts:
            self.removed[PROPERTIES] += 1
            return REMOVED
        return self.source(content) if text in self._source_texts else self.text(content)

    @cached_property
    def _private_texts(self) -> frozenset[str]:
        """Texts to which a private stat refers, or a setting of the plane that does not stay."""
        settings = {
            value
            for key, value in self.read.properties.items()
            if isinstance(value, str) and not keeps_setting(key, value)
        }
        private = {value for key, value in _texts_by_key(self.read) if is_private(key)}
        return frozenset(settings | private) - set(self.read.keys) - set(self.read.properties)

    @cached_property
    def _source_texts(self) -> frozenset[str]:
        """Texts to which a stat refers that names places in source."""
        return frozenset(value for key, value in _texts_by_key(self.read) if is_source(key)) - set(self.read.keys)

    def embedded(self, content: bytes) -> None:
        """A message within the file, which goes."""
        self.removed[MESSAGES] += bool(content)

    def line(self, content: bytes) -> bytes:
        """A line. Most have nothing but numbers in their events: these are copied without a look at each."""
        # A stat of an event holds a text or bytes itself if the line, reduced to its events, stats, texts and bytes, is
        # longer than reduced to its events and stats alone: protobuf decides it without a Python object per event.
        if _size_of_known(_WITH_TEXTS, content) != _size_of_known(_SHELL, content):
            return _rewritten(content, {2: self.name, 4: self.event, 11: self.name})
        shell = _SHELL.FromString(content)
        name, shown = self.name(shell.name), self.name(shell.display_name)
        if (name, shown) == (shell.name, shell.display_name):
            return content
        return _rewritten(content, {2: lambda _: name, 4: _same, 11: lambda _: shown})

    def event(self, content: bytes) -> bytes:
        """An event with texts of its own."""
        return _rewritten(content, {4: self.stat})

    def stat(self, content: bytes, *, of_plane: bool = False) -> bytes | None:
        """A stat; ``None`` where nothing of it stays."""
        key = self._keys.get(_last_number(content, 1), "")

        def text(value: bytes) -> bytes:
            shown = value.decode("utf-8", "replace")
            if is_private(key) or (of_plane and not keeps_setting(key, shown)):
                self.removed[PROPERTIES] += 1
                return REMOVED
            return self.source(value) if is_source(key) else self.text(value)

        def message(value: bytes) -> bytes | None:
            if key in _KEPT_MESSAGES:
                return _numbers(value)
            self.embedded(value)
            return None

        return _rewritten(content, {5: text, 6: message})


def _counted(before: bytes, after: bytes, removed: Counter[str]) -> bytes:
    removed[CLEANED] += before != after
    return after


def _same(content: bytes) -> bytes:
    return content


def _stat_names(plane: bytes) -> Iterator[tuple[int, str]]:
    """Keys of the stats of ``plane`` by their number."""
    for number, wire, begin, end in read_fields(plane, 0, len(plane)):
        if (number, wire) == (5, BYTES):
            entry = plane[begin:end]
            described = _last_text(entry, 2)
            yield _last_number(entry, 1), _last_text(described, 2).decode("utf-8", "replace")


def _last_number(message: bytes, field_number: int) -> int:
    """Value of a field of ``message`` that is a number; 0 where it is absent."""
    fields = read_fields(message, 0, len(message))
    values = [value for number, wire, value, _ in fields if (number, wire) == (field_number, VARINT)]
    return values[-1] if values else 0


def _last_text(message: bytes, field_number: int) -> bytes:
    """Content of a field of ``message``; empty where it is absent."""
    fields = read_fields(message, 0, len(message))
    texts = [message[begin:end] for number, wire, begin, end in fields if (number, wire) == (field_number, BYTES)]
    return texts[-1] if texts else b""


def _rewritten(content: bytes, rules: Mapping[int, Rule]) -> bytes:
    """The message ``content`` with its texts and messages as ``rules`` give them; others of that kind go.

    Fields that stay the same are copied with their tags, so that an unchanged message is unchanged to the byte.
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


def _numbers(content: bytes) -> bytes | None:
    """The fields of a message that are numbers; ``None`` where it is none."""
    try:
        return _rewritten(content, {})
    except BrokenMessageError:
        return None


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


# --- finding lines whose events hold texts ---------------------------------------------------------------------------

_F = descriptor_pb2.FieldDescriptorProto


def _message_classes(*stat_fields: int) -> Any:
    """A class of lines that knows nothing but events, their stats, and ``stat_fields`` of these as bytes."""
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


# --- the check -------------------------------------------------------------------------------------------------------


def _check(content: bytes, redactor: Redactor) -> None:
    """Search the content that is about to be written: its bytes, whatever a reader makes of them, and its texts.

    Short secrets are looked for in the texts only, as whole words: in the bytes, the length of a text stands before it
    and may look like a letter.
    """
    position = redactor.position_in(content, PACKED)
    if position >= 0:
        raise leak(f"at byte {position}")
    space = read_space(content)
    texts = [*space.errors, *space.warnings, *space.hostnames]
    for plane in space.planes:
        texts += [plane.name, *(line.name for line in plane.lines), *plane.names, *plane.display_names, *plane.texts]
    for text in texts:
        if redactor.holds(text.encode()):
            raise leak("in a text")
