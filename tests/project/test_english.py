"""Counts of words and openings that plain English avoids, in docstrings, comments and documents: they only fall."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

WORDS = re.compile(
    r"\b(?=[abilmnostw])(?:tells?|told|speaks? of|beside|whoever|whatever|nobody|somebody|where there (?:is|are|were)"
    r"|of which|alike|stretch(?:es)?|beg[iau]ns?|meanwhile|ahead|in words|is said|mend(?:s|ed)?|spare[sd]?|anew"
    r"|lets? go|makes it)\b",
    re.IGNORECASE,
)
"""The look-ahead costs nothing where no listed word can begin."""
NAMES = re.compile(r"``.*?``|`[^`\n]*`|:\w+:`[^`]*`|^ *\w+(?:, \w+)*:(?= )", re.MULTILINE | re.DOTALL)
"""Code in prose, and names of documented arguments: an identifier is no word."""
OPENINGS = re.compile(r"(?:What|Which|Whether|Where|Whoever|Whose|Who|How)\b")
SOURCES = ("traceviz", "parsers", "collectors")
WORDS_OF = {"source": 17, "documents": 125}
"""Most uses of the listed words: in docstrings and comments of the package, and in its documents."""
MOST_OPENINGS = 1
"""Most docstrings of the package that open with a question word."""


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Yield texts that stand alone: docstrings, also of constants."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(ast.Constant(str(text))):
                    yield text


def comments(source: str) -> Iterator[str]:
    """Yield comments, without those for tools."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            yield token.string


@pytest.fixture(scope="module")
def source() -> tuple[list[str], list[str]]:
    """Docstrings and comments of the files that may hold a listed word or opening, which few do."""
    of_docstrings, of_comments = list[str](), list[str]()
    paths = [path for top in SOURCES for path in sorted((REPOSITORY / top).rglob("*.py"))]
    assert len(paths) > 500
    for text in (path.read_text(encoding="utf-8") for path in paths):
        blocks = re.findall(r'"""(.*?)"""', text, re.DOTALL)
        if any(WORDS.search(block) or OPENINGS.match(block.strip()) for block in blocks):
            of_docstrings += docstrings(ast.parse(text))
        if any(map(WORDS.search, re.findall("#.*", text))):
            of_comments += comments(text)
    assert of_docstrings
    return of_docstrings, of_comments


def documents() -> Iterator[Path]:
    yield from (REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
    yield from sorted((REPOSITORY / "docs").rglob("*.md"))


def test_listed_words_of_the_source_only_become_fewer(source: tuple[list[str], list[str]]) -> None:
    used = Counter(word.lower() for texts in source for text in texts for word in WORDS.findall(NAMES.sub("", text)))
    assert used.total() <= WORDS_OF["source"], used.most_common(5)


def test_listed_words_of_the_documents_only_become_fewer() -> None:
    used = Counter(
        word.lower() for path in documents() for word in WORDS.findall(NAMES.sub("", path.read_text(encoding="utf-8")))
    )
    assert used.total() <= WORDS_OF["documents"], used.most_common(5)


def test_docstrings_that_open_with_a_question_word_only_become_fewer(source: tuple[list[str], list[str]]) -> None:
    assert sum(OPENINGS.match(text.strip()) is not None for text in source[0]) <= MOST_OPENINGS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Whoever tells it", ["Whoever", "tells"]),
        ("begun, began, begins", ["begun", "began", "begins"]),
        ("retelling", []),
    ],
)
def test_whole_words_count_in_any_case(text: str, found: list[str]) -> None:
    assert WORDS.findall(text) == found
