"""Paths, URLs and names as people see them: harmless in a terminal, without users, passwords and signatures."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 1024
"""Characters of the longest name that is shown in full."""
_WEB = ("http://", "https://")
_ADDRESS = re.compile(r"(?<![\w+.-])(?=[\w+.-]++://)(?P<before>[\w+.-]*?)(?P<address>\b[A-Za-z][\w+.-]*+://[^\s'\"]*+)")
"""Addresses with a scheme. What may be one is looked through once and as a whole, however long it is."""
_USER = re.compile(
    r"(?<![^\s'\"/@])(?=[^\s'\"/@]++@[\w\[])"  # a word that ends before a host: looked through once and as a whole
    r"(?P<before>[^\s'\"/@]*?)(?<![^\s'\"/:@()=,])[^\s'\"/:@()=,]++:[^\s'\"/@]*+@"
)
"""User and password before the name of a host, without a scheme."""
_CONTAINER_BEFORE_HOST = frozenset({"abfs", "abfss", "github", "wasb", "wasbs"})
"""Schemes with a container or repository, not a user, before the ``@``."""
_HIDDEN = ("C", "Zl", "Zp")
"""Unicode's classes of what a terminal obeys rather than shows: control, format, surrogates, line separators."""


def is_url(source: str) -> bool:
    """Whether it is a URL rather than a path."""
    protocol, separator, _ = source.partition("://")
    return bool(separator) and not protocol.startswith((".", "/", "~"))


def is_web(url: str) -> bool:
    """Whether it is a page of the web, of which no listings exist."""
    return url.startswith(_WEB)


def printable(name: str) -> str:
    """A name for people: what a terminal would obey is shown as its code, and the middle of a long one left out."""
    if len(name) > LONGEST:
        name = f"{name[: LONGEST // 2]}...{name[-LONGEST // 4 :]}"
    return name if name.isprintable() else "".join(map(_printable, name))


def _printable(character: str) -> str:
    if character.isprintable() and character != "\\":
        return character
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is no UTF-8, as Python carries it
        return f"\\x{number - 0xDC00:02x}"
    if character == "\\" or not unicodedata.category(character).startswith(_HIDDEN):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def shown(url: str) -> str:
    """A URL or path for people, without user, password and signature."""
    return printable(without_secrets(url) if is_url(url) else url)


def public(text: str) -> str:
    """The message of a library, without the users, passwords and signatures of the addresses in it."""
    without_addresses = _ADDRESS.sub(lambda match: match["before"] + without_secrets(match["address"]), text)
    return printable(_USER.sub(r"\g<before>", without_addresses))


def without_secrets(url: str) -> str:
    """A URL, or several in a chain, without users, passwords and signatures."""
    return "::".join(_link_without_secrets(link) for link in url.split("::"))


def _link_without_secrets(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    path, _, query = rest.partition("?")
    if scheme in {"http", "https"}:
        rest = path.partition("#")[0]
    elif "=" in query:  # else it is a pattern for any letter, or a part of a name
        rest = path
    host, slash, path = rest.partition("/")
    if scheme not in _CONTAINER_BEFORE_HOST and "@" in host:
        host = host.rpartition("@")[2]
    elif scheme not in _CONTAINER_BEFORE_HOST and "@" in path and not host.partition(":")[2].isdigit() and ":" in host:
        return scheme + separator + path.rpartition("@")[2]  # a password with a slash in it
    return scheme + separator + host + slash + path
