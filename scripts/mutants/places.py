"""Which mutants there are: every change of every place, but where it would change nothing that a program does."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from operators import operators

SCOPE = (
    "traceviz/analyses/**/*.py",
    "traceviz/core/arrays/intervals.py",
    "traceviz/compare/**/*.py",
    *(f"parsers/*/**/{name}.py" for name in ("columns", "device", "events", "host", "mapping", "memory", "samples")),
    "parsers/*/tables.py",
)
"""What computes the figures of a report, and the columns that they are computed from."""

Span = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Args:
        path: The file, below the repository.
        function: The function or class in which the change is; empty outside of any.
        operator: Name of the operator.
        occurrence: Which of the places of this operator in the file.
        line: Line of the change, from 1.
        last_line: Where the statement of the change ends.
        first_line: Where it begins.
        text: The line, stripped.
        column: Where in ``text``.
        variant: Which of the changes at one place, or of equal lines in one function.
        is_run: Whether the change is in the body of a function, and not done once when the file is imported.
    """

    path: str
    function: str
    operator: str
    occurrence: int
    line: int
    first_line: int
    last_line: int
    text: str
    column: int
    variant: int
    is_run: bool

    @property
    def identity(self) -> str:
        """Says which mutant this is, also after lines were added above it."""
        facts = (self.path, self.function, self.operator, self.text, self.column, self.variant)
        return hashlib.sha256("\0".join(map(str, facts)).encode()).hexdigest()[:12]

    def rank(self, seed: str) -> str:
        """Place in the order in which a sample is taken: changes elsewhere leave it as it is."""
        return hashlib.sha256(f"{seed}{self.identity}".encode()).hexdigest()

    def code(self, root: Path) -> str:
        """The file with the change."""
        changed: str | None = mutate_code(
            (root / self.path).read_text("utf-8"), operators()[self.operator], self.occurrence
        )
        if changed is None:
            raise LookupError(f"{self.path} has no occurrence {self.occurrence} of {self.operator}")
        return changed

    def diff(self, root: Path) -> str:
        """The change, as a diff without context."""
        before = (root / self.path).read_text("utf-8").splitlines()
        lines = list(unified_diff(before, self.code(root).splitlines(), lineterm="", n=0))
        return "\n".join(lines[2:])


def mutants(root: Path) -> list[Mutant]:
    """All mutants of the files in :data:`SCOPE`."""
    paths = sorted({path for pattern in SCOPE for path in root.glob(pattern)})
    return [mutant for path in paths for mutant in _of_file(path, path.relative_to(root).as_posix())]


def _of_file(path: Path, name: str) -> Iterator[Mutant]:
    source = path.read_text("utf-8")
    lines = source.splitlines()
    structure = _Structure(source)
    nodes = list(ast_nodes(get_ast(source)))
    seen: Counter[tuple[Any, ...]] = Counter()
    for key, operator in operators().items():
        occurrence = -1
        for node in nodes:
            for start, end in operator.mutation_positions(node):
                occurrence += 1
                if structure.is_idle(start, end) or (key.endswith("Pow_Mul") and node.parent.type != "power"):
                    continue  # ``**`` of arguments is no power
                line, column = start
                text = lines[line - 1]
                function, is_run = structure.function(line)
                first, last = structure.statement(line)
                facts = (function, key, text.strip(), column - len(text) + len(text.lstrip()))
                variant = seen[facts]
                seen[facts] += 1
                yield Mutant(name, function, key, occurrence, line, first, last, *facts[2:], variant, is_run)


class _Structure:
    """What Python's own syntax tree says of a file."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self._idle: list[Span] = [_span(node) for node in _idle_nodes(tree)]
        self._functions: list[tuple[int, int, str, bool]] = []
        self._statements: list[tuple[int, int]] = []
        self._walk(tree, "", is_run=False)

    def _walk(self, node: ast.AST, inside: str, *, is_run: bool) -> None:
        for child in ast.iter_child_nodes(node):
            name, runs = inside, is_run
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{inside}.{child.name}".lstrip(".")
                runs = is_run or isinstance(child, ast.FunctionDef)
                body = child.body[0].lineno if isinstance(child, ast.FunctionDef) else child.lineno
                self._functions.append((body, child.end_lineno or body, name, runs))
            if isinstance(child, ast.stmt):
                inner = getattr(child, "body", None)
                last = child.end_lineno or child.lineno
                if isinstance(inner, list):
                    last = max(child.lineno, inner[0].lineno - 1)
                self._statements.append((child.lineno, last))
            self._walk(child, name, is_run=runs)

    def function(self, line: int) -> tuple[str, bool]:
        """The innermost function or class around ``line``, and whether the line runs when it is called."""
        around = [(first, name, runs) for first, last, name, runs in self._functions if first <= line <= last]
        _, name, runs = max(around, default=(0, "", False))
        return name, runs

    def statement(self, line: int) -> tuple[int, int]:
        """First and last line of the innermost statement around ``line``, without its body."""
        around = [(first, last) for first, last in self._statements if first <= line <= last]
        return max(around, key=lambda span: (span[0], -span[1]), default=(line, line))

    def is_idle(self, start: tuple[int, int], end: tuple[int, int]) -> bool:
        """Whether the place is in what has no effect, or none that a figure depends on."""
        return any(first <= start and end <= last for first, last in self._idle)


def _span(node: Any) -> Span:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _idle_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Annotations and decorators; texts of errors; what only a type checker reads; checks of equal lengths.

    And which columns of a grid go first where the page is narrow.
    """
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.Raise() | ast.Assert() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node
            case ast.keyword(arg="strict" | "writable" | "copy"):
                yield node
            case ast.Call(func=ast.Name(id="Column")):
                yield from node.args
            case ast.FunctionDef() | ast.ClassDef():
                yield from node.decorator_list
        if isinstance(node, ast.FunctionDef) and node.returns:
            yield node.returns
