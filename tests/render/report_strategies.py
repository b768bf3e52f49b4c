"""Arbitrary reports: any text, any value, every kind of block."""

import math

from hypothesis import strategies as st

from traceviz.core.units import UNITS
from traceviz.report import (
    Bar,
    Bars,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Lane,
    Level,
    Note,
    Point,
    Prose,
    Report,
    Section,
    Series,
    Severity,
    Skipped,
    Timeline,
    Verdict,
)

HOSTILE = (
    "void k[/x]",
    "[bold]",
    "<script>alert(1)</script>",
    "a | b \\| c",
    "two\nlines\r\nand three",
    "nul\0bell\a tab\t",
    "x" * 10_000,
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "核函数" * 40,
    "\u202egnp.exe\u202c",
    "e\u0301" + "\u0300" * 500,
    "❤\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "`tick` ``two`` *star* _under_ # 1. - @someone #12 ~~no~~ &amp; $x$",
    "\u2028\u2029\x85\x0b\x0c\x1c",
    "\udcff lone surrogate",
    "void a::(anonymous namespace)::k<b::c<(int)4>, d>(e::f const*, (g)h)",
    "((((",
    ")",
    "",
    " ",
    "-",
)

NATURAL = st.integers(0, 2**62)
TEXTS = st.text(max_size=40) | st.sampled_from(HOSTILE)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
RATIOS = st.floats(0, 1)
VALUES = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | FLOATS | TEXTS
UNIT_NAMES = st.sampled_from(UNITS)
SEVERITIES = st.sampled_from(Severity)


def tuples(strategy, size=4):
    return st.lists(strategy, max_size=size).map(tuple)


FACTS = st.builds(Fact, TEXTS, TEXTS, VALUES, UNIT_NAMES)
COLUMNS = st.builds(Column, TEXTS, TEXTS, UNIT_NAMES, st.integers(0, 9), st.booleans())


@st.composite
def grids(draw):
    columns = draw(st.lists(COLUMNS, max_size=9, unique_by=lambda column: column.name).map(tuple))
    rows = draw(tuples(st.tuples(*(VALUES for _ in columns)), size=14))
    return Grid(columns, rows, draw(TEXTS), draw(RATIOS), draw(st.sampled_from(["all", "machine"])))


@st.composite
def timelines(draw):
    start = draw(NATURAL)
    lanes = st.builds(Lane, TEXTS, tuples(st.none() | RATIOS, size=200))
    return Timeline(draw(TEXTS), start, start + draw(NATURAL), draw(tuples(lanes)))


@st.composite
def series(draw):
    points = draw(tuples(st.builds(Point, TEXTS, st.none() | FLOATS), 90))
    starts = draw(st.sets(st.integers(0, len(points) - 1), max_size=5)) if points else set()
    levels = tuple(Level(start, draw(FLOATS)) for start in sorted(starts))
    return Series(draw(TEXTS), draw(UNIT_NAMES), points, levels, draw(st.sampled_from(["all", "machine"])))


BLOCKS = st.one_of(
    st.builds(Facts, tuples(FACTS, 7), st.sampled_from(["all", "machine"])),
    grids(),
    st.builds(Bars, TEXTS, TEXTS, UNIT_NAMES, tuples(st.builds(Bar, TEXTS, TEXTS, VALUES, RATIOS), 14)),
    timelines(),
    series(),
    st.builds(Prose, TEXTS),
)

REPORTS = st.builds(
    Report,
    run=tuples(FACTS),
    verdict=st.builds(Verdict, TEXTS, TEXTS),
    sections=tuples(st.builds(Section, TEXTS, TEXTS, tuples(BLOCKS)), 3),
    findings=tuples(
        st.builds(
            Finding, TEXTS, TEXTS, SEVERITIES, TEXTS, tuples(FACTS), tuples(TEXTS), NATURAL, st.none() | RATIOS, TEXTS
        ),
        3,
    ),
    skipped=tuples(st.builds(Skipped, TEXTS, TEXTS, tuples(TEXTS)), 2),
    notes=tuples(st.builds(Note, TEXTS, SEVERITIES, TEXTS, st.none() | NATURAL), 2),
)


def hostile_report(name):
    """A report in which every text is ``name``, with every kind of block."""
    fact = Fact(name, name, name)
    columns = (
        Column("a", name),
        Column("b", name, "ns", 0),
        Column("share", name, "ratio", 2, bar=True),
        Column("d", name),
    )
    rows = tuple((name, 1_234_567, 1 / (index + 2), name) for index in range(14))
    bars = Bars(name, name, "ns", tuple(Bar(name, name, 100, 0.25) for _ in range(4)))
    timeline = Timeline(name, 0, 10**9, (Lane(name, (0.0, 0.5, None, 1.0)),))
    points = tuple(Point(name, value) for value in (1.0, None, 3.0))
    plotted = Series(name, "ns", points, (Level(0, 1.0), Level(2, 3.0)))
    blocks = (Facts((fact, fact)), Grid(columns, rows, name, 0.1), bars, timeline, plotted, Prose(name))
    return Report(
        run=(Fact("producer", name, name), fact),
        verdict=Verdict(name, name),
        sections=(Section(name, name, blocks),),
        findings=(Finding(name, name, Severity.ERROR, name, (fact,), (name, name), 100, math.pi / 4, name),),
        skipped=(Skipped(name, name),),
        notes=(Note(name, Severity.INFO, name, 2),),
    )
