"""Sections that an analysis describes, as values for assertions."""

from traceviz.report import Facts, Grid


def grids(analysis, view):
    """Return the grids of the section, each with one dictionary per row."""
    found = (block for block in analysis.describe(analysis.run(view)).blocks if isinstance(block, Grid))
    return [[dict(zip([c.name for c in grid.columns], row, strict=True)) for row in grid.rows] for grid in found]


def facts(analysis, view):
    """Return the values of all facts of the section by key."""
    blocks = analysis.describe(analysis.run(view)).blocks
    return {fact.key: fact.value for block in blocks if isinstance(block, Facts) for fact in block.facts}
