"""The torch collector on real programs, run by the Python that TRACEVIZ_TORCH names."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.collectors.inject.runs import TEN_STEPS, Ran, run_under
from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.collectors.base import Window
from traceviz.collectors.collect import CollectOptions, collect
from traceviz.report import Grid

pytestmark = pytest.mark.live

PROGRAM = REPOSITORY / "tests/collectors/torch_training.py"


@pytest.fixture
def train(torch_python, tmp_path):
    def run(*arguments: object, collectors=("torch",), window: Window = TEN_STEPS, **options) -> Ran:
        command = [torch_python, "-W", "ignore", str(PROGRAM), *map(str, arguments)]
        return run_under(tmp_path, collectors, command, window, **options)

    return run


def steps_of(ran: Ran) -> list[int]:
    (source,) = ran.harvests["torch"].sources
    return api.open_trace(source).scan("steps").sort("start_ns").collect()["step"].to_list()


def facts(ran: Ran) -> dict:
    return dict(ran.harvests["torch"].facts)


def test_ten_steps_of_an_unmodified_program_are_recorded_and_its_loader_named(train):
    ran = train("plain")
    assert (ran.code, ran.stdout, ran.stderr, ran.problems) == (0, "trained\n", "", [])
    assert steps_of(ran) == list(range(5, 15))
    assert facts(ran)["steps_recorded"] == 10
    assert facts(ran)["stop_cost_ns"] > 0
    assert facts(ran)["threads"]["intra_op"] == 1  # as the program sets it, with any environment
    assert facts(ran)["threads"]["inter_op"] >= 1
    report = api.report_on(ran.harvests["torch"].sources[0])
    assert {finding.slug for finding in report.findings} >= {"input-bound", "single-process-loader"}


MANY_OPERATORS = """
import sys, torch
torch.set_num_threads(1)
weight = torch.ones(4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-6)
for _ in range(16):
    with torch.no_grad():
        x = torch.ones(4)
        for _ in range(40_000):
            x = x + 1.0 if OPERATORS else x
    optimizer.zero_grad(); (weight * x).sum().backward(); optimizer.step()
print("trained")
"""
APPLIED = """
import sys, torch
model, x = torch.nn.Linear(4, 4), torch.ones(1, 4)
with torch.no_grad():
    for _ in range(20):
        model(x)
print("torch._inductor" in sys.modules)
"""


@pytest.mark.parametrize(("operators", "at_most", "problems"), [(1, 5, ["window-shortened"]), (0, 10, [])])
def test_steps_of_many_operators_end_the_window_early(torch_python, tmp_path, operators, at_most, problems):
    program = tmp_path / "many.py"
    program.write_text(MANY_OPERATORS.replace("OPERATORS", str(operators)))
    ran = run_under(tmp_path / "run", ("torch",), [torch_python, "-W", "ignore", str(program)])
    assert (ran.code, ran.stdout, ran.stderr, ran.problems) == (0, "trained\n", "", problems)
    assert 1 <= facts(ran)["steps_recorded"] <= at_most
    assert steps_of(ran) == list(range(5, 5 + facts(ran)["steps_recorded"]))


def test_a_program_that_compiles_nothing_does_not_get_the_compiler_loaded(torch_python, tmp_path):
    program = tmp_path / "apply.py"
    program.write_text(APPLIED)
    ran = run_under(tmp_path / "run", ("torch",), [torch_python, "-W", "ignore", str(program)])
    assert (ran.code, ran.stdout, ran.problems, facts(ran)["steps_recorded"]) == (0, "False\n", [], 10)


def test_workers_of_a_loader_are_not_recorded_however_they_start(train):
    ran = train("workers", 7, "fork,spawn,forkserver")
    assert (ran.code, ran.problems) == (0, [])
    assert len(facts(ran)["processes"]) == 1
    # of the first step with a new loader, only the end is seen
    assert steps_of(ran) == [step for step in range(5, 17) if step not in (7, 14)]


@pytest.mark.parametrize(("how", "code"), [("raise", 1), ("terminated", -15)])
def test_an_open_window_is_saved_however_the_program_ends(train, how, code):
    ran = train(how, 12)
    assert (ran.code, ran.problems) == (code, [])
    assert steps_of(ran) == list(range(5, 12))


def test_two_optimizers_make_one_step_and_shapes_are_recorded_on_request(train):
    ran = train("two", 20, options={"torch": {"record_shapes": True}})
    assert b'"record_shapes": 1' in gzip.decompress(ran.harvests["torch"].sources[0].read_bytes())
    assert steps_of(ran) == list(range(5, 15))
    assert facts(ran)["processes"][0]["source"] == "torch_optimizer"


def test_accumulated_batches_are_one_step(train):
    ran = train("accumulate", 20)
    trace = api.open_trace(ran.harvests["torch"].sources[0])
    taken = trace.scan("host_ops").filter(pl.col("name").cast(pl.String).str.contains("DataLoader")).collect().height
    assert steps_of(ran) == list(range(5, 15))
    assert taken == 20


def test_validation_between_epochs_is_no_step(train):
    ran = train("epochs", 20, window=Window(5, 10))
    trace = api.open_trace(ran.harvests["torch"].sources[0])
    steps = trace.scan("steps").sort("start_ns").collect()
    # Step 9 is the last of the first epoch; nine batches of 8 images are read before step 10, which may start with its
    # optimizer only, because its loader is new.
    assert steps["step"].to_list()[:5] == [5, 6, 7, 8, 9]
    taken = trace.scan("host_ops").filter(pl.col("name").cast(pl.String).str.contains("DataLoader")).collect()
    for begin, duration in steps.select("start_ns", "dur_ns").iter_rows():
        assert taken["start_ns"].is_between(begin, begin + duration, closed="left").sum() <= 1


@pytest.mark.parametrize(("how", "source"), [("infer-loader", "torch_loader"), ("infer-calls", "torch_call")])
def test_inference_has_steps_too(train, how, source):
    ran = train(how, 20)
    assert (ran.code, ran.problems) == (0, [])
    assert facts(ran)["processes"][0]["source"] == source
    assert steps_of(ran) == list(range(5, 15))


def test_a_program_that_profiles_itself_goes_first(train):
    ran = train("profiled")
    assert (ran.code, ran.stdout) == (0, "True\ntrained\n")
    assert ran.problems == ["profiler-taken"]


def test_a_program_that_profiles_itself_later_ends_the_recording(train):
    ran = train("profiled-later", 20, window=Window(5, 20))
    assert (ran.code, ran.stdout) == (0, "True\ntrained\n")
    assert ran.problems == ["profiler-taken"]
    assert steps_of(ran) == list(range(5, 10))


def test_a_window_of_time_is_recorded_from_another_thread_once_torch_was_imported(train):
    ran = train("plain", 100, window=Window(0, None, 0.0, 1.0))
    assert (ran.code, ran.problems) == (0, [])
    steps = steps_of(ran)
    assert steps == list(range(steps[0], steps[0] + len(steps)))
    assert 1 <= len(steps) < 100  # a step sleeps for 24 ms at least: the window is over before the program


KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows = numpy.ones((320, 4), "float32")
model.fit(rows, rows[:, :1], epochs=2, batch_size=32, verbose=0, validation_split=0.1)
"""


