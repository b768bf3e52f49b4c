"""The report document: the results of the analyses, independent of how they are shown.

A :class:`Report` is one frozen value. Analyses fill sections with blocks (:class:`Facts`, :class:`Grid`,
:class:`Bars`, :class:`Timeline`, :class:`Series`, :class:`Prose`) and rules add findings; a renderer turns it into
text. Every value carries its base unit (:data:`traceviz.core.units.Unit`), every fact and column a stable key, so that
scripts and comparisons join on keys and never on wording.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal

from traceviz.core.errors import UsageError
from traceviz.core.lazy_module import Later
from traceviz.core.notebook_repr import Shown
from traceviz.core.units import Unit, Value, counted

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
else:
    pl = Later("polars")

SCHEMA = "traceviz.report/1"
COMPARISON = "traceviz.comparison/1"
"""Schema of a comparison of several reports by :mod:`traceviz.compare`: the same document with other sections."""
LISTING = "traceviz.listing/1"
"""Schema of a list of traces of an archive."""
POPULATION = "traceviz.population/1"
"""Schema of a report on all traces of an archive."""
TREND = "traceviz.trend/1"
"""Schema of the course of a figure over many traces."""

BY_STEP, EVERY_STEP, IN_STEPS, BY_SHAPE = "By step", "Every step", "In steady steps", "By launch shape"
STATED, OVER_TIME = "Figures that the program stated", "Over time"
"""Titles of the grids for machines that comparisons, also of saved reports, are made from."""
CLASSES_OF_SIDES, PARTS_OF_SIDES = "Classes of every side", "Parts of the runs of every side"
AMOUNTS_OF_LANES = "Amounts at full height"
"""Titles of the grids for machines that figures of comparisons are made from."""
MEASURES = "measures"
"""Title of the grid with the figures of a whole run in base units."""
NO_INPUT_VERDICT = frozenset({"cannot judge", "not judged"})
"""Verdicts on the input that are none: it cannot be judged, or the program trains on nothing."""
TAG = "tag."
"""Prefix of the keys of facts that are tags of a run."""

Audience = Literal["all", "machine"]
"""Who a block is for: everybody, or only programs that read the JSON report."""

Better = Literal["", "lower", "higher"]
"""Which change is a gain; empty where neither is."""

Certainty = Literal["measured", "at most", "suspected", "unexplained"]
"""How sure it is that a candidate takes its time: recorded events cover it; it is a bound of what a change could save;
it looks like that, and nothing shows it; nothing was recorded."""


class Severity(StrEnum):
    """How much a finding or note matters; ordered from least to most by :attr:`rank`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Position from least (0) to most serious."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Fact:
    """One named value: ``key`` is stable, ``label`` is for people, ``value`` is in base ``unit``."""

    key: str
    label: str
    value: Value
    unit: Unit = "text"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a :class:`Grid`.

    Args:
        name: Stable key of the column in the JSON report.
        label: Heading for people.
        unit: Base unit of the values.
        importance: 0 is always shown; higher numbers are the first to go where the page is narrow.
            Columns at 9 are for machines only and never shown in a terminal.
        bar: Draw the value as a small bar beside it where the medium can: a ratio as a share of the whole, other
            units and changes against the largest of the column.
        signed: The value is a change: it is shown with its sign, and its bar grows from an axis to the left or right.
        better: Which change is a gain; only of a signed column.
    """

    name: str
    label: str
    unit: Unit = "text"
    importance: int = 1
    bar: bool = False
    signed: bool = False
    better: Better = ""


def hide_columns(columns: Iterable[Column], names: Collection[str]) -> tuple[Column, ...]:
    """The columns, with those of ``names`` for machines only."""
    return tuple(replace(column, importance=9) if column.name in names else column for column in columns)


Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """A short list of named values. For ``audience`` see :class:`Grid`."""

    facts: tuple[Fact, ...]
    audience: Audience = "all"


@dataclass(frozen=True, slots=True)
class Grid(Shown):
    """A table: ``rows`` are complete, their values in the order of ``columns``; renderers choose how many to show.

    Args:
        title: The meaning of a row; may be empty where the section's title tells it.
        fold_below: Pictures may fold trailing rows whose bar column is below this ratio into "other".
        audience: ``"machine"`` keeps the grid out of renderings for people (it is too long, and another grid of the
            section says it better); the JSON report has it.
        complete: Every row is shown, however many there are.
    """

    shown_as: ClassVar[str] = "grid"
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    fold_below: float = 0.0
    audience: Audience = "all"
    complete: bool = False

    def __post_init__(self) -> None:
        width = len(self.columns)
        if any(len(row) != width for row in self.rows):
            raise ValueError(f"every row of grid {self.title!r} needs {width} values")
        if len({column.name for column in self.columns}) != width:
            raise ValueError(f"two columns of grid {self.title!r} have the same name")

    def to_polars(self) -> pl.DataFrame:
        """All rows in base units (ns, bytes, ratios 0 to 1), by the stable keys of the columns."""
        values = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        columns = zip(self.columns, values, strict=True)
        return pl.DataFrame([pl.Series(column.name, list(rows), strict=False) for column, rows in columns])

    def to_pandas(self) -> pd.DataFrame:
        """The same for pandas; ``.attrs["units"]`` has the unit of each column."""
        frame = self.to_polars().to_pandas()
        frame.attrs["units"] = {column.name: column.unit for column in self.columns}
        return frame


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a whole: ``value`` in the unit of its :class:`Bars`, ``share`` of the whole 0 to 1."""

    key: str
    label: str
    value: Value
    share: float


