"""Learning curves of compared runs: which are listed, and their figure with one axis for all."""

from tests.compare.sections_of import run, section, side, table
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document
from traceviz.render.figures.registry import figure
from traceviz.render.figures.values import CurvePoint
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import OVER_TIME, STATED


def learned(*losses, step=None):
    """Return a run that stated a loss once per epoch, the first at 100 ns, and a rate without a direction."""
    course = [("loss", n, None if step is None else n * step, 100 + 10 * n, loss) for n, loss in enumerate(losses)]
    rates = [("rate", n, n, 100 + n, 0.1) for n in range(len(losses))]
    stated = [("loss", None, "lower", losses[-1], None, None), ("rate", None, None, 0.1, None, None)]
    return run(
        9,
        section(
            "quality",
            table(STATED, "label split better last best best_epoch", *stated),
            table(OVER_TIME, "label epoch step start_ns value", *course, *rates),
        ),
    )


def test_runs_of_2_sides_are_lines_of_one_panel_scaled_to_their_values():
    sides = side("plain", learned(2.31, 2.30, 2.29)), side("warm-up", learned(2.31, 2.28, 2.25))
    drawn = figure(document(compare(sides)), "quality")
    (panel,) = drawn.panels
    assert (drawn.x.label, panel.axis.label, panel.axis.start) == ("epoch", "loss", 2.25)
    assert [line.label for line in panel.lines] == ["plain", "warm-up"]
    assert panel.lines[1].points == (CurvePoint(0, 2.31), CurvePoint(1, 2.28), CurvePoint(2, 2.25))


def test_repeats_of_a_side_have_one_colour_and_their_numbers():
    sides = side("a", learned(3, 2, 1), learned(4, 3, 2)), side("b", learned(3, 2, 1))
    (panel,) = figure(document(compare(sides)), "quality").panels
    assert [(line.key, line.label) for line in panel.lines] == [("a", "a, run 1"), ("b", "b"), ("a", "a, run 2")]


def test_losses_from_1000_to_1_have_a_logarithmic_axis():
    sides = side("a", learned(1000, 10, 1)), side("b", learned(1000, 100, 10))
    (panel,) = figure(document(compare(sides)), "quality").panels
    assert (panel.axis.log, panel.axis.start) == (True, None)


def test_curves_are_drawn_in_a_terminal_and_on_a_page():
    sides = side("plain", learned(3, 2, 1)), side("warm-up", learned(3, 1, 0.5))
    result = document(compare(sides))
    text = renderer("terminal").render(result, RenderOptions(80, sections=("quality",)))
    assert "• plain   × warm-up" in text
    assert "0.5 ┤" in text
    assert "Learning curves" in renderer("html").render(result, RenderOptions(80))


def test_one_side_that_stated_its_course_has_no_curves():
    sides = side("plain", learned(3, 2, 1)), side("silent", run(9))
    names = [grid.title for grid in document(compare(sides)).grids("quality")]
    assert OVER_TIME not in names
