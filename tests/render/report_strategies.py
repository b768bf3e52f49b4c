"""Arbitrary reports: any text, any value, every kind of block."""

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
from traceviz.testing import HOSTILE_NAMES

NATURAL = st.integers(0, 2**62)
TEXTS = st.text(max_size=40) | st.sampled_from(HOSTILE_NAMES)
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
