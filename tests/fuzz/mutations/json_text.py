"""Changes of JSON at its values; the result need not be JSON.

The text is cut into its values without decoding them, so that what one step spoilt does not hinder the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.mutations import nasty
from tests.fuzz.mutations.octets import LARGE, spoil

_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+)', re.DOTALL)
_NUMBERS = tuple(
    text.encode()
    for text in (
        *map(str, (*nasty.INTEGERS, *nasty.WIDE, -1, -(2**31), -(2**63), -(2**63) - 1)),
        *nasty.FRACTIONS,
        *(
            "NaN",
            "Infinity",
            "-Infinity",
            "1e400",
            "-1e400",
            "1e18446744073709551616",
            "1E+2",
            "1.",
            ".5",
            "01",
            "+1",
            "-",
        ),
        *("0x10", "1_0", "123456789.123456789123456789", "9223372036854775807.999", "-0", "-0.0", "1e-5000"),
    )
)
_OTHERS = (
    *(b"null", b"true", b"false", b"[]", b"{}", b"[1]", b'{"a":{"a":[]}}', b"undefined", b"'a'", b"/**/0", b"", b"1 2"),
    *(b'"a', b"[1,", b'{"a":', b'{"a":1,}', b"[,]", b"[" * 3000 + b"]" * 3000, b'{"a":' * 2000 + b"1" + b"}" * 2000),
    *(
        b'"\\ud800"',
        b'"\\udfff\\ud800"',
        b'"\\u0000"',
        b'"\\u001b[31m"',
        b'"\\u202e"',
        b'"\\x"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
    ),
    *(b'"' + b"A" * 9000 + b'"', b'"\n"', b"[[1,2],[3]]", b"[[[[[[[[]]]]]]]]", b'{"":0}', b'{"a":1,"a":2}'),
)


@dataclass(slots=True)
class Value:
    """Position of a value: its text, its key if it is a member, and its children if there are any."""

    begin: int
    end: int
    key: bytes | None = None
    key_begin: int = -1
    children: list[Value] = field(default_factory=list)


def values(text: bytes) -> list[Value]:
    """Return all values of ``text`` as far as it looks like JSON, outer ones first."""
    found: list[Value] = []
    open_: list[Value] = []
    key: tuple[bytes, int] | None = None
    waiting: Value | None = None
    for match in _TOKEN.finditer(text):
        token = match[1]
        begin = match.start(1)
        if token in b"]}":
            if open_:
                open_.pop().end = begin + 1
            key = waiting = None
        elif token == b":":
            if waiting is not None and open_ and not waiting.children:  # what looked like a value is a key
                key = text[waiting.begin : waiting.end], waiting.begin
                found.remove(waiting) if found[-1] is not waiting else found.pop()
                open_[-1].children.pop()
            waiting = None
        elif token == b",":
            key = waiting = None
        else:
            value = Value(begin, match.end(1), *(key or (None, -1)))
            key = None
            found.append(value)
            if open_:
                open_[-1].children.append(value)
            waiting = value
            if token in b"[{":
                open_.append(value)
                waiting = None
    for value in open_:
        value.end = len(text)
    return found


def token(random: Random, text: bytes = b"") -> bytes:
    """Return some value as JSON, or nearly."""
    match random.randrange(8):
        case 0 | 1 | 2:
            return random.choice(_NUMBERS)
        case 3 | 4:
            return random.choice(_OTHERS)
        case 5:
            return quoted(nasty.text(random))
        case 6 if text.startswith(b'"'):
            given = text[1:-1].decode("utf-8", "replace")
            return quoted(nasty.spoilt_text(random, given))
        case _:
            return _near(random, text)


def quoted(text: str) -> bytes:
    """Return ``text`` as JSON."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
    return b'"' + "".join(escapes.get(c, c if c >= " " else f"\\u{ord(c):04x}") for c in text).encode() + b'"'


def _near(random: Random, text: bytes) -> bytes:
    """Return a number or a text that differs a little from the given one."""
    try:
        number = float(text.strip(b'"'))
    except ValueError:
        return text + text
    change: Callable[[float], float | str] = random.choice(
        (
            lambda x: -x,
            lambda x: x * 1e9,
            lambda x: x + 2.0**62,
            lambda x: x / 3,
            lambda x: f'"{x}"',
            lambda x: f"[{x}]",
        )
    )
    return str(change(number)).encode()


def change(random: Random, text: bytes) -> bytes:
    """Return ``text`` with one value replaced, removed, repeated or exchanged; or with one member of all objects."""
    every = [] if len(text) > LARGE else values(text)
    if not every:
        return spoil(random, text)
    deep = random.random() < 0.7
    value = random.choice([v for v in every if not v.children] or every) if deep else random.choice(every)
    begin = value.begin if value.key is None else value.key_begin
    match random.randrange(12):
        case 0:  # with the comma after it, if there is one
            comma = re.compile(rb"\s*,").match(text, value.end)
            return text[:begin] + text[comma.end() if comma else value.end :]
        case 1:
            again = b"," + text[begin : value.end]
            return text[: value.end] + again * random.choice((1, 2, 30)) + text[value.end :]
        case 2:
            other = random.choice(every)
            return _replaced(text, [(value, text[other.begin : other.end]), (other, text[value.begin : value.end])])
        case 3 | 4 | 5:
            keys = sorted({v.key for v in every if v.key is not None})
            if not keys:
                return _replaced(text, [(value, token(random, text[value.begin : value.end]))])
            key = random.choice(keys)
            named = [v for v in every if v.key == key]
            share = random.choice((1.0, 1.0, 0.5))
            same = token(random, text[named[0].begin : named[0].end]) if random.random() < 0.5 else None
            return _replaced(
                text,
                [(v, same or token(random, text[v.begin : v.end])) for v in named if random.random() <= share],
            )
        case 6:
            if value.key is None:
                return _replaced(text, [(value, token(random, text[value.begin : value.end]))])
            key = quoted(nasty.text(random)) if random.random() < 0.5 else value.key.upper()
            return text[: value.key_begin] + key + text[value.key_begin + len(value.key) :]
        case 7:
            keys = sorted({v.key for v in every if v.key is not None}) or [b'"ts"']
            member = b"%s: %s, " % (random.choice(keys), token(random))
            objects = [v for v in every if text[v.begin : v.begin + 1] == b"{"]
            if not objects:
                return spoil(random, text)
            at = random.choice(objects).begin + 1
            return text[:at] + member + text[at:]
        case _:
            return _replaced(text, [(value, token(random, text[value.begin : value.end]))])


def _replaced(text: bytes, changes: list[tuple[Value, bytes]]) -> bytes:
    """Return ``text`` with other texts at these values; of values that overlap, the first."""
    parts: list[bytes] = []
    at = 0
    for value, new in sorted(changes, key=lambda change: change[0].begin):
        if value.begin >= at:
            parts += [text[at : value.begin], new]
            at = value.end
    return b"".join([*parts, text[at:]])
