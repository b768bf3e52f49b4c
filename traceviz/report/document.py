"""The report document: the results of the analyses, independent of the output format.

A :class:`Report` is one frozen value. Analyses fill sections with blocks (:class:`Facts`, :class:`Grid`, :class:`Bars`,
:class:`Timeline`, :class:`Series`, :class:`Prose`) and add findings; a renderer turns it into text. Every value has a
base unit (:data:`traceviz.core.units.Unit`), every fact and column a stable key. Scripts and comparisons join on keys,
never on wording.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal

from traceviz.core.errors import NotInReportError
from traceviz.core.lazy_module import Later
from traceviz.core.notebook_repr import Shown
from traceviz.core.units import Unit, Value, counted
from traceviz.report.verdicts import Cause, VerdictCode

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
"""Schema of a trend: a figure over many traces."""

BY_STEP, EVERY_STEP, IN_STEPS, BY_SHAPE = "By step", "Every step", "In steady steps", "By launch shape"
STATED, OVER_TIME = "Figures that the program stated", "Over time"
"""Titles of the grids for programs that comparisons, also of saved reports, are made from."""
CLASSES_OF_SIDES, PARTS_OF_SIDES = "Classes of every side", "Parts of the runs of every side"
AMOUNTS_OF_LANES = "Amounts at full height"
"""Title of the grids for programs that figures of comparisons are made from."""
MEASURES = "measures"
"""Title of the grid with the figures of a whole run in base units."""
STEADY_STEP_TIME = "steady step time"
"""``share_of`` of findings that lie in steady steps."""
TAG = "tag."
"""Prefix of the keys of facts that are tags of a run."""
SETTING = "setting."
"""Prefix of the keys of facts that are settings of a run: numbers of threads, environment variables."""

Audience = Literal["all", "machine"]
"""Audience of a block: all readers, or only programs that read the JSON report."""

Better = Literal["", "lower", "higher"]
"""Direction of a change that is a gain; empty if neither direction is."""

Certainty = Literal["measured", "at most", "suspected", "unexplained"]
"""Certainty that a candidate takes its time.

``measured``: recorded events cover it. ``at most``: an upper bound of the time that a change could save. ``suspected``:
signs point to it, but no event proves it. ``unexplained``: nothing was recorded.
"""


class Severity(StrEnum):
    """Importance of a finding or note; ordered from least to most by :attr:`rank`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Position from least (0) to most serious."""
        return list(Severity).index(self)

    @property
    def text(self) -> str:
        """The severity for readers: ``high``, ``medium``, ``info``. Programs read the value."""
        return {Severity.ERROR: "high", Severity.WARNING: "medium"}.get(self, self.value)


@dataclass(frozen=True, slots=True)
class Fact:
    """One named value: ``key`` is stable, ``label`` is readable, ``value`` is in base ``unit``."""

    key: str
    label: str
    value: Value
    unit: Unit = "text"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a :class:`Grid`.

    Args:
        name: Stable key of the column in the JSON report.
        label: Readable heading.
        unit: Base unit of the values.
        importance: 0 is always shown; higher numbers are dropped first if the page is narrow. Columns at 9 are for
            programs only and never shown in a terminal.
        bar: True to draw the value as a small bar next to it if the medium can: a ratio as a share of the whole, other
            units and changes relative to the column's largest.
        signed: True if the value is a change: it is shown with its sign, and its bar grows from an axis to the left or
            right.
        better: Direction of a gain; only for a signed column.
        additive: True if its values are parts of one whole, so that hidden rows have a sum. By default, shares with a
            bar are additive, and other columns are not.
        shorten: True if narrow pages may cut its text; false for a figure, an id or a text of a few words.
        restates: True if it repeats as text the numbers of other columns of the grid. CSV omits it.

    The last three are for renderers; the JSON report does not contain them.
    """

    name: str
    label: str
    unit: Unit = "text"
    importance: int = 1
    bar: bool = False
    signed: bool = False
    better: Better = ""
    additive: bool | None = field(default=None, compare=False)
    shorten: bool = field(default=True, compare=False)
    restates: bool = field(default=False, compare=False)


