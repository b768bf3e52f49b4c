"""Gates on the command line: what is printed, and the code that a build sees."""

import json
from xml.etree import ElementTree as ET

import pytest

from tests.analyses.builders import tables
from tests.support.command import run
from traceviz.trace.tables import save

ERROR_AND_WAIT = "input_bound.sqlite"


@pytest.fixture(scope="module")
def slow(samples):
    return samples / "synthetic" / ERROR_AND_WAIT


@pytest.fixture(scope="module")
def healthy(samples):
    return samples / "synthetic" / "healthy.sqlite"


def gates_of(done):
    document = json.loads(done.stdout)
    return next(section for section in document["sections"] if section["slug"] == "gates")["blocks"][1]["rows"]


def test_a_healthy_run_passes_and_says_nothing_on_stderr(healthy):
    done = run("report", healthy, "--fail-on", "warning", "--budget", "input_wait<=5%", "--budget", "device_idle<=10%")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(" passed\n") == 3


def test_a_slow_run_fails_after_its_report_and_says_which_gate_did(slow):
    done = run("report", slow, "--budget", "input_wait<=5%", "--budget", "step_median<=120ms", "--format", "json")
    assert done.returncode == 1
    assert [(row["gate"], row["outcome"]) for row in gates_of(done)] == [
        ("input_wait", "failed"),
        ("step_median", "passed"),
    ]
    assert "1 of 2 gates failed." in done.stderr
    assert "input_wait: 39.8 %, and the limit is <= 5%." in done.stderr


@pytest.mark.parametrize(("severity", "code"), [("warning", 1), ("error", 1)])
def test_a_finding_fails(slow, severity, code):
    assert run("report", slow, "--fail-on", severity).returncode == code


def test_what_was_not_measured_is_exit_4(slow):
    done = run("report", slow, "--budget", "peak_memory<=8GB")
    assert done.returncode == 4
    assert "peak_memory: the capture has no memory_events table." in done.stderr
    assert "Cannot judge peak_memory" in done.stdout


def test_no_steps_and_no_findings_are_no_pass(tmp_path):
    save(tables(kernels=[(0, 10, "k")]), tmp_path / "t")
    done = run("report", tmp_path / "t", "--fail-on", "error", "--format", "json")
    assert [row["outcome"] for row in gates_of(done)] == ["unknown"]
    assert done.returncode == 4


GATES = [("--budget", "input_wait<=5%"), ("--budget", "findings_error<=0"), ("--fail-on", "error")]


@pytest.mark.parametrize("gate", GATES, ids=" ".join)
def test_a_section_that_a_gate_needs_is_analysed_and_not_shown(slow, gate):
    done = run("report", slow, "--section", "kernels", *gate, "--format", "json")
    assert done.returncode == 1
    assert [section["slug"] for section in json.loads(done.stdout)["sections"]] == ["kernels", "gates"]


def test_the_section_of_the_gates_alone_can_be_asked_for_where_there_are_any(slow):
    done = run("report", slow, "--section", "gates", "--budget", "input_wait<=5%", "--format", "json")
    assert done.returncode == 1
    assert [section["slug"] for section in json.loads(done.stdout)["sections"]] == ["gates"]
    done = run("report", slow, "--section", "gates")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_failed_gate_leaves_a_complete_file(slow, tmp_path):
    output = tmp_path / "gates.xml"
    done = run("report", slow, "--fail-on", "error", "--format", "junit", "-o", output)
    assert (done.returncode, done.stdout) == (1, "")
    assert ET.parse(output).getroot().get("failures") == "1"


def test_a_file_of_gates_is_read_and_the_command_line_wins(slow, tmp_path):
    path = tmp_path / "b.toml"
    path.write_text('[gates]\nfail-on = "error"\n[budgets]\ninput_wait = "<=5%"\nstep_median = "<=120ms"\n')
    done = run("report", slow, "--budgets", path, "--budget", "input_wait<=50%", "--format", "json")
    assert done.returncode == 1
    assert [(row["gate"], row["limit"], row["outcome"]) for row in gates_of(done)] == [
        ("findings", "no error", "failed"),
        ("step_median", "<= 120ms", "passed"),
        ("input_wait", "<= 50%", "passed"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "input_wait"], "Quote it"),
        (["--budget", "inputwait<=5%"], "Did you mean input_wait?"),
        (["--budget", "input_wait<=5"], "5%, or 0.05"),
        (["--budget", "nothing.here<=5"], "There is no section 'nothing'"),
        (["--budget", "speedup>=1"], "traceviz compare"),
        (["--budget", "steps.source<=1"], "not a number"),
        (["--fail-on", "info"], "'info'"),
        (["--fail-on", "error", "--section", "nothing"], "There is no section 'nothing'"),
        (["--fail-on-regression", "5%"], "--fail-on-regression"),
        (["--budgets", "no-such-file.toml"], "no-such-file.toml"),
        (["--format", "junit"], "there are none"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error_and_prints_no_report(slow, arguments, message):
    done = run("report", slow, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("content", "message"), [(b"\xff", "cannot be read"), (b"[budgets", "is not TOML")])
def test_a_file_of_gates_that_cannot_be_read_is_named(slow, tmp_path, content, message):
    path = tmp_path / "b.toml"
    path.write_bytes(content)
    done = run("report", slow, "--budgets", path)
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert message in done.stderr


def test_github_gets_annotations_and_a_summary_after_what_is_there(slow, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    arguments = ("report", slow, "--budget", "input_wait<=5%", "--format", "github")
    done = run(*arguments, env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert done.returncode == 1
    assert [line.split(" ")[0] for line in done.stdout.splitlines()] == ["::error", "::warning", "::notice"]
    assert summary.read_text().startswith("before\n# Trace report\n")
    assert "## Gates" in summary.read_text()


def test_a_summary_is_for_the_format_of_github_only_and_its_failure_is_none(slow, tmp_path):
    missing = str(tmp_path / "none" / "summary.md")
    done = run("report", slow, "--section", "steps", "--format", "github", env={"GITHUB_STEP_SUMMARY": missing})
    assert done.returncode == 0
    assert "GITHUB_STEP_SUMMARY cannot be written" in done.stderr
    path = tmp_path / "summary.md"
    run("report", slow, "--section", "steps", env={"GITHUB_STEP_SUMMARY": str(path)})
    assert not path.exists()
