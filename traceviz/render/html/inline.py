"""Scripts and style sheets of a page: the files of ``assets``, joined into one text each.

Scripts are ES modules that import each other. A page loads nothing, so the modules are concatenated, imported ones
first, without ``import``, ``export``, comments and indentation. Top-level names are unique among all files.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import\s[^;"]*"\./(?P<name>[\w-]+\.js)";\n', re.MULTILINE)
_SPACE = re.compile(r"^ *//.*\n|^ +", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async |function|const|let|class)", re.MULTILINE)


def script(*entries: str) -> str:
    """Return the text of the modules ``entries`` and of all that they import, each once."""
    order: dict[str, None] = {}
    for entry in entries:
        order.update(dict.fromkeys(_with_imports(entry, ())))
    return "\n".join(module(name).strip("\n") for name in order) + "\n"


def module(name: str) -> str:
    """Return the text of one module without imports, exports, lines of comments, and indentation.

    A page is sent and stored, and these are a fifth of its scripts. No text in them spans lines.
    """
    return _SPACE.sub("", _EXPORT.sub("", _IMPORT.sub("", asset(name))))


def style(names: Iterable[str]) -> str:
    """Return the text of these style sheets, without comments."""
    return "\n".join(_without_comments(asset(name)) for name in names)


@cache
def asset(name: str) -> str:
    """Return the text of one file of ``assets``."""
    return files("traceviz.render.html").joinpath("assets", name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows an inline text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _without_comments(text: str) -> str:
    """Return a style sheet without its comments, and without the white space after each."""
    before, *comments = text.split("/*")
    return before + "".join(comment.partition("*/")[2].lstrip() for comment in comments)


def _with_imports(name: str, importing: tuple[str, ...]) -> Iterator[str]:
    """Return all direct and indirect imports of ``name``, then ``name`` itself.

    Raises:
        ValueError: modules import each other in a circle.
    """
    if name in importing:
        raise ValueError(f"modules import each other: {' → '.join((*importing, name))}")
    for match in _IMPORT.finditer(asset(name)):
        yield from _with_imports(match["name"], (*importing, name))
    yield name
