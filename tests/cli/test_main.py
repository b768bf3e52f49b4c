"""The command line as a user sees it: exit codes, what goes to stdout and what to stderr."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from tests.analyses.builders import tables
from tests.analyses.test_contract import busy_trace
from tests.support.command import run, run_process
from traceviz import api
from traceviz.cli.main import main
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select
from traceviz.trace.tables import load, save
from traceviz.version import __version__


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "trace"
    save(busy_trace(), folder)
    return folder


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from traceviz.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'polars', 'pyarrow', 'rich', 'numpy', 'pandas', 'tensorflow', 'adbc_driver_sqlite'}\n"
        "commands = {f'traceviz.cli.{name}' for name in main.commands}\n"
        "print(sorted((heavy | commands) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", main.commands)
def test_a_listing_says_of_a_command_what_the_command_says_of_itself(name):
    listed, command = main.commands[name], main.load(name)
    assert command.name == name
    assert listed.get_short_help_str(1000) == command.get_short_help_str(1000)


def test_version_and_help_answer():
    assert run_process("--version").stdout.startswith(f"traceviz, version {__version__}")
    assert {"report", "convert", "scrub", "explain"} <= set(run("--help").stdout.split())


def test_a_report_on_a_pipe_has_no_colour_and_fits_100_columns(trace):
    done = run_process("report", trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "Input-bound: steps wait for data 33.0 % of their time" in done.stdout


@pytest.mark.parametrize(
    ("words", "columns", "longest"),
    [
        (["--width", "1000"], "", 1000),
        ([], "99999999999", 1000),
        ([], "nonsense", 100),
        ([], "-5", 100),
        ([], "1", 40),
        (["--top", "99999999999999999999"], "60", 60),
    ],
)
def test_a_page_is_forty_to_a_thousand_columns_wide(trace, words, columns, longest):
    done = run("report", trace, *words, env={"COLUMNS": columns})
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) == longest


@pytest.mark.parametrize("command", [["report"], ["compare"], ["doctor"], ["archive", "list"], ["archive", "query"]])
def test_a_wider_page_is_refused_before_anything_is_read(command):
    for width in ("39", "1001", "100000000"):
        done = run(*command, "nothing", "--width", width)
        assert (done.returncode, "not in the range 40<=x<=1000" in done.stderr) == (2, True)


def test_width_is_kept(trace):
    done = run("report", trace, "--width", 80)
    assert 70 < max(map(len, done.stdout.splitlines())) <= 80


def test_columns_of_the_environment_are_respected(trace):
    done = run("report", trace, env={"COLUMNS": "80"})
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_has_the_documented_shape(trace):
    document = json.loads(run("report", trace, "--format", "json").stdout)
    assert document["schema"] == "traceviz.report/1"
    assert document["verdict"]["code"] == "highly-input-bound"
    assert [section["slug"] for section in document["sections"]][:3] == ["measures", "capture", "breakdown"]
    assert {"run", "findings", "skipped", "notes"} <= set(document)


def test_one_section_only(trace):
    document = json.loads(run("report", trace, "--section", "cuda_api", "--format", "json").stdout)
    assert [section["slug"] for section in document["sections"]] == ["cuda_api"]


def test_why_prints_only_the_candidates_and_needs_all_sections(trace):
    done = run("report", trace, "--why")
    assert "Why this headline" in done.stdout
    assert "Step time breakdown" not in done.stdout
    refused = run("report", trace, "--why", "--section", "breakdown")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_what_if_shows_the_headline_and_the_predictions_alone(samples):
    done = run("report", samples / "synthetic" / "input_bound.sqlite", "--what-if")
    assert "1.6 to 1.9× faster" in " ".join(done.stdout.replace("▌", " ").split())
    assert "What if a cause vanished" in done.stdout
    assert "Findings" not in done.stdout
    refused = run("report", samples / "synthetic" / "input_bound.sqlite", "--what-if", "--all")
    assert refused.returncode == 2


def test_the_first_screen_is_one_and_all_prints_every_section(trace):
    first, whole = (run("report", trace, "--width", 80, *option).stdout for option in ((), ("--all",)))
    assert len(first.splitlines()) <= 60
    assert len(whole.splitlines()) > 150
    assert "all 26 sections: --all · one: --section NAME" in first
    assert "\nWhere the time went, share of" not in whole
    assert "Step time breakdown" in whole
    refused = run("report", trace, "--all", "--section", "steps")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_markdown_has_the_same_first_screen(trace):
    first, whole = (run("report", trace, "--format", "markdown", *option).stdout for option in ((), ("--all",)))
    headings = [line for line in first.splitlines() if line.startswith(("# ", "## "))]
    assert headings[:3] == ["# Trace report", "## Findings", "## Input pipeline"]
    assert len(headings) <= 4
    assert whole.count("\n## ") > 20


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("input", "'input_pipeline'"),
        ("gaps", "'idle_gaps'"),
        ("GPU", "'gpu_efficiency'"),
        ("kernal", "'kernels'"),
        ("calls", "'os_calls'"),
        ("device-use", "'device_use'"),
        ("note", "'notes'"),
    ],
)
def test_an_unknown_section_suggests_the_one_that_was_meant_and_lists_all(trace, name, meant):
    done = run("report", trace, "--section", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Did you mean {meant}" in done.stderr
    assert "cuda_api" in done.stderr


def test_findings_and_notes_are_sections_of_their_own(trace):
    findings = run("report", trace, "--section", "findings").stdout
    assert ("TV101 input-bound" in findings, "Step time breakdown" in findings) == (True, False)
    both = json.loads(run("report", trace, "--section", "notes", "--section", "steps", "--format", "json").stdout)
    assert [section["slug"] for section in both["sections"]] == ["steps"]
    assert (both["findings"], both["verdict"]["code"]) == ([], "highly-input-bound")


def test_an_unknown_format_is_refused_before_the_work(tmp_path):
    done = run("report", tmp_path / "missing", "--format", "pdf")
    assert done.returncode == 2
    assert "terminal" in done.stderr


def test_a_window_is_analysed_and_said(trace):
    done = run("report", trace, "--from", "100us", "--to", "400us")
    assert "Only a part was analysed: from 0.0001 s to 0.0004 s" in " ".join(done.stdout.split())


@pytest.mark.parametrize("time", ["soon", "1.5m", "1e999s", "-1s"])
def test_a_time_that_is_none_is_refused(trace, time):
    done = run("report", trace, f"--from={time}")
    assert done.returncode == 2
    assert "is not a time" in done.stderr


def test_an_invalid_pattern_is_refused(trace):
    done = run("report", trace, "--step-marker", "(")
    assert done.returncode == 2
    assert "regular expression" in done.stderr


def test_a_report_goes_to_a_file_and_is_not_overwritten(trace, tmp_path):
    target = tmp_path / "report.md"
    assert run("report", trace, "--format", "markdown", "-o", target).stdout == ""
    first = target.read_text()
    again = run("report", trace, "-o", target)
    assert (again.returncode, target.read_text()) == (2, first)
    assert "--force" in again.stderr
    assert run("report", trace, "-o", target, "--force").returncode == 0
    assert target.read_text() != first
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_that_cannot_be_written_is_said(trace, tmp_path):
    done = run("report", trace, "-o", tmp_path / "missing" / "report.txt")
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


def test_a_missing_folder_or_a_directory_is_said_before_the_work(trace, tmp_path):
    done = run("report", trace, "-o", tmp_path, "--force")
    assert (done.returncode, "not a regular file" in done.stderr) == (2, True)


def test_the_trace_itself_is_never_the_output(trace, tmp_path):
    copy = tmp_path / "trace.sqlite"
    copy.write_bytes(b"SQLite format 3\0")
    done = run("report", copy, "-o", copy, "--force")
    assert (done.returncode, "is the trace itself" in done.stderr) == (2, True)
    assert copy.read_bytes() == b"SQLite format 3\0"
    done = run("convert", trace, "-o", trace, "--force")
    assert (done.returncode, "is the trace itself" in done.stderr) == (2, True)


def test_a_full_disk_behind_stdout_is_an_error_and_no_traceback(trace):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "traceviz", "report", str(trace)]
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "cannot be written to stdout" in done.stderr


@pytest.mark.parametrize("option", [["--device", "0"], ["--device", "1"], ["--rank", "0"], ["--rank", "1"]])
def test_one_of_two_ranks_or_devices_is_analysed_alone(option, samples):
    done = run("report", samples / "synthetic" / "two_ranks.sqlite", *option, "--format", "json")
    assert done.returncode == 0
    sections = {section["slug"]: section for section in json.loads(done.stdout)["sections"]}
    assert len(sections["device_use"]["blocks"][1]["rows"]) == 1
    assert sections["breakdown"]["blocks"][0]["facts"][1]["value"] > 0


def test_convert_writes_a_folder_that_reports_the_same(trace, tmp_path):
    done = run("convert", trace, "-o", tmp_path / "copy")
    assert done.returncode == 0
    assert "kernels 12" in done.stdout
    source, copy = (json.loads(run("report", path, "--format", "json").stdout) for path in (trace, tmp_path / "copy"))
    assert (source["run"].pop("source"), copy["run"].pop("source")) == ("trace", "copy")
    for document in (source, copy):
        del document["run_facts"]
    assert copy == source


def test_convert_refuses_to_replace_what_is_not_its_own(trace, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    done = run("convert", trace, "-o", tmp_path / "photos", "--force")
    assert done.returncode == 2
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"cat"


def test_no_steps_and_a_required_verdict_is_exit_4(tmp_path):
    save(tables(kernels=[(0, 10, "k"), (20, 10, "m")]), tmp_path / "t")
    assert run("report", tmp_path / "t").returncode == 0
    done = run("report", tmp_path / "t", "--require-verdict")
    assert done.returncode == 4
    assert "no steps were found" in done.stderr


def test_serving_is_a_verdict(tmp_path):
    save(tables(nvtx=[(0, 80, "step[DECODE bs=32]")]), tmp_path / "t")
    done = run("report", tmp_path / "t", "--require-verdict")
    assert done.returncode == 0
    assert "Serving with SGLang: 1 decode step of 32 requests, 80 ns." in done.stdout
    gated = run("report", tmp_path / "t", "--budget", "input_share<=5%")
    assert gated.returncode == 4


def test_a_missing_file_is_exit_3(tmp_path):
    done = run_process("report", tmp_path / "none.nsys-rep")
    assert (done.returncode, done.stdout) == (3, "")
    assert "none.nsys-rep" in done.stderr


def test_explain_prints_a_rule_and_lists_all():
    text = run("explain", "TV301").stdout
    assert "allocation-churn" in text
    assert "When it misleads" in text
    assert run("explain", "input-bound").stdout.startswith("TV101")
    assert run("explain").stdout.count("\n") >= 11
    assert run("explain", "TV000").returncode == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell):
    assert "_TRACEVIZ_COMPLETE" in run("completion", shell).stdout


def test_a_closed_pipe_is_no_traceback(trace):
    piped = f"{sys.executable} -m traceviz report {trace} --top 100 | head -1"
    done = subprocess.run(piped, check=False, shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    """The reader blocks on a pipe without a writer; the signal arrives while the output folder is half made."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import sys, time\n"
        "from traceviz.trace import tables\n"
        "def wait(*a, **k):\n"
        "    print('waiting', file=sys.stderr, flush=True)\n"
        "    time.sleep(60)\n"
        "tables.write_tables = wait\n"
        "from traceviz.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    save(busy_trace(), tmp_path / "t")
    command = [sys.executable, slow, "convert", tmp_path / "t", "-o", tmp_path / "out"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr.readline() == "waiting\n"
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
    assert child.returncode == 130
    assert "Traceback" not in rest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["slow.py", "t"]


def test_hostile_names_survive_the_whole_way(tmp_path):
    names = [
        "void k[/x]",
        "[bold]",
        "<script>alert(1)</script>",
        "a|b",
        "two\nlines",
        "nul\0",
        "x" * 10_000,
        "\x1b[31mred",
    ]
    save(tables(kernels=[(i * 10, 5, name) for i, name in enumerate(names)]), tmp_path / "t")
    assert load(tmp_path / "t").rows("kernels") == len(names)
    for format_name in ("terminal", "markdown", "json"):
        done = run("report", tmp_path / "t", "--format", format_name, "--top", 20)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        assert "\0" not in done.stdout


@pytest.fixture(scope="module")
def ranks(tmp_path_factory, samples):
    """The two ranks of a sample as a trace each: rank1 and rank0."""
    whole = api.open_trace(samples / "synthetic" / "two_ranks.sqlite")
    folder = tmp_path_factory.mktemp("ranks")
    for rank in (0, 1):
        save(select(whole, Selection(rank=rank)), folder / f"rank{rank}")
    return folder / "rank1", folder / "rank0"


def test_two_ranks_make_one_report_that_equals_that_of_their_common_trace(ranks, samples):
    apart = json.loads(run("report", *ranks, "--format", "json").stdout)
    whole = json.loads(run("report", samples / "synthetic" / "two_ranks.sqlite", "--format", "json").stdout)
    assert (apart["run"]["source"], apart["run"]["traces"]) == ("2 traces: rank1, rank0", 2)
    assert "traces" not in whole["run"]
    sections = [{s["slug"]: s for s in document["sections"]} for document in (apart, whole)]
    for slug in ("breakdown", "steps", "kernels", "cuda_api", "copies", "device_use", "ranks"):
        assert sections[0][slug] == sections[1][slug]
    facts = sections[0]["ranks"]["blocks"][0]["facts"]
    assert {fact["key"]: fact["value"] for fact in facts}["collectives"] == 24


def test_a_report_on_two_ranks_fits_80_columns(ranks):
    done = run("report", *ranks, "--width", 80)
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "2 traces: rank1, rank0" in done.stdout
    assert "46 steady steps of 2 ranks" in " ".join(done.stdout.split())


@pytest.mark.parametrize("rank", ["0", "1"])
def test_one_rank_of_several_traces_is_analysed_alone(ranks, rank):
    done = run("report", *ranks, "--rank", rank, "--format", "json")
    sections = {section["slug"]: section for section in json.loads(done.stdout)["sections"]}
    assert [row["device"] for row in sections["device_use"]["blocks"][1]["rows"]] == [f"GPU {rank} Synthetic GPU"]
    assert "ranks" not in sections


def test_a_rank_that_is_not_there_is_refused_with_those_that_are(ranks):
    done = run("report", *ranks, "--rank", "7")
    assert done.returncode == 2
    assert "0, 1" in done.stderr


def test_several_traces_convert_into_one_folder_that_reports_the_same(ranks, tmp_path):
    done = run("convert", *ranks, "-o", tmp_path / "job")
    assert "processes 2" in done.stdout
    source, copy = (
        json.loads(run("report", *paths, "--format", "json").stdout) for paths in (ranks, (tmp_path / "job",))
    )
    assert source["sections"] == copy["sections"]
    assert source["notes"] == copy["notes"]
    manifest = json.loads((tmp_path / "job" / "manifest.json").read_text())
    assert [entry["source"] for entry in manifest["sources"]] == ["rank1", "rank0"]


def test_a_trace_named_twice_and_two_captures_of_a_rank_are_refused_by_name(ranks, tmp_path):
    first, _ = ranks
    twice = run("report", first, first.parent / "." / first.name)
    assert (twice.returncode, twice.stdout) == (2, "")
    assert "rank1 is named twice" in twice.stderr
    shutil.copytree(first, tmp_path / "again_rank1")
    same = run("report", first, tmp_path / "again_rank1")
    assert same.returncode == 2
    assert "rank1 and again_rank1 are two captures of rank 1" in same.stderr


def test_a_folder_of_several_runs_is_no_trace_and_none_of_them_is_picked(tmp_path):
    for name in "abcd":
        recorded = tmp_path / name / "raw" / "plugins" / "profile" / "1"
        recorded.mkdir(parents=True)
        (recorded / "host.xplane.pb").write_bytes(b"")
        (tmp_path / name / "manifest.json").write_text('{"kind": "traceviz.run", "version": 1}')
    done = run("report", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path} holds 4 runs: a, b, c, ...." in done.stderr
    assert "traceviz compare" in done.stderr


def test_an_error_among_several_traces_names_the_one_that_it_is_about(ranks, tmp_path):
    damaged = tmp_path / "rank2"
    shutil.copytree(ranks[0], damaged)
    (damaged / "kernels.parquet").write_bytes(b"no table")
    done = run("report", *ranks, damaged)
    assert (done.returncode, done.stdout) == (3, "")
    assert str(damaged) in done.stderr
    unknown = tmp_path / "notes.txt"
    unknown.write_text("hello")
    assert "notes.txt is not a trace" in run("report", *ranks, unknown).stderr


def test_no_trace_at_all_is_a_usage_error():
    done = run("report")
    assert done.returncode == 2
    assert "TRACE" in done.stderr


def test_a_folder_with_a_trace_per_rank_is_read_as_a_whole_and_one_of_strangers_is_not(tmp_path, samples):
    for rank in (0, 1):
        shutil.copy(samples / "synthetic" / "healthy.sqlite", tmp_path / f"run_rank{rank}.sqlite")
    document = json.loads(run("report", tmp_path, "--format", "json").stdout)
    assert document["run"]["traces"] == 2
    assert "run_rank0.sqlite" in next(n["message"] for n in document["notes"] if n["code"] == "rank-from-name")
    shutil.copy(samples / "synthetic" / "input_bound.sqlite", tmp_path / "other.sqlite")
    done = run("report", tmp_path)
    assert done.returncode == 3
    assert "Name a trace inside the folder" in done.stderr


def _commands(group, path=()):
    """Yield every command of the program, with its names."""
    for name in group.commands:
        command = group.load(name) if hasattr(group, "load") else group.commands[name]
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_help_states_every_default_in_one_form():
    for names, command in _commands(main):
        for option in (one for one in command.params if isinstance(one, click.Option)):
            words = option.help or ""
            has_value = not option.is_flag and not option.multiple and isinstance(option.default, str | int | float)
            if has_value and option.default != "":
                assert "(default: " in words, (names, option.name)
            assert not re.search(r"\(\d[\d,%:]*\)|\(newest\)|\[default", words), (names, option.name)


def test_every_section_option_takes_a_name():
    metavars = {
        names: option.metavar
        for names, command in _commands(main)
        for option in command.params
        if option.name == "sections"
    }
    assert set(metavars) >= {
        ("report",),
        ("compare",),
        ("archive", "report"),
        ("archive", "trend"),
        ("archive", "show"),
    }
    assert set(metavars.values()) == {"NAME"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "--sectin", "x"), "error: No such option '--sectin'. Did you mean '--section'?"),
        (("frob",), "error: No such command 'frob'."),
        (("report", "gone.json"), "error: No such file: gone.json."),
    ],
)
def test_errors_begin_in_one_spelling(words, said):
    stderr = run(*words).stderr
    assert said in stderr.splitlines()
    assert "Error:" not in stderr


