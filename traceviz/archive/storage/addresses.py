"""Display of paths, URLs and names: harmless in a terminal, without users, passwords and signatures."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 1024
"""Maximum length of a name that is shown in full, in characters."""
_WEB = ("http://", "https://")
_ADDRESS = re.compile(r"(?<![\w+.-])(?=[\w+.-]++://)(?P<before>[\w+.-]*?)(?P<address>\b[A-Za-z][\w+.-]*+://[^\s'\"]*+)")
"""Addresses with a scheme. Each candidate is scanned only once, at any length."""
_USER = re.compile(
    r"(?<![^\s'\"/@])(?=[^\s'\"/@]++@[\w\[])"  # a word before a host, scanned only once
    r"(?P<before>[^\s'\"/@]*?)(?<![^\s'\"/:@()=,])[^\s'\"/:@()=,]++:[^\s'\"/@]*+@"
)
"""User and password before a host name, without a scheme."""
_CONTAINER_BEFORE_HOST = frozenset({"abfs", "abfss", "github", "wasb", "wasbs"})
"""Schemes with a container or repository, not a user, before the ``@``."""
_HIDDEN = ("C", "Zl", "Zp")
"""Unicode classes that terminals interpret instead of showing: control, format, surrogates, line separators."""


def is_url(source: str) -> bool:
    """Return whether the source is a URL rather than a path."""
    protocol, separator, _ = source.partition("://")
    return bool(separator) and not protocol.startswith((".", "/", "~"))


def is_web(url: str) -> bool:
    """Return whether the URL is a web page, which cannot be listed."""
    return url.startswith(_WEB)


def printable(name: str) -> str:
    """Return a display name: control characters become their codes, and long names are shortened in the middle."""
    if len(name) > LONGEST:
        name = f"{name[: LONGEST // 2]}...{name[-LONGEST // 4 :]}"
    return name if name.isprintable() else "".join(map(_printable, name))


def _printable(character: str) -> str:
    if character.isprintable() and character != "\\":
        return character
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8, as Python stores it
        return f"\\x{number - 0xDC00:02x}"
    if character == "\\" or not unicodedata.category(character).startswith(_HIDDEN):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def display_address(url: str) -> str:
    """Return a URL or path for display, without user, password and signature."""
    return printable(without_secrets(url) if is_url(url) else url)


def public(text: str) -> str:
    """Return a library's message, without the users, passwords and signatures of its addresses."""
    without_addresses = _ADDRESS.sub(lambda match: match["before"] + without_secrets(match["address"]), text)
    return printable(_USER.sub(r"\g<before>", without_addresses))


def without_secrets(url: str) -> str:
    """Return a URL, or a chain of URLs, without users, passwords and signatures."""
    return "::".join(_link_without_secrets(link) for link in url.split("::"))


def _link_without_secrets(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    path, _, query = rest.partition("?")
    if scheme in {"http", "https"}:
        rest = path.partition("#")[0]
    elif "=" in query:  # otherwise it is a pattern for any letter, or a part of a name
        rest = path
    host, slash, path = rest.partition("/")
    if scheme not in _CONTAINER_BEFORE_HOST and "@" in host:
        host = host.rpartition("@")[2]
    elif scheme not in _CONTAINER_BEFORE_HOST and "@" in path and not host.partition(":")[2].isdigit() and ":" in host:
        return scheme + separator + path.rpartition("@")[2]  # a password with a slash in it
    return scheme + separator + host + slash + path