def test_keras_on_torch_is_recorded_by_torch_alone(torch_python, tmp_path):
    imported = subprocess.run(
        [torch_python, "-c", "import keras"], env={**os.environ, "KERAS_BACKEND": "torch"}, check=False
    )
    if imported.returncode:
        pytest.skip("the Python with PyTorch has no Keras 3")
    ran = run_under(tmp_path, ("torch", "tensorflow", "jax"), [torch_python, "-W", "ignore", "-c", KERAS], TEN_STEPS)
    assert (ran.code, ran.problems) == (0, [])
    assert steps_of(ran) == list(range(5, 15))
    assert facts(ran)["processes"][0]["source"] == "keras"
    assert [len(ran.harvests[name].sources) for name in ("torch", "tensorflow", "jax")] == [1, 0, 0]


def test_ranks_of_torchrun_are_recorded_each_and_the_one_that_sleeps_60_ms_a_step_is_who_the_other_waits_for(
    torch_python, tmp_path
):
    launcher = [torch_python, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29517"]
    options = CollectOptions(("resources", "stacks", "torch"), output=tmp_path / "run", window=Window(5, 10))
    outcome = collect(options, [*launcher, str(PROGRAM), "in-ranks", "20"])
    assert (outcome.exit_code, outcome.problems) == (0, ())
    stated = json.loads((outcome.folder / "manifest.json").read_text())
    (recorder,) = (entry for entry in stated["collectors"] if entry["name"] == "torch")
    assert sorted(Path(source).name for source in recorder["sources"]) == [
        "rank0.pt.trace.json.gz",
        "rank1.pt.trace.json.gz",
    ]
    assert [process["steps_recorded"] for process in recorder["facts"]["processes"]] == [10, 10]
    assert stated["command"].endswith("--nproc-per-node=2 --master-port=29517 torch_training.py … 20")
    report = api.report_on(outcome.folder)
    (arrivals,) = (
        block for block in report.section("ranks").blocks if isinstance(block, Grid) and "Skew" in str(block)
    )
    waits = {row[0]: (row[1], row[3], row[4]) for row in arrivals.rows}
    assert [waits[rank][:2] for rank in (0, 1)] == [(10, 0), (10, 10)]  # rank 1 is the last at all of them
    assert waits[0][2] > 10 * 30_000_000 > waits[1][2]
    (late,) = (finding for finding in report.findings if finding.code == "TV503")
    assert "rank 1 needs most time for its own work" in late.message
