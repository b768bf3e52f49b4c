"""Statements of other tools are graded by the rules for traceviz, and counted in a table."""

from datetime import date

import pytest

from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.knobs import KNOBS, Format, Knob
from benchmarks.diagnosis.other_tools.__main__ import table
from benchmarks.diagnosis.other_tools.adapters.protocol import CANNOT_JUDGE
from benchmarks.diagnosis.other_tools.environments import is_installed
from benchmarks.diagnosis.other_tools.run import Result, Server, grade_of, lead_of, load, save
from benchmarks.diagnosis.other_tools.tools import COMPARED, SILENT, TOOLS, UNKNOWN
from benchmarks.diagnosis.record import Record
from benchmarks.diagnosis.score import Grade
from benchmarks.diagnosis.truth import Truth, find_truth
from benchmarks.diagnosis.worlds import World

BY_NAME = {tool.name: tool for tool in TOOLS}
KINETO = Capture(Format.KINETO)


def truth_of(gains):
    return Truth(World(1), Record((), (), (), 1, 100), gains)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_statement_has_keys_that_the_proving_ground_knows_and_a_reason(tool):
    known = frozenset({SILENT, "unexplained"}).union(*(facts.answers | facts.symptoms for facts in KNOBS.values()))
    assert tool.meanings
    assert set(tool.formats) <= set(COMPARED)
    for meaning in tool.meanings.values():
        assert meaning.reason.endswith(".")
        assert meaning.keys
        assert set(meaning.keys) <= known


@pytest.mark.parametrize(
    ("name", "kind", "gains", "expected"),
    [
        ("gpu-idle", "dataloader", {Knob.SLOW_LOADER: 0.4}, Grade.RIGHT),
        ("gpu-idle", "dataloader", {Knob.ALLOCATION: 0.4}, Grade.FALSE_BLAME),
        ("gpu-idle", "unattributed", {Knob.SLOW_LOADER: 0.4}, Grade.WEAK),
        ("gpu-idle", "unattributed", {Knob.SLEEP: 0.4}, Grade.HONEST),
        ("gpu-idle", SILENT, {}, Grade.RIGHT),
        ("gpu-idle", SILENT, {Knob.ALLOCATION: 0.4}, Grade.WRONG),
        ("gpu-idle", CANNOT_JUDGE, {Knob.ALLOCATION: 0.4}, Grade.WRONG),
        ("gpu-idle", CANNOT_JUDGE, {}, Grade.RIGHT),
        ("gpu-idle", "error", {}, Grade.WRONG),
        ("TraceLens", "exposed_comm_time: skew", {Knob.STRAGGLER: 0.4}, Grade.RIGHT),
        ("TraceLens", "exposed_comm_time", {Knob.STRAGGLER: 0.4}, Grade.WEAK),
        ("HolisticTraceAnalysis", "memory: HtoD", {Knob.INPUT_COPY: 0.4}, Grade.RIGHT),
        # Nothing in this capture shows the interpreter's lock: its advice for gaps without a call names it.
        ("nsys-ai", "idle: cpu stall", {Knob.GIL: 0.4}, Grade.RIGHT),
        # No report names slow kernels without hardware counters: that the device computes is right.
        ("nsys-ai", "gpu-compute-bound", {Knob.SLOW_KERNELS: 0.4}, Grade.RIGHT),
    ],
)
def test_a_statement_gets_the_best_grade_of_what_it_can_mean(name, kind, gains, expected):
    assert grade_of(BY_NAME[name], (kind, ""), truth_of(gains), KINETO) is expected


def test_the_first_statement_counts_from_the_least_share_of_its_tool():
    statements = [{"kind": "idle: host_wait", "share": 0.14, "text": "a"}, {"kind": "x", "share": None, "text": "b"}]

    assert lead_of(BY_NAME["HolisticTraceAnalysis"], {"statements": statements}) == ("x", "b")
    assert lead_of(BY_NAME["gpu-idle"], {"statements": statements}) == ("idle: host_wait", "a")
    assert lead_of(BY_NAME["TraceLens"], {"statements": []}) == (SILENT, "")
    assert lead_of(BY_NAME["TraceLens"], {"error": "KeyError"}) == ("error", "KeyError")
    assert BY_NAME["TraceLens"].meaning("x") is UNKNOWN


def result(seed, tool, grade, kind="", *, format_="kineto", is_healthy=False):
    return Result(seed, tool, format_, "none", is_healthy, grade, kind, "", "")


def test_tables_count_captures_of_formats_that_a_tool_reads(tmp_path):
    results = [
        result(1, "traceviz", "right"),
        result(2, "traceviz", "honest"),
        result(3, "traceviz", "right", is_healthy=True),
        result(1, "traceviz", "weak", format_="nsys"),
        result(1, "gpu-idle", "right", "dataloader"),
        result(2, "gpu-idle", "false blame", "new kind"),
        result(3, "gpu-idle", "wrong", "error", is_healthy=True),
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(map(save, results)))

    lines = table(load(file), date(2026, 11, 29)).splitlines()

    assert lines[0] == "2026-11-29, 3 worlds (seeds 1 to 3). Right or honest, by format:"
    assert [line for line in lines if line.startswith(("| traceviz |", "| gpu-idle |", "| xprof |"))] == [
        "| traceviz | 0.1.0 | 0% | 100% | - | - |",
        "| gpu-idle | 0.1.0 | - | 33% | - | - |",
        "| xprof | 2.24.2 | - | - | - | - |",
        "| gpu-idle | 3 | 33% | 33% | 0% | 33% | 1 | 0% | 67% | 100% | 0% | 100% |",
        f"| xprof | {'no results' if is_installed(BY_NAME['xprof']) else 'not installed'} | | | | | | | | | | |",
    ]
    assert lines[-1] == "Not mapped to causes: gpu-idle: new kind."


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_an_installed_tool_answers_about_a_small_world(tool, tmp_path):
    if not is_installed(tool):
        pytest.skip("python -m benchmarks.diagnosis.other_tools.environments installs it")
    truth = find_truth(World(1, steps=5, layers=3, workers=0, strengths={Knob.SLOW_LOADER: 1.0}))
    server = Server(tool)
    try:
        answer = server.ask(write_capture(truth.record, Capture(tool.formats[0]), 1, tmp_path))
    finally:
        server.stop()

    kind, _ = lead_of(tool, answer)
    assert kind != "error"
    assert tool.meaning(kind) is not UNKNOWN or kind == SILENT