def test_a_missing_file_names_the_folder_and_the_nearest_name(tmp_path):
    (tmp_path / "slow.pt.trace.json").touch()
    said = run("report", tmp_path / "slo.pt.trace.json").stderr
    assert f"Looked in {tmp_path}. Did you mean {tmp_path / 'slow.pt.trace.json'}?" in said
    assert f"There is no folder {tmp_path / 'a' / 'b'}; {tmp_path} exists." in run("report", tmp_path / "a/b/x").stderr
    (tmp_path / "empty").mkdir()
    assert f"  Looked in {tmp_path / 'empty'}.\n" in run("report", tmp_path / "empty" / "x").stderr


def test_a_device_of_a_trace_without_devices_is_refused_with_the_reason(tmp_path):
    save(tables(host_ops=[(0, 10, "op")]), tmp_path / "host")
    done = run("report", tmp_path / "host", "--device", "3")
    assert done.stderr.splitlines() == [
        "error: There is no device 3.",
        "  The trace holds no work of a device, or does not number its devices.",
        "  Leave out --device.",
    ]


def test_explain_names_the_nearest_finding():
    assert "The nearest is TV902 (profiler-overhead)." in run("explain", "TV999").stderr
    assert "The nearest is TV101 (input-bound)." in run("explain", "input-bond").stderr
    assert run("explain", "zzz").stderr.splitlines()[1:] == ["  List all of them: traceviz explain."]
