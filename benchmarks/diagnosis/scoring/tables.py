"""Tables of many scores, as text and as Markdown."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import traceviz
from benchmarks.diagnosis.score import GOOD, Grade, Scored
from benchmarks.diagnosis.scoring.changes import Change
from benchmarks.diagnosis.scoring.numbers import CLASSES, COMPUTE

MARKERS = "<!-- diagnosis -->", "<!-- /diagnosis -->"
"""The tables of a page are between these lines."""
OTHER_TOOLS = "other-tools.md"
MARKERS_OF_OTHER_TOOLS = "<!-- scores -->", "<!-- end of scores -->"
"""The page with the scores of other tools, if it is next to the page, and the lines around them on both pages."""
Row = Callable[[Scored], str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column is text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_text(self) -> str:
        """Return the table for a terminal."""
        widths = [max(len(row[column]) for row in (self.columns, *self.rows)) for column in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in (self.columns, *self.rows)
        ]
        return "\n".join((self.title, *(line.rstrip() for line in lines)))

    def to_markdown(self) -> str:
        """Return the table for a page."""
        rows = (self.columns, ("---", *("--:" for _ in self.columns[1:])), *self.rows)
        return "\n".join((f"### {self.title}", "", *(f"| {' | '.join(row)} |" for row in rows)))


def make_tables(scores: Sequence[Scored]) -> list[Table]:
    """Return all tables of a run. Tables without rows are left out."""
    tables = [
        grade_table(scores, lambda scored: scored.cause, "cause"),
        grade_table(scores, lambda scored: scored.capture.format, "format"),
        grade_table(scores, lambda scored: scored.capture.flaw, "flaw"),
        grade_table(scores, _hiding, "causes that hide each other"),
        cross_table(scores),
        finding_table(scores, lambda scored: scored.capture.format, "format"),
        finding_table(scores, lambda scored: scored.capture.flaw, "flaw"),
        recall_table(scores),
        place_table(scores, lambda scored: scored.capture.format, "format"),
        place_table(scores, lambda scored: scored.cause, "cause"),
        change_table(scores, lambda scored: scored.capture.format, "format"),
        change_table(scores, lambda scored: scored.capture.flaw, "flaw"),
        change_table(scores, lambda scored: scored.cause, "cause"),
        number_table(scores, lambda scored: scored.capture.format, "format"),
        number_table(scores, lambda scored: scored.capture.flaw, "flaw"),
    ]
    return [table for table in tables if table.rows]


def grade_table(scores: Iterable[Scored], row: Row, name: str) -> Table:
    """Count the grades by a property of the captures, worst first."""
    counts: dict[str, Counter[Grade]] = defaultdict(Counter)
    for scored in scores:
        counts[row(scored)][scored.grade] += 1
    rows = (
        (key, str(grades.total()), _percent(_good(grades), grades.total()), *(str(grades[grade]) for grade in Grade))
        for key, grades in sorted(counts.items(), key=lambda item: (_good(item[1]) / item[1].total(), item[0]))
    )
    return Table(f"First sentence by {name}", (name, "captures", "right or honest", *Grade), tuple(rows))


def cross_table(scores: Iterable[Scored]) -> Table:
    """Return the share of right and honest reports by cause and format."""
    cells: dict[tuple[str, str], Counter[Grade]] = defaultdict(Counter)
    for scored in scores:
        cells[scored.cause, scored.capture.format][scored.grade] += 1
    formats = sorted({format_ for _, format_ in cells})
    rows = []
    for cause in sorted({cause for cause, _ in cells}):
        of_cause = [cells.get((cause, format_), Counter()) for format_ in formats]
        shares = (_part(_good(grades), grades.total()) for grades in of_cause)
        rows.append((cause, *shares))
    return Table("Right or honest by cause and format", ("cause", *formats), tuple(rows))


def finding_table(scores: Iterable[Scored], row: Row, name: str) -> Table:
    """Return precision and recall of findings."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for scored in scores:
        for kind in ("true", "false", "other", "found", "missed"):
            counts[row(scored)][kind] += len(getattr(scored.findings, kind))
    rows = tuple(
        (
            key,
            _percent(of["true"], of["true"] + of["false"]),
            str(of["true"] + of["false"]),
            str(of["other"]),
            _percent(of["found"], of["found"] + of["missed"]),
            str(of["found"] + of["missed"]),
        )
        for key, of in sorted(counts.items())
    )
    columns = name, "precision", "findings", "of no simulated cause", "recall", "causes"
    return Table(f"All findings by {name}", columns, rows)