@dataclass(frozen=True, slots=True)
class Bars:
    """Parts of one whole that add up to it: drawn as a single stacked bar with a legend.

    ``whole`` names the denominator in words, for example ``"time of 57 steady steps"``.
    """

    title: str
    whole: str
    unit: Unit
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a timeline: a ratio 0 to 1 per equal slice of the span, ``None`` where nothing was measured.

    ``whole`` is the amount that the ratio 1 stands for, with its unit; empty where the ratios speak for themselves.
    """

    label: str
    values: tuple[float | None, ...]
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Ratios over time: ``lanes`` share ``start_ns`` to ``end_ns``, cut into equal slices."""

    title: str
    start_ns: int
    end_ns: int
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Prose:
    """A few sentences for people."""

    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a :class:`Series`: its name and its value, ``None`` where nothing was measured."""

    label: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Level:
    """The typical value of a series from the point at ``start`` on, until the next level begins."""

    start: int
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """A figure from point to point, in base ``unit``, and the levels between which it changed.

    Args:
        points: In the order of time, or of their labels.
        levels: In order; the figure changed where the second and each later level starts.
        audience: See :class:`Grid`.
    """

    title: str
    unit: Unit
    points: tuple[Point, ...]
    levels: tuple[Level, ...] = ()
    audience: Audience = "all"

    def __post_init__(self) -> None:
        starts = [level.start for level in self.levels]
        if starts != sorted(set(starts)) or any(not 0 <= start < len(self.points) for start in starts):
            raise ValueError(f"levels of series {self.title!r} start at {starts}")


Block = Facts | Grid | Bars | Timeline | Series | Prose


@dataclass(frozen=True, slots=True)
class Section(Shown):
    """The result of one analysis. ``slug`` is stable; sections are in the order of the registry."""

    shown_as: ClassVar[str] = "section"
    slug: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth changing, with the evidence for it.

    Args:
        code: Code of the rule (:mod:`traceviz.report.rules`), for ``traceviz explain``.
        slug: Name of the problem, from the rule.
        severity: From the share of the run that is at stake.
        message: One sentence with the figures that matter.
        evidence: The facts behind the message, with units.
        advice: Things to do, the most promising first.
        cost_ns: Time at stake: an upper bound of what the change can save in this capture.
        share: ``cost_ns`` as a share of the time that ``share_of`` names.
    """

    code: str
    slug: str
    severity: Severity
    message: str
    evidence: tuple[Fact, ...]
    advice: tuple[str, ...]
    cost_ns: int
    share: float | None = None
    share_of: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An analysis that could not run: not measured is never the same as fine.

    Args:
        slug: Of the analysis.
        reason: Why it could not run.
        tables: Tables that it needs and the capture does not have; empty where there is another reason.
    """

    slug: str
    reason: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the reader dropped, repaired or could not see in the trace."""

    code: str
    severity: Severity
    message: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may take the time: one of those from which the cause in the first sentence is chosen.

    Args:
        key: Stable key: a class of step time, a kind of cause, or the name of a finding.
        label: The same for people.
        time_ns: Its time, summed over ranks.
        share: Its share of the time that ``share_of`` names.
        share_of: That time in words.
        certainty: How sure it is.
        evidence: What shows it.
        reason: Why it leads the first sentence, or why it does not.
        leads: Whether it does.
    """

    key: str
    label: str
    time_ns: int
    share: float
    share_of: str
    certainty: Certainty
    evidence: str
    reason: str
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first line of the report.

    Args:
        code: What is said of the input; stable.
        sentence: The line, for people.
        cause: Key of the candidate that leads it; ``healthy`` where nothing takes much time beside computing, empty
            where nothing can be said.
        candidates: What may take the time: the one that leads first, then the largest.
    """

    code: str
    sentence: str
    cause: str = ""
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Report(Shown):
    """The whole report on one trace."""

    shown_as: ClassVar[str] = "report"
    run: tuple[Fact, ...]
    verdict: Verdict
    sections: tuple[Section, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Note, ...] = ()
    schema: str = field(default=SCHEMA)

    def __repr__(self) -> str:
        """One line: what it is about, and what it holds."""
        source = next((fact.value for fact in self.run if fact.key == "source"), None)
        held = f"{counted(len(self.sections), 'section')}, {counted(len(self.findings), 'finding')}"
        return f"Report({f'{str(source)[:100]!r}, ' if source else ''}{held})"

    def section(self, slug: str) -> Section:
        """The section with this slug.

        Raises:
            KeyError: no such section; :attr:`skipped` may say why.
        """
        for section in self.sections:
            if section.slug == slug:
                return section
        raise KeyError(slug)

    def blocks(self, slug: str) -> Iterator[Block]:
        """Blocks of the section with this slug; none where there is no such section."""
        return (block for section in self.sections if section.slug == slug for block in section.blocks)

    def facts(self, slug: str) -> Iterator[Fact]:
        """Facts of the section with this slug; none where there is no such section."""
        return (fact for block in self.blocks(slug) if isinstance(block, Facts) for fact in block.facts)

    def grids(self, slug: str) -> Iterator[Grid]:
        """Grids of the section with this slug; none where there is no such section."""
        return (block for block in self.blocks(slug) if isinstance(block, Grid))

    def fact(self, slug: str, key: str) -> Value:
        """The value of fact ``key`` in section ``slug``.

        Raises:
            KeyError: no such section or fact.
        """
        for block in self.section(slug).blocks:
            if isinstance(block, Facts):
                for fact in block.facts:
                    if fact.key == key:
                        return fact.value
        raise KeyError(f"{slug}.{key}")

    def rows(self, slug: str) -> list[dict[str, Value]]:
        """Rows of the first grid of section ``slug``, each as column name to value in base units.

        Raises:
            KeyError: no such section.
        """
        for block in self.section(slug).blocks:
            if isinstance(block, Grid):
                names = [column.name for column in block.columns]
                return [dict(zip(names, row, strict=True)) for row in block.rows]
        return []

    def grid(self, slug: str, title: str | None = None) -> Grid:
        """A table of section ``slug``: the one with this title, else the first.

        Raises:
            UsageError: there is no such section or table; the message says which there are, or why there is none.
        """
        skipped = next((skip.reason for skip in self.skipped if skip.slug == slug), "")
        if skipped:
            raise UsageError(f"There is no section {slug}: {skipped.rstrip('.')}.")
        if slug not in {section.slug for section in self.sections}:
            raise UsageError.unknown("section", slug, [section.slug for section in self.sections])
        grids = list(self.grids(slug))
        if not grids:
            raise UsageError(f"Section {slug} has no table.", fix=f"See report.facts({slug!r}).")
        if title is None:
            return grids[0]
        for grid in grids:
            if grid.title == title:
                return grid
        raise UsageError.unknown(f"table of section {slug}", title, [grid.title for grid in grids])

    def to_polars(self, slug: str, title: str | None = None) -> pl.DataFrame:
        """All rows of :meth:`grid` as a polars ``DataFrame``, in base units.

        >>> report.to_polars("kernels").head(3)
        >>> report.to_polars("steps", title="Every step")

        Raises:
            UsageError: there is no such table.
        """
        return self.grid(slug, title).to_polars()

    def to_pandas(self, slug: str, title: str | None = None) -> pd.DataFrame:
        """The same for pandas; ``.attrs["units"]`` has the unit of each column.

        Raises:
            UsageError: there is no such table.
        """
        return self.grid(slug, title).to_pandas()
