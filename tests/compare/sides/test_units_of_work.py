"""The batch of a run: its tag, else what hooks in the program saw."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.compare.sides_of import report
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import batch_of, per_unit
from traceviz.compare.work.programs import Programs
from traceviz.compare.work.remarks import work_remarks
from traceviz.compare.work.settings import settings_changed
from traceviz.core.errors import UsageError
from traceviz.report import TAG, Fact, Facts, Section


def run(seen=None, tag=None):
    """Return a run of three steps."""
    facts = {"measures": [Fact("batch", "", seen, "number")], "run": [Fact(f"{TAG}batch", "batch", tag)]}
    known = [name for name, value in (("measures", seen), ("run", tag)) if value is not None]
    sections = tuple(Section(name, "", (Facts(tuple(facts[name])),)) for name in known)
    plain = report([100, 100, 100])
    return replace(plain, sections=(*plain.sections, *sections))


def side(*runs):
    return Side("side", runs)


@pytest.mark.parametrize(
    ("seen", "tag", "batch"),
    [(32.0, None, ("batch", "32")), (32.0, "64", ("batch", "64")), (None, "64", ("batch", "64")), (None, None, None)],
)
def test_the_batch_is_that_of_the_tag_else_what_hooks_saw(seen, tag, batch):
    assert batch_of(run(seen, tag)) == batch


def test_time_per_sample_needs_no_tag_where_hooks_saw_the_batch():
    scaled, _ = per_unit((side(run(32.0)), side(run(tag="8"))), "batch")
    assert scaled.per == Fraction(32)
    with pytest.raises(UsageError, match="has no tag 'batch'"):
        per_unit((side(run(32.0), run()),), "batch")


def test_steps_of_other_batches_do_other_work_and_the_change_is_named():
    base, new = side(run(32.0)), side(run(512.0))
    changed = [(change.key, change.base, change.new) for change in settings_changed(base, new)]
    assert changed == [("batch", "32", "512")]
    remarks = [remark.text for remark in work_remarks(base, new, Programs(), per_unit=False)]
    assert remarks == ["steps do different work (batch 32 against 512): compare the time per sample with --per batch"]
    assert settings_changed(base, base) == ()
