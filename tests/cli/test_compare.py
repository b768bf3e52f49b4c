"""``traceviz compare`` as a user runs it, on the shipped samples: exit codes, messages, and their streams."""

import csv
import gc
import io
import json
import re
import shutil
import weakref
from pathlib import Path

import pytest
from click.testing import CliRunner

import traceviz
from traceviz import api
from traceviz.cli.main import main
from traceviz.cli.options import wants_color
from traceviz.compare.sides.load_sides import is_saved_report, runs_in
from traceviz.core.errors import UsageError
from traceviz.render.registry import RENDERERS, renderer
from traceviz.report import Column, Fact, Facts, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


@pytest.fixture(scope="module")
def saved(samples, tmp_path_factory):
    """Reports of two samples, saved as JSON: of a quarter of a second each, and read in milliseconds."""
    folder = tmp_path_factory.mktemp("saved")
    for name in ("healthy", "input_bound"):
        report = api.report_on(samples / "synthetic" / f"{name}.sqlite")
        (folder / f"{name}.json").write_text(api.to_text(report, "json"))
    return folder


def tagged_report(ms, **tags):
    columns = (Column("step", "Step", "id"), Column("process", "P", "id"), Column("dur_ns", "D", "ns"))
    rows = tuple((index, 0, ms * 1_000_000, ms * 1_000_000) for index in range(10))
    grid = Grid((*columns, Column("host_compute", "host compute", "ns")), rows, "By step", audience="machine")
    facts = Facts(tuple(Fact(f"tag.{key}", key, value) for key, value in tags.items()), audience="machine")
    sections = (Section("run", "Run", (facts,)), Section("breakdown", "Breakdown", (grid,)))
    return Report((), Verdict(VerdictCode.NOT_INPUT_BOUND, "Not input-bound."), sections)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Runs of two batch sizes, two of each, and one without the tag."""
    folder = tmp_path_factory.mktemp("study")
    for index, (ms, batch) in enumerate(((10, "32"), (11, "32"), (30, "128"), (33, "128"))):
        (folder / f"run{index}.json").write_text(api.to_text(tagged_report(ms, batch=batch), "json"))
    (folder / "other.json").write_text(api.to_text(tagged_report(5, gpu="none"), "json"))
    (folder / "notes.txt").write_text("not a run")
    return folder


def test_the_slow_pipeline_against_its_repair_is_3_times_as_slow_and_the_gain_is_input_wait(samples):
    kineto = samples / "kineto"
    done = run(kineto / "slow.pt.trace.json.gz", kineto / "repaired.pt.trace.json.gz", "--width", 80)
    assert done.exit_code == 0
    assert "▌ 2.79× faster: mean step 197 → 70.9 ms (−64.1 %" in done.stdout
    assert "93 % of the gain is input wait." in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


def test_a_trace_and_its_saved_report_are_the_same_to_the_nanosecond(samples, saved):
    done = run(saved / "healthy.json", samples / "synthetic" / "healthy.sqlite", "--format", "json")
    assert done.exit_code == 0
    stated = json.loads(done.stdout)
    assert stated["verdict"]["code"] == "no-change"
    (effect, attribution, kernels) = (
        next(section for section in stated["sections"] if section["slug"] == slug)
        for slug in ("effect", "attribution", "kernels")
    )
    facts = {fact["key"]: fact["value"] for fact in effect["blocks"][0]["facts"]}
    assert (facts["difference_ns"], facts["speedup"]) == (0, 1.0)
    for section in (attribution, kernels):
        rows = [row for block in section["blocks"] for row in block.get("rows", ())]
        assert {row["difference_ns"] for row in rows} == {0}


def test_a_comparison_is_no_base(saved, tmp_path):
    written = tmp_path / "c.json"
    base, new = saved / "healthy.json", saved / "input_bound.json"
    assert run(base, new, "--format", "json", "-o", written).exit_code == 0
    done = run(written, new)
    assert done.exit_code == 3
    assert "It is a comparison of reports." in done.stderr
    assert str(written) in done.stderr
    assert run(base, new, "-o", written).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "There is none."),
        (("healthy.json",), 2, "There is one side, healthy."),
        (("healthy.json", "absent.sqlite"), 3, "absent.sqlite"),
        (("healthy.json", "damaged.json"), 3, "damaged.json: This is not a JSON report."),
        (("healthy.json", "text.bin"), 3, "text.bin is not a trace that traceviz knows."),
        (("healthy.json", "no_limits.toml"), 3, "It is a text file."),
        (("healthy.json", "input_bound.json", "--rank", "0"), 2, "healthy.json is a saved report"),
        (("healthy.json", "input_bound.json", "--format", "yaml"), 2, "'yaml'"),
        (("healthy.json", "input_bound.json", "--base", "other"), 2, "no side 'other'"),
        (("healthy.json", "input_bound.json", "--base", "inputbound"), 2, "Did you mean 'input_bound'?"),
        (("healthy.json", ""), 2, "An empty text names nothing."),
        (("healthy.json", "newer.json"), 3, "newer.json: This is not a report of schema traceviz.report/1."),
        (("healthy.json", "--group", "new="), 2, "--group 'new=' names no runs."),
        (("healthy.json", "--group", "=input_bound.json"), 2, "--group '=input_bound.json' names no runs."),
        (("healthy.json", "--group", "new=input_bound.json,"), 2, "--group 'new=input_bound.json,' names no runs."),
        (("healthy.json", "--group", "new=in*.nothing"), 2, "No run matches the pattern 'in*.nothing'."),
        (("healthy.json", "input_bound.json", "--budgets", "no_limits.toml"), 2, "no_limits.toml sets no gate."),
        (("healthy.json", "input_bound.json", "--by", "batch"), 2, "No run has the tag batch."),
        (("healthy.json", "input_bound.json", "--by", ","), 2, "--by names no tag."),
        (("healthy.json", "input_bound.json", "--per", "batch"), 2, "healthy has no tag 'batch'"),
        (("healthy.json", "--group", "new"), 2, "--group 'new' names no runs."),
        (("healthy.json", "input_bound.json", "--by", "a", "--group", "b=c"), 2, "either groups or values of tags"),
        (("healthy.json", "input_bound.json", "--min-effect", "much"), 2, "'much' is not a share."),
        (("healthy.json", "input_bound.json", "--section", "kernel"), 2, "Did you mean 'kernels'?"),
        (("absent.sqlite", "input_bound.json", "--section", "nothing"), 2, "'nothing'"),
    ],
)
def test_what_cannot_be_compared_is_said_with_its_code(saved, monkeypatch, arguments, code, message):
    (saved / "damaged.json").write_bytes((saved / "healthy.json").read_bytes()[:5_000])
    (saved / "text.bin").write_text("garbage")
    (saved / "newer.json").write_text((saved / "healthy.json").read_text().replace("report/1", "report/2", 1))
    (saved / "no_limits.toml").write_text("[budgets]\n")
    monkeypatch.chdir(saved)
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr


def test_a_report_saved_in_part_says_why_it_has_no_steps(samples, saved, tmp_path):
    parts = tmp_path / "parts.json"
    api_only = api.report_on(samples / "synthetic" / "healthy.sqlite", sections=["cuda_api"])
    parts.write_text(api.to_text(api_only, "json"))
    done = run(parts, saved / "healthy.json", "--require-verdict")
    assert done.exit_code == 4
    assert "parts has no steps: only some sections were saved, with --section." in done.stderr


def test_a_side_without_steps_is_printed_and_ends_with_4_where_a_verdict_is_required(samples, saved):
    arguments = saved / "healthy.json", samples / "synthetic" / "nvprof_summary.csv"
    assert run(*arguments).exit_code == 0
    done = run(*arguments, "--require-verdict")
    assert done.exit_code == 4
    assert "Cannot judge: nvprof_summary has no steps" in done.stdout
    assert "error: Not every side can be judged.\n  nvprof_summary has no steps" in done.stderr


def test_a_regression_of_85_percent_fails_a_gate_of_5(saved):
    base, new = saved / "healthy.json", saved / "input_bound.json"
    done = run(base, new, "--fail-on-regression", "5%")
    assert done.exit_code == 1
    assert "regression: +85.0 %" in done.stderr
    assert "Gates ──" in done.stdout
    assert run(new, base, "--fail-on-regression", "5%").exit_code == 0
    assert run(base, new, "--fail-on-regression", "90%").exit_code == 0


@pytest.mark.parametrize("name", ["terminal", "markdown", "json", "junit", "github"])
def test_a_gate_is_shown_whatever_sections_are_asked_for(saved, name):
    arguments = saved / "healthy.json", saved / "input_bound.json", "--fail-on-regression", "5%", "--section", "effect"
    done = run(*arguments, "--format", name)
    assert done.exit_code == 1
    assert "+85.0 %, slower" in done.stdout.replace("%25", "%")
    assert "Where the difference lies" not in done.stdout or name in {"junit", "github"}


def test_every_gate_that_fails_has_a_line_of_its_own_on_stderr(saved):
    budgets = "--budget", "input_wait<=5%", "--fail-on", "error", "--fail-on-regression", "5%"
    done = run(saved / "healthy.json", saved / "input_bound.json", *budgets)
    assert done.stderr.splitlines() == [
        "error: 3 of 3 gates failed.",
        "  regression: +85.0 %, slower, and the limit is < 5.0 % longer steps.",
        "  findings: 1 (TV101 input-bound); no error is allowed.",
        "  input_wait: 39.8 %, and the limit is <= 5%.",
    ]


def test_help_names_every_format():
    for command in ("compare", "report"):
        text = " ".join(CliRunner().invoke(main, [command, "--help"]).stdout.split())
        assert "csv, github, html, json, junit, markdown or svg" in text
    assert [renderer(name).name for name in RENDERERS.names()] == [
        *("csv", "github", "html", "json", "junit", "markdown", "svg", "terminal")
    ]


def test_groups_are_sides_of_several_runs_and_the_one_called_base_is_the_base(saved):
    healthy, slow = saved / "healthy.json", saved / "input_bound.json"
    done = run(slow, "--group", f" base ={healthy},{healthy}", "--format", "csv")
    assert done.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["side"], row["runs"], row["steps"]) for row in rows] == [
        ("base", "2", "58"),
        ("input_bound", "1", "29"),
    ]
    assert float(rows[1]["mean_ns"]) / float(rows[0]["mean_ns"]) == pytest.approx(1.8505, abs=1e-4)
    assert [(row["verdict"], row["speedup [factor]"]) for row in rows] == [("base", ""), ("cannot judge", "")]  # copies
    twice = run(
        "--group", f"a={healthy}", "--group", f"b={slow}", "--group", f"a={saved}/heal*.json", "--format", "csv"
    )
    assert [row["runs"] for row in csv.DictReader(io.StringIO(twice.stdout))] == ["2", "1"]


def test_a_folder_of_runs_by_batch_is_a_table_of_2_sides_per_sample(study):
    done = run(study, "--by", "batch", "--per", "batch", "--format", "csv")
    assert done.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["tag.batch"], row["runs"]) for row in rows] == [("32", "2"), ("128", "2")]
    means = [(10e6 * 11e6) ** 0.5 / 32, (30e6 * 33e6) ** 0.5 / 128]  # geometric, of the means of the runs
    assert [float(row["mean_ns"]) for row in rows] == pytest.approx(means)
    assert float(rows[1]["ratio"]) == pytest.approx(-1 / 4)
    assert [(row["verdict"], row["speedup [factor]"]) for row in rows] == [("base", ""), ("cannot judge", "")]
    page = run(study, "--by", "batch", "--per", "batch", "--base", "128", "--width", 80)
    assert "1 run without a tag of batch left out: other.json." in " ".join(page.stdout.split())
    assert [line.split()[0] for line in page.stdout.splitlines() if line.startswith(("  32 ", "  128 "))] == [
        "128",
        "32",
    ]


@pytest.mark.parametrize(
    ("paths", "base"),
    [(("run2.json", "run0.json"), "batch=128, the first given"), (("",), "batch=32, the smallest")],
)
def test_the_base_of_runs_that_are_named_is_the_first_of_them_and_of_a_folder_the_smallest(study, paths, base):
    page = run(*(study / path for path in paths), "--by", "batch", "--per", "batch", "--width", 120)
    assert f"All are compared with {base}: --base chooses another." in page.stdout


def test_a_folder_is_taken_apart_where_it_holds_runs_or_reports(study, samples):
    assert [path.name for path in runs_in(study)] == ["other.json", *(f"run{index}.json" for index in range(4))]
    assert runs_in(samples / "kineto" / "two_ranks") == (samples / "kineto" / "two_ranks",)
    assert runs_in(study / "run0.json") == (study / "run0.json",)


@pytest.mark.parametrize("arguments", [("{}",), ("{}", "{}"), ("{}/run0.json", "--group", "new={}")])
def test_a_folder_of_several_runs_is_no_side_and_none_is_picked(study, arguments):
    done = run(*(argument.format(study) for argument in arguments))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{study} holds 5 runs: other.json, run0.json, run1.json, ...." in done.stderr
    assert "--by TAG" in done.stderr


def test_a_folder_of_one_run_is_that_run(study, tmp_path):
    (tmp_path / "only.json").write_bytes((study / "run0.json").read_bytes())
    done = run(tmp_path, study / "run2.json", "--same-work", "--format", "json")
    assert json.loads(done.stdout)["verdict"]["code"] == "slower"


@pytest.mark.parametrize("trace", ["synthetic/torch_four_ranks_straggler", "xplane/keras_tensorboard"])
def test_a_report_saved_beside_a_trace_does_not_take_its_place(samples, saved, tmp_path, trace):
    folder = tmp_path / "trace"
    shutil.copytree(samples / trace, folder)
    shutil.copy(saved / "healthy.json", folder)
    done = run(folder, samples / trace, "--format", "json")
    assert json.loads(done.stdout)["verdict"]["code"] == "no-change"


def test_a_tag_that_is_no_list_of_tags_is_not_taken_apart(saved):
    with pytest.raises(UsageError, match=r"Write by=\['batch'\]\."):
        api.compare(saved, by="batch")


def test_known_sides_of_several_tags_are_told_apart_by_more_than_a_comma(study):
    done = run(study, "--by", "batch,batch", "--base", "64")
    assert "Known: batch=128, batch=32." in done.stderr
    with pytest.raises(UsageError, match=r"Known: jax, 8; torch, 8\."):
        raise UsageError.unknown("side", "keras", ("torch, 8", "jax, 8"))


def test_a_saved_report_is_known_by_its_schema_however_its_keys_are_sorted(study, tmp_path, samples):
    stated = json.loads((study / "run0.json").read_text())
    other = tmp_path / "sorted.json"
    other.write_text("\ufeff\n" + json.dumps(stated, sort_keys=True))
    assert is_saved_report(other)
    assert not is_saved_report(samples / "synthetic" / "two_ranks.sqlite")
    assert not is_saved_report(tmp_path)
    assert run(other, study / "run2.json", "--same-work").exit_code == 0


def test_what_an_analysis_left_in_cycles_is_gone_when_the_next_side_is_read(samples, monkeypatch):
    class Tables:
        pass

    left, seen = [], []

    def report_on(path, **_):
        seen.append([one() is not None for one in left])
        tables = Tables()
        tables.itself = tables
        left.append(weakref.ref(tables))
        return tagged_report(10)

    monkeypatch.setattr(api, "report_on", report_on)
    gc.disable()
    try:
        api.compare(*(samples / "synthetic" / f"{name}.sqlite" for name in ("healthy", "input_bound", "launch_bound")))
    finally:
        gc.enable()
    assert seen == [[], [False], [False, False]]


def test_the_package_compares_runs_under_a_name_of_its_own():
    assert traceviz.compare_runs is api.compare


def test_a_saved_report_is_no_trace_and_the_command_that_takes_it_is_named(saved):
    done = CliRunner().invoke(main, ["report", str(saved / "healthy.json")])
    assert done.exit_code == 3
    assert "It is a report that traceviz saved." in done.stderr
    assert "traceviz compare" in done.stderr


def test_an_unreadable_side_is_named_by_its_path(saved, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_bytes(
            (saved / "healthy.json").read_bytes()[: None if name == "a" else 9_000]
        )
    done = run(tmp_path / "a" / "run.json", tmp_path / "b" / "run.json")
    assert done.exit_code == 3
    assert str(tmp_path / "b" / "run.json") in done.stderr
    assert "Copy it again, or write it with" in done.stderr


def test_a_stdout_of_another_encoding_gets_the_page_with_question_marks(saved):
    runner = CliRunner(charset="latin-1")
    done = runner.invoke(main, ["compare", str(saved / "healthy.json"), str(saved / "input_bound.json")])
    assert done.exit_code == 0
    assert "1.85× slower: mean step 4.38 ? 8.10 ms" in done.stdout_bytes.decode("latin-1")


@pytest.mark.parametrize(
    ("environment", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_show_them(monkeypatch, environment, colored):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color() is colored
    assert not wants_color(Path("report.txt"))


def test_csv_has_no_figures_in_words(saved):
    done = run(saved / "input_bound.json", saved / "healthy.json", "--format", "csv")
    assert "−" not in done.stdout
    (_, new) = csv.DictReader(io.StringIO(done.stdout))
    assert (float(new["low_ratio"]), float(new["high_ratio"])) == (
        pytest.approx(-0.464, abs=2e-3),
        pytest.approx(-0.457, abs=6e-3),
    )


def test_python_compares_the_same(saved):
    comparison = api.compare(saved / "healthy.json", saved / "input_bound.json")
    assert comparison.shown.judgement.effect is not None
    assert comparison.shown.judgement.effect.ratio == pytest.approx(0.8505, abs=1e-4)
    assert api.to_text(comparison, "markdown").startswith("# Comparison\n\n> **1.85× slower: mean step 4.38 → 8.10 ms")


@pytest.fixture
def with_crash(study, tmp_path):
    """The study, and a run of batch 512 that crashed before anything was recorded."""
    folder = shutil.copytree(study, tmp_path / "study")
    manifest = {"kind": "traceviz.run", "version": 1, "status": "failed", "tags": {"batch": "512", "gpu": "none"}}
    (folder / "run9").mkdir()
    ending = {"outcome": "failed", "reason": "out of memory"}
    (folder / "run9" / "manifest.json").write_text(json.dumps({**manifest, "ending": ending}))
    return folder


def test_a_curve_is_printed_with_the_table_of_sides_alone_and_a_crash_is_one_of_its_3_points(with_crash):
    done = run(with_crash, "--curve", "batch", "--width", 80)
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines() if "─" in line and "└" not in line] == ["Time", "Mean"]
    assert re.search(r"\n +512 +1 +- .* crashed: out of memory\n", done.stdout)
    assert "Best is batch=128: time per sample 246 µs" in done.stdout


def test_a_curve_begins_with_its_smallest_value_whichever_run_is_given_first(study):
    runs = [study / f"run{number}.json" for number in (3, 2, 1, 0)]
    assert run(*runs, "--by", "batch", "--width", 80).stdout.startswith("batch=128 → batch=32")
    assert run(*runs, "--curve", "batch", "--width", 80).stdout.startswith("batch=32 → batch=128")


def test_csv_of_a_curve_is_its_3_points(with_crash):
    rows = list(csv.DictReader(io.StringIO(run(with_crash, "--curve", "batch", "--format", "csv").stdout)))
    assert [(row["tag.batch"], row["verdict"]) for row in rows[::2]] == [
        ("32", "as good"),
        ("512", "crashed: out of memory"),
    ]
    assert float(rows[1]["value [ns]"]) == pytest.approx(245_807, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ("--curve", "batch", "--section", "scaling"),
            "Section scaling is a table that is made where it is asked for.\n  Add --scaling TAG.",
        ),
        (("--by", "batch", "--cross"), "A cross table takes two tags.\n  --by names batch only."),
        (("--by", "batch", "--curve", "words"), "No run has the tags batch, words."),
        (("--by", "batch", "--measure", "accuracy"), "--measure accuracy is shown in tables, and there is none."),
    ],
)
def test_a_table_that_1_option_alone_does_not_make_is_refused(with_crash, options, why):
    done = run(with_crash, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in done.stderr


def test_a_page_of_two_traces_has_flame_graphs_of_their_difference_and_one_of_saved_reports_has_none(samples, saved):
    traces = [str(samples / "kineto" / f"{name}.pt.trace.json.gz") for name in ("slow", "repaired")]
    drawn = run(*traces, "--format", "html")
    assert drawn.exit_code == 0
    text = re.search(r'<script type="application/json" id="tv-flame-data">(.*?)</script>', drawn.stdout)[1]
    flame = json.loads(text)["flames"][0]
    assert flame["whole"] == "one step on average: 12 steady steps, and 10 steady steps of the base"
    tops = [node for node, parent in enumerate(flame["parents"]) if parent < 0]
    sides = [sum(column[node] for column in flame[side] for node in tops) for side in ("base", "times")]
    assert [round(side / 1e6) for side in sides] == [197, 71]
    reports = [str(saved / f"{name}.json") for name in ("healthy", "input_bound")]
    assert 'id="tv-flame-data"' not in run(*reports, "--format", "html").stdout
