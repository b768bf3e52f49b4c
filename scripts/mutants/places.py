"""All mutants: every change of every place that can affect the program."""

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
"""Files that compute the figures of a report, and the columns that they use."""

Span = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Args:
        path: The file, below the repository.
        function: The function or class around the change; empty outside of any.
        operator: Name of the operator.
        occurrence: Number of the place among those of this operator in the file.
        line: Line of the change, from 1.
        last_line: Last line of the statement of the change.
        first_line: First line of that statement.
        text: The line, stripped.
        column: Position in ``text``.
        variant: Number of the change at one place, or among equal lines in one function.
        is_run: True if the change is in the body of a function, which does not run at the import of the file.
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
        """Id of this mutant, which stays the same if lines are added above it."""
        facts = (self.path, self.function, self.operator, self.text, self.column, self.variant)
        return hashlib.sha256("\0".join(map(str, facts)).encode()).hexdigest()[:12]

    def rank(self, seed: str) -> str:
        """Return the sort key of a sample, which does not depend on changes elsewhere."""
        return hashlib.sha256(f"{seed}{self.identity}".encode()).hexdigest()

    def code(self, root: Path) -> str:
        """Return the file with the change."""
        changed: str | None = mutate_code(
            (root / self.path).read_text("utf-8"), operators()[self.operator], self.occurrence
        )
        if changed is None:
            raise LookupError(f"{self.path} has no occurrence {self.occurrence} of {self.operator}")
        return changed

    def diff(self, root: Path) -> str:
        """Return the change, as a diff without context."""
        before = (root / self.path).read_text("utf-8").splitlines()
        lines = list(unified_diff(before, self.code(root).splitlines(), lineterm="", n=0))
        return "\n".join(lines[2:])


def mutants(root: Path) -> list[Mutant]:
    """Return all mutants of the files in :data:`SCOPE`."""
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
                    continue  # ``**`` of arguments is not a power
                line, column = start
                text = lines[line - 1]
                function, is_run = structure.function(line)
                first, last = structure.statement(line)
                facts = (function, key, text.strip(), column - len(text) + len(text.lstrip()))
                variant = seen[facts]
                seen[facts] += 1
                yield Mutant(name, function, key, occurrence, line, first, last, *facts[2:], variant, is_run)


class _Structure:
    """Facts of a file from Python's own syntax tree."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self._idle: list[Span] = [
            ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in _idle_nodes(tree)
        ]
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
        """Return the innermost function or class around ``line``, and whether the line runs when it is called."""
        around = [(first, name, runs) for first, last, name, runs in self._functions if first <= line <= last]
        _, name, runs = max(around, default=(0, "", False))
        return name, runs

    def statement(self, line: int) -> tuple[int, int]:
        """Return first and last line of the innermost statement around ``line``, without its body."""
        around = [(first, last) for first, last in self._statements if first <= line <= last]
        return max(around, key=lambda span: (span[0], -span[1]), default=(line, line))

    def is_idle(self, start: tuple[int, int], end: tuple[int, int]) -> bool:
        """Return whether the place has no effect, or none on a figure."""
        return any(first <= start and end <= last for first, last in self._idle)


def _idle_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield annotations and decorators, texts of errors, code for type checkers, and checks of equal lengths.

    It also yields the order in which columns of a grid disappear on a narrow page.
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