def recall_table(scores: Iterable[Scored]) -> Table:
    """Return how often each cause is found, and how often each finding is false."""
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for scored in scores:
        found.update(scored.findings.found)
        missed.update(scored.findings.missed)
    both = found + missed
    rows = tuple(
        (cause, str(both[cause]), _percent(found[cause], both[cause]))
        for cause in sorted(both, key=lambda cause: (found[cause] / both[cause], cause))
    )
    return Table("Causes among findings and candidates", ("cause", "captures with evidence", "named"), rows)


def place_table(scores: Iterable[Scored], row: Row, name: str) -> Table:
    """Return how often each kind of place is named."""
    counts: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for scored in scores:
        for kind, is_named in scored.places.items():
            counts[row(scored)][kind, is_named] += 1
    kinds = sorted({kind for of in counts.values() for kind, _ in of})
    rows = tuple(
        (key, *(_part(of[kind, True], of[kind, True] + of[kind, False]) for kind in kinds))
        for key, of in sorted(counts.items())
    )
    return Table(f"Places named by {name}", (name, *kinds), rows)


def change_table(scores: Iterable[Scored], row: Row, name: str) -> Table:
    """Count the scores of comparisons."""
    counts: dict[str, Counter[Change]] = defaultdict(Counter)
    for scored in scores:
        if scored.change is not None:
            counts[row(scored)][scored.change] += 1
    rows = tuple((key, *(str(of[change]) for change in Change)) for key, of in sorted(counts.items()))
    return Table(f"Comparisons by {name}", (name, *Change), rows)


def number_table(scores: Iterable[Scored], row: Row, name: str) -> Table:
    """Return median and 95th percentile of the error of each class, in percent of step time."""
    errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    captures: Counter[str] = Counter()
    for scored in scores:
        captures[row(scored)] += 1
        for class_, error in scored.errors.items():
            errors[row(scored)][class_].append(error)
    rows = tuple(
        (key, f"{len(of[COMPUTE])} of {captures[key]}", *(_spread(of.get(class_, [])) for class_ in CLASSES))
        for key, of in sorted(errors.items())
    )
    title = f"Error of the classes of step time by {name}: median and 95th percentile, in % of step time"
    return Table(title, (name, "captures", *CLASSES), rows)


def summary(scores: Iterable[Scored]) -> str:
    """Return the last line of a run."""
    scores = list(scores)
    grades = Counter(scored.grade for scored in scores)
    total = max(1, grades.total())
    good, blamed = 100 * _good(grades) / total, 100 * grades[Grade.FALSE_BLAME] / total
    worlds = len({scored.seed for scored in scores})
    return f"right or honest: {good:.1f} %, false blame: {blamed:.1f} %, worlds: {worlds}"


def fill_page(page: Path, scores: Sequence[Scored]) -> None:
    """Put the tables between the markers of a page, with date, version and worlds, and those of other tools."""
    first, last = min(scored.seed for scored in scores), max(scored.seed for scored in scores)
    head = f"{datetime.now(UTC):%d %B %Y}, traceviz {traceviz.__version__}, seeds {first} to {last}. {summary(scores)}."
    head = head.replace(". right", ". Right")
    body = "\n\n".join((head, *(table.to_markdown() for table in make_tables(scores))))
    text = _fill(page.read_text(encoding="utf-8"), MARKERS, body)
    other_tools = page.with_name(OTHER_TOOLS)
    if other_tools.is_file():
        start, end = MARKERS_OF_OTHER_TOOLS
        table = other_tools.read_text(encoding="utf-8").partition(start)[2].partition(end)[0]
        text = _fill(text, MARKERS_OF_OTHER_TOOLS, f"[{OTHER_TOOLS}]({OTHER_TOOLS}) has the rules.\n\n{table.strip()}")
    page.write_text(text, encoding="utf-8")


def _fill(text: str, markers: tuple[str, str], body: str) -> str:
    start, end = markers
    return re.sub(rf"{start}.*{end}", lambda _: f"{start}\n{body.strip()}\n\n{end}", text, flags=re.DOTALL)


def _hiding(scored: Scored) -> str:
    return "some do" if scored.hiding else "several causes, none do" if len(scored.gains) > 1 else "at most one cause"


def _good(grades: Counter[Grade]) -> int:
    return sum(grades[grade] for grade in GOOD)


def _part(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else ""


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def _spread(errors: list[float]) -> str:
    if not errors:
        return ""
    high = sorted(errors)[min(len(errors) - 1, round(0.95 * len(errors)))]
    return f"{100 * median(errors):.1f}, {100 * high:.1f}"
