"""``--format svg --figure NAME``: one figure as a file, and what is refused."""

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from tests.render.svg.drawn import parsed, titles
from traceviz.archive.runners.local import SerialRunner
from traceviz.cli.main import main
from traceviz.cli.options import check_destination
from traceviz.core.errors import UsageError

SLOW = "sample_traces/kineto/slow.pt.trace.json.gz"
REPAIRED = "sample_traces/kineto/repaired.pt.trace.json.gz"


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_report_writes_its_10_steps_and_says_what_the_text_says(tmp_path):
    path = tmp_path / "steps.svg"
    assert run("report", SLOW, "--format", "svg", "--figure", "steps", "-o", path).exit_code == 0
    drawn = path.read_text(encoding="utf-8")
    text = run("report", SLOW, "--section", "breakdown").stdout
    assert len(titles(drawn)) == 21
    assert "61.2 %" in text
    assert "input wait 61.2 %" in drawn


def test_without_a_name_the_first_figure_goes_to_stdout_as_wide_as_asked_for():
    result = run("report", SLOW, "--format", "svg", "--width", "500")
    assert parsed(result.stdout).get("width") == "500"
    assert titles(result.stdout)[0] == "Time of every step, by class"


def test_a_comparison_of_2_sides_has_their_classes(tmp_path):
    path = tmp_path / "classes.svg"
    assert run("compare", SLOW, REPAIRED, "--format", "svg", "--figure", "classes", "-o", path).exit_code == 0
    assert any("input wait" in title for title in titles(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--figure", "steps"], "--figure steps is a picture, and --format terminal shows none"),
        (["--figure", "stairs", "--format", "svg"], "There is no figure 'stairs'."),
        (["--figure", "classes", "--format", "svg"], "Figures 'classes' are of comparisons."),
        (
            ["--figure", "api", "--format", "svg"],
            "This report has no figure 'api': no call of the device's API was recorded.",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_exit_code_2(arguments, words):
    result = run("report", SLOW, *arguments)
    assert result.exit_code == 2
    assert words in str(result.stderr)


def test_a_terminal_gets_no_svg_and_a_file_does(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(UsageError, match=r"Cannot print an SVG to a terminal\. Write it to a file: -o figure\.svg\."):
        check_destination("svg", None, opens=False)
    check_destination("svg", tmp_path / "steps.svg", opens=False)
    check_destination("terminal", None, opens=False)


def test_help_names_the_figures_of_a_command_and_which_is_drawn_where_none_is_named():
    said = {
        ("report",): "Figure of an SVG: steps, utilization, quality, api (default: the first that exists).",
        ("compare",): "Figure of an SVG: curve, scaling, sides, classes, ",
        ("archive", "report"): "Figure of an SVG: frameworks, verdicts, ",
        ("archive", "trend"): "Figure of an SVG: trend.",
    }
    for command, words in said.items():
        assert words in " ".join(run(*command, "--help").stdout.split())


def test_a_shell_completes_the_1_figure_of_a_trace_that_begins_with_s():
    shell = ShellComplete(main, {}, "traceviz", "_TRACEVIZ_COMPLETE")
    assert [one.value for one in shell.get_completions(["report", "--figure"], "s")] == ["steps"]


def test_an_archive_of_2_traces_has_a_figure_and_so_has_a_trend_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("traceviz.archive.runners.choose.LocalRunner", lambda *_: SerialRunner())
    archive = tmp_path / "archive"
    assert run("archive", "add", archive, SLOW, REPAIRED).exit_code == 0
    stake = run("archive", "report", archive, "--format", "svg", "--figure", "at_stake")
    trend = run("archive", "trend", archive, "step_mean", "--format", "svg", "--width", "480")
    assert any(title.startswith("input-bound (TV101): ") for title in titles(stake.stdout))
    assert parsed(trend.stdout).get("width") == "480"
    assert len([title for title in titles(trend.stdout) if title.startswith("run · ")]) == 2