def hide_columns(columns: Iterable[Column], names: Collection[str]) -> tuple[Column, ...]:
    """Return the columns, with those of ``names`` reserved for programs."""
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
        title: The meaning of a row; may be empty if the section's title states it.
        fold_below: Pictures may fold trailing rows whose bar column is below this ratio into "other".
        audience: ``"machine"`` keeps the grid out of readable output (it is too long, and another grid of the section
            is better for readers); the JSON report has it.
        complete: True to show every row, however many there are.
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
        """Return all rows in base units (ns, bytes, ratios 0 to 1), by the stable keys of the columns."""
        values = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        columns = zip(self.columns, values, strict=True)
        return pl.DataFrame([pl.Series(column.name, list(rows), strict=False) for column, rows in columns])

    def to_pandas(self) -> pd.DataFrame:
        """Return the same for pandas; ``.attrs["units"]`` has the unit of each column."""
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

    ``whole`` names the denominator as text, for example ``"time of 57 steady steps"``.
    """

    title: str
    whole: str
    unit: Unit
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a timeline: a ratio 0 to 1 per equal slice of the span, ``None`` for slices that were not measured.

    ``whole`` is the amount of the ratio 1, with its unit; empty for plain ratios. ``parts`` add up to the values: key,
    label and ratios of each kind.
    """

    label: str
    values: tuple[float | None, ...]
    whole: str = ""
    parts: tuple[tuple[str, str, tuple[float, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """Ratios over time: ``lanes`` share ``start_ns`` to ``end_ns``, cut into equal slices."""

    title: str
    start_ns: int
    end_ns: int
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Prose:
    """A few readable sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a :class:`Series`: its name and its value, ``None`` if it was not measured."""

    label: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Level:
    """The typical value of a series from the point at ``start`` until the next level starts."""

    start: int
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """A figure from point to point, in base ``unit``, and the levels between which it changed.

    Args:
        points: In the order of time, or of their labels.
        levels: In order; the figure changed at the start of the second and each later level.
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
    """A problem worth fixing, with the evidence for it.

    Args:
        code: Code of its record (:mod:`traceviz.report.findings`), for ``traceviz explain``.
        slug: Name of the problem, from the record.
        severity: From the share of the run that is at stake.
        message: One sentence with the most important figures.
        evidence: The facts behind the message, with units.
        advice: Recommended actions, the most promising first.
        cost_ns: Time at stake: an upper bound of what the change can save in this capture.
        share: ``cost_ns`` as a share of the time that ``share_of`` names.
        heading: Name of the problem within a sentence, if the message opens with it. It is not in saved reports.
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
    heading: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Skipped:
    """An analysis that could not run. Missing data is not a good result.

    Args:
        slug: Slug of the analysis.
        reason: Why it could not run.
        tables: Required tables that the capture does not have; empty if there is another reason.
    """

    slug: str
    reason: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A problem of the trace: data that the reader dropped, repaired or could not see."""

    code: str
    severity: Severity
    message: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that a subject takes a time: sentences and tables about the subject print this one share.

    Args:
        key: Stable key of the subject: a class of step time, a kind of cause, or the name of a finding.
        label: Readable name.
        time_ns: Its time, summed over ranks.
        share: Its share of the time that ``share_of`` names.
        share_of: That time as text.
        certainty: Certainty of its time.
        evidence: Evidence for it.
    """

    key: str
    label: str
    time_ns: int
    share: float
    share_of: str
    certainty: Certainty
    evidence: str


@dataclass(frozen=True, slots=True)
class Candidate(Claim):
    """A claim about a cause. The cause in the first sentence is chosen from the candidates.

    Args:
        reason: Why it leads the first sentence, or why it does not.
        leads: True if it leads the first sentence.
    """

    reason: str
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first line of the report.

    Args:
        code: The verdict on the input, or that of a comparison or an archive; stable.
        sentence: The readable line, with all reservations.
        headline: One claim of at most 12 words, with one figure. Empty in documents other than reports of a trace.
        figure: That figure as in the headline; empty if nothing was measured.
        consequence: The possible gain, and the first thing to do; may be empty.
        caveats: Reservations, the most important first, each a sentence.
        cause: Key of the candidate that leads it, else :attr:`Cause.HEALTHY` or :attr:`Cause.UNKNOWN`.
        candidates: Candidate causes: the one that leads first, then the largest.
        parts: The exclusive parts of the judged time. They add up to all of it; candidates that are parts have the same
            share. Empty if nothing was judged, or no device was captured.
        capture_parts: The same for the captured time, if the headline is about a part of that.
    """

    code: VerdictCode
    sentence: str
    cause: str = Cause.UNKNOWN.value
    candidates: tuple[Candidate, ...] = ()
    parts: tuple[Claim, ...] = ()
    headline: str = ""
    figure: str = ""
    consequence: str = ""
    caveats: tuple[str, ...] = ()
    capture_parts: tuple[Claim, ...] = ()


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
        """Return one line with the subject and the size of the report."""
        source = next((fact.value for fact in self.run if fact.key == "source"), None)
        held = f"{counted(len(self.sections), 'section')}, {counted(len(self.findings), 'finding')}"
        return f"Report({f'{str(source)[:100]!r}, ' if source else ''}{held})"

    def section(self, slug: str) -> Section:
        """Return the section with this slug.

        Raises:
            NotInReportError: there is no such section; a ``KeyError`` that lists those that exist, or gives the reason.
        """
        for section in self.sections:
            if section.slug == slug:
                return section
        skipped = next((skip.reason for skip in self.skipped if skip.slug == slug), "")
        if skipped:
            raise NotInReportError(f"There is no section {slug}: {skipped.rstrip('.')}.")
        raise NotInReportError.unknown("section", slug, [section.slug for section in self.sections])

    def blocks(self, slug: str) -> Iterator[Block]:
        """Return the blocks of the section with this slug; empty if there is no such section."""
        return (block for section in self.sections if section.slug == slug for block in section.blocks)

    def facts(self, slug: str) -> Iterator[Fact]:
        """Return the facts of the section with this slug; empty if there is no such section."""
        return (fact for block in self.blocks(slug) if isinstance(block, Facts) for fact in block.facts)

    def grids(self, slug: str) -> Iterator[Grid]:
        """Return the grids of the section with this slug; empty if there is no such section."""
        return (block for block in self.blocks(slug) if isinstance(block, Grid))

    def fact(self, slug: str, key: str) -> Value:
        """Return the value of fact ``key`` in section ``slug``.

        Raises:
            NotInReportError: there is no such section or fact; it is a ``KeyError``.
        """
        for fact in self.facts(slug):
            if fact.key == key:
                return fact.value
        raise NotInReportError(f"The report has no fact {slug}.{key}.", fix=f"See report.section({slug!r}).")

    def rows(self, slug: str) -> list[dict[str, Value]]:
        """Return the rows of the first grid of section ``slug``, each as column name to value in base units.

        Raises:
            NotInReportError: there is no such section; a ``KeyError`` that lists those that exist, or gives the reason.
        """
        for block in self.section(slug).blocks:
            if isinstance(block, Grid):
                names = [column.name for column in block.columns]
                return [dict(zip(names, row, strict=True)) for row in block.rows]
        return []

    def grid(self, slug: str, title: str | None = None) -> Grid:
        """Return a table of section ``slug``: the one with this title, else the first.

        Raises:
            NotInReportError: there is no such section or table; it lists those that exist, or gives the reason.
        """
        self.section(slug)
        grids = list(self.grids(slug))
        if not grids:
            raise NotInReportError(f"Section {slug} has no table.", fix=f"See report.facts({slug!r}).")
        if title is None:
            return grids[0]
        for grid in grids:
            if grid.title == title:
                return grid
        raise NotInReportError.unknown(f"table of section {slug}", title, [grid.title for grid in grids])

    def to_polars(self, slug: str, title: str | None = None) -> pl.DataFrame:
        """Return all rows of :meth:`grid` as a polars ``DataFrame``, in base units.

        >>> report.to_polars("kernels").head(3)
        >>> report.to_polars("steps", title="Every step")

        Raises:
            UsageError: there is no such table.
        """
        return self.grid(slug, title).to_polars()

    def to_pandas(self, slug: str, title: str | None = None) -> pd.DataFrame:
        """Return the same for pandas; ``.attrs["units"]`` has the unit of each column.

        Raises:
            UsageError: there is no such table.
        """
        return self.grid(slug, title).to_pandas()
