"""Spoilt inputs of every format end in a report or in an error of ours; violations are detected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.conftest import REPOSITORY
from tests.fuzz import rules
from tests.fuzz.cases import Case, Format
from tests.fuzz.mutations import json_text, wire
from tests.fuzz.tally import Tally, added_up, table

CASES = 30
FEWER = {"archive": 20, "kineto": 20, "kineto.gz": 20}
"""Formats whose cases take longest."""
FORMATS = (
    *("archive", "kineto", "kineto.gz", "nsys-parquetdir", "nsys-sqlite", "nvprof-sqlite", "nvprof-text"),
    *("rocprof-csv", "rocprof-json", "rocprof-sqlite", "run-folder"),
    *("saved-report", "stacks", "tf-trace-json", "traceviz-folder", "xplane", "xplane.gz"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_the_first_inputs_of_a_format_end_in_a_report_or_an_error_of_ours(name: str, tmp_path: Path) -> None:
    cases = FEWER.get(name, CASES)
    command = [sys.executable, "-m", "tests.fuzz", "--format", name, "--cases", str(cases), "--workers", "1", "--quiet"]
    run = subprocess.run(
        [*command, "--output", str(tmp_path), "--name", "counts"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    counts = json.loads((tmp_path / "counts.json").read_text())["counts"][name]
    assert sum(counts.values()) == cases
    assert sum(counts.get(outcome, 0) for outcome in ("report", "comparison", "tables")) >= cases // 8


def test_a_case_is_the_same_input_each_time_and_another_one_without_a_step(tmp_path: Path) -> None:
    sample = tmp_path / "sample"
    sample.write_text("0")

    def write(random: Random, path: Path) -> None:
        path.write_text(f"{path.read_text()} {random.randrange(1000)}")

    format_ = Format("counted", lambda folder: None, {write: 1}, lambda path, depth: "report")
    made = []
    for without in ((), (), (0,)):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Case(format_, 8, frozenset(without)).make([sample], folder).read_text().split())
    assert made[0] == made[1]
    assert len(made[0]) >= 2
    assert made[2] == [made[0][0], *made[0][2:]]


def test_values_of_json_are_found_with_their_keys_and_what_is_cut_off_is_found_as_far_as_it_goes() -> None:
    text = b'{"a": [1, {"b": NaN}], "c": "x:y"'
    found = [(text[v.begin : v.end], v.key) for v in json_text.values(text)]
    assert found[1:] == [
        (b'[1, {"b": NaN}]', b'"a"'),
        (b"1", None),
        (b'{"b": NaN}', None),
        (b"NaN", b'"b"'),
        (b'"x:y"', b'"c"'),
    ]


def test_a_message_that_was_changed_keeps_right_lengths_around_the_change() -> None:
    message = [[1, 2, [[2, 2, b"abc"], [3, 0, 5]]], [4, 0, 2**64 - 1]]
    data = wire.encoded(message)
    assert wire.decoded(data, {1: {}}) == message
    changed = [wire.change(Random(number), data, {1: {}}) for number in range(50)]
    assert len(set(changed)) > 40
    for one in changed:
        wire.decoded(one, {1: {}})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain\n", ""),
        ("\x1b[31mred\x1b[0m", ""),
        ("\x1b]52;c;x\x07", "U+0007 U+001B"),
        ("a\rb", "U+000D"),
        ("\u202eabc", "U+202E"),
        ("µ × 3", ""),
    ],
)
def test_what_could_act_on_a_terminal_is_found(text: str, found: str) -> None:
    assert rules.hostile_characters(text) == found


def test_a_fault_counts_once_however_many_cases_show_it_and_runs_add_up() -> None:
    tally = Tally(seconds=2.0)
    tally.add("kineto", "report")
    fault = {"kind": "defect", "what": "KeyError", "place": "parsers/x.py:f", "detail": "..."}
    assert tally.add_fault("kineto", "case 1", fault) is not None
    assert tally.add_fault("xplane", "case 2", fault) is None
    both = added_up([tally.as_json(), tally.as_json()])
    assert (both.cases, both.seconds, len(both.found)) == (6, 4.0, 1)
    assert next(iter(both.found.values())).count == 4
    assert "4 × defect: KeyError (parsers/x.py:f)" in table(both)
