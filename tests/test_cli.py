"""The command line as a user runs it: one process per case, exit codes, what goes to stdout and what to stderr."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.analyses.builders import tables
from tests.analyses.test_contract import busy_trace
from traceviz.tables import load, save


def run(*arguments, env=None, **options):
    command = [sys.executable, "-m", "traceviz", *map(str, arguments)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **(env or {})}, **options
    )


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "trace"
    save(busy_trace(), folder)
    return folder


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from traceviz.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'polars', 'pyarrow', 'rich', 'numpy', 'pandas', 'tensorflow', 'adbc_driver_sqlite'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version_and_help_answer():
    assert run("--version").stdout.startswith("traceviz, version 0.1.0")
    assert {"report", "convert", "scrub", "explain"} <= set(run("--help").stdout.split())


def test_a_report_on_a_pipe_has_no_colour_and_fits_100_columns(trace):
    done = run("report", trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "Highly input-bound" in done.stdout


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
    assert [section["slug"] for section in document["sections"]][:3] == ["capture", "breakdown", "input_pipeline"]
    assert {"run", "findings", "skipped", "notes"} <= set(document)


def test_one_section_only(trace):
    document = json.loads(run("report", trace, "--section", "cuda_api", "--format", "json").stdout)
    assert [section["slug"] for section in document["sections"]] == ["cuda_api"]


def test_an_unknown_section_lists_those_that_exist(trace):
    done = run("report", trace, "--section", "gpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cuda_api" in done.stderr


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
    save(tables(kernels=[(0, 10, "k")]), tmp_path / "t")
    assert run("report", tmp_path / "t").returncode == 0
    done = run("report", tmp_path / "t", "--require-verdict")
    assert done.returncode == 4
    assert "no steps were found" in done.stderr


def test_a_missing_file_is_exit_3(tmp_path):
    done = run("report", tmp_path / "none.nsys-rep")
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
    """The reader blocks on a pipe that nobody writes to; the signal arrives while the output folder is half made."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import sys, time\n"
        "from traceviz import tables\n"
        "def wait(*a, **k):\n"
        "    print('waiting', file=sys.stderr, flush=True)\n"
        "    time.sleep(60)\n"
        "tables.write_tables = wait\n"
        "from traceviz.cli import main\n"
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
