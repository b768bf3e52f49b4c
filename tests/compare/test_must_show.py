"""Required results of comparing traces with a known difference: none, the input, or every kernel."""

from pathlib import Path

import pytest
from program import US
from xplane_stories import STORIES

from tests.analyses.builders import tables
from tests.compare.command import compared, share_of_difference
from tests.compare.small_traces import kineto_loop, loop, training
from tests.compare.trace_copies import (
    longer_kernels,
    shuffled_database,
    shuffled_kineto,
    shuffled_xplane,
    squeezed_space,
)
from tests.parsers.run.folders import SECOND, run_folder
from traceviz import api
from traceviz.core.nsys_program import find_nsys
from traceviz.core.units import format_change

pytestmark = [pytest.mark.process, pytest.mark.slow]

DEVICE = {"effect", "attribution", "kernels", "cuda_api"}
COPIES = DEVICE | {"copies"}
INPUT = COPIES | {"input_pipeline"}
HOST = {"effect", "attribution", "input_pipeline"}

SAMPLES = {
    "synthetic/allocation_churn.sqlite": COPIES,
    "synthetic/two_ranks.sqlite": DEVICE,
    "nsys/nvtx_loop.sqlite": HOST,
    "synthetic/gpu_keras_input_bound.xplane.pb": INPUT,
    "synthetic/tpu_infeed_wait.xplane.pb": HOST | {"kernels"},
    "xplane/jax_annotated.xplane.pb.gz": HOST,
    "synthetic/torch_item_in_steps.pt.trace.json.gz": INPUT,
    "kineto/slow.pt.trace.json.gz": HOST,
    "synthetic/nvprof_torch_input_bound.nvvp": INPUT,
}
"""A sample of every format, with and without a device, with what of it is compared."""
QUICK = {
    "synthetic/two_ranks.sqlite",
    "synthetic/gpu_keras_input_bound.xplane.pb",
    "synthetic/torch_item_in_steps.pt.trace.json.gz",
    "synthetic/nvprof_torch_input_bound.nvvp",
}
"""One of each format."""
WHOLE = {
    "nsys/nvtx_loop.nsys-rep": HOST,
    "xplane/keras_tensorboard": HOST,
    "synthetic/torch_four_ranks_straggler": INPUT,
    "synthetic/nvprof_trace.csv": DEVICE,
}
"""Samples that are not rearranged: folders, an unexported report, and a printed list."""
HOUR_NS = 3600 * SECOND
GATE = ("--fail-on-regression", "5%")
BLOCKS = ("--step-marker", r"^FSDP::post_forward \(blocks")


def assert_no_change(result, measured):
    """Check for no change, in the text, in the exit code and in every number that both sides measured."""
    assert (result.code, result.outcome, result.stderr) == (0, "no-change", "")
    assert result.sentence.startswith("No change: mean step ")
    assert result.not_as_before() == {}
    assert set(result.changes()) >= measured
    facts = result.facts("effect")
    assert (facts["difference_ns"], facts["low_ratio"], facts["high_ratio"], facts["speedup"]) == (0, 0, 0, 1)
    assert {row[end] for row in result.rows("attribution") for end in ("low_ns", "high_ns")} == {0}


# The same


@pytest.mark.parametrize(("name", "measured"), WHOLE.items(), ids=WHOLE)
def test_a_trace_has_not_changed_against_itself(samples, name, measured):
    if name.endswith(".nsys-rep") and find_nsys() is None:
        pytest.skip("nsys is not installed")
    assert_no_change(compared(samples / name, samples / name, *GATE), measured)


def test_a_traceviz_folder_has_not_changed_against_the_trace_that_it_was_made_of(samples, tmp_path):
    trace = samples / "synthetic/healthy.sqlite"
    api.convert(trace, tmp_path / "folder")
    assert_no_change(compared(trace, tmp_path / "folder", *GATE), INPUT)


def test_a_run_has_not_changed_against_itself_and_its_saved_report(samples, tmp_path):
    began = {"t0_unix_ns": 1_700_000_000 * SECOND, "format": "resources", "producer": "sampler", "reader": "resources"}
    of_program = {"process_id": 0, "device_id": None, "unit": "%"}
    cpu = [(number * SECOND // 100, "program CPU", 100.0 + number, of_program) for number in range(60)]
    sampled = tables(run=began, samples=cpu, processes=[(0, "python3", {"pid": 12})], threads=[])
    run = run_folder(tmp_path / "run", {"nsys": samples / "synthetic/healthy.sqlite", "resources": sampled})
    saved = tmp_path / "saved.json"
    saved.write_text(api.to_text(api.report_on(run), "json"))
    for base in (run, saved):
        assert_no_change(compared(base, run, *GATE), INPUT | {"host"})


# The same trace in another order


@pytest.mark.parametrize(
    ("name", "measured"),
    [pytest.param(*item, id=item[0], marks=() if item[0] in QUICK else pytest.mark.slow) for item in SAMPLES.items()],
)
def test_rows_in_another_order_an_hour_later_are_no_change(samples, tmp_path, name, measured):
    copy = rearranged(samples / name, tmp_path, HOUR_NS)
    assert first_instant(copy) - first_instant(samples / name) == HOUR_NS
    assert_no_change(compared(samples / name, copy, *GATE), measured)


def rearranged(trace: Path, folder: Path, shift_ns: int = 0, seed: int = 1) -> Path:
    copy = folder / f"{seed}-{trace.name.removesuffix('.gz') if '.xplane.' in trace.name else trace.name}"
    if trace.suffix in (".sqlite", ".nvvp"):
        return shuffled_database(trace, copy, shift_ns, seed)
    return (shuffled_xplane if ".xplane." in trace.name else shuffled_kineto)(trace, copy, shift_ns, seed)


def first_instant(path: Path) -> int:
    """Of what the program or the device did, on the clock of the wall."""
    trace = api.open_trace(path)
    table = next(table for table in ("kernels", "host_ops", "device_ops", "nvtx") if table in trace)
    began = trace.scan("run").collect()["t0_unix_ns"].item() or 0
    return began + trace.scan(table).select("start_ns").collect()["start_ns"].min()


def test_copies_are_in_another_order(samples, tmp_path):
    for name in ("nsys/nvtx_loop.sqlite", "xplane/jax_annotated.xplane.pb.gz", "kineto/slow.pt.trace.json.gz"):
        first, second = (rearranged(samples / name, tmp_path, seed=seed).read_bytes() for seed in (1, 2))
        assert first != second


def test_one_program_in_two_formats_differs_in_nothing_that_both_measure(samples):
    """nvprof measures no time in which the host is blocked: else the sides would be equal there too."""
    synthetic = samples / "synthetic"
    result = compared(synthetic / "input_bound.sqlite", synthetic / "nvprof_torch_input_bound.nvvp", *GATE)
    assert (result.code, result.outcome) == (0, "no-change")
    assert result.not_as_before() == {}
    assert set(result.changes()) >= INPUT
    assert {row["code"] for row in result.rows("comparability")} >= {"format"}


AS_NSYS_SPELLS = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::<unnamed>::relu, "
    "at::detail::Array<char *, (int)2>>(int, T2, T3)"
)
AS_KINETO_SPELLS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::relu, "
    "at::detail::Array<char*, 2> >(int, at::native::(anonymous namespace)::relu, at::detail::Array<char*, 2>)"
)
BOTH_SPELL = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_kernel_cudnn"


def test_kernels_of_one_program_match_in_kineto_and_nsys_however_they_are_spelled(tmp_path):
    kineto = kineto_loop(tmp_path / "kineto.pt.trace.json", 12, [(BOTH_SPELL, 150 * US), (AS_KINETO_SPELLS, 40 * US)])
    nsys = loop(tmp_path / "nsys.sqlite", 12, [(BOTH_SPELL, 150 * US), (AS_NSYS_SPELLS, 50 * US)])
    result = compared(kineto, nsys)
    assert result.outcome == "slower"
    assert result.facts("effect")["difference_ns"] == 10 * US
    assert {key: row["difference_ns"] for key, row in result.classes().items() if row["difference_ns"]} == {
        "device_compute": 10 * US
    }
    assert result.facts("kernels")["common_share"] == 1
    assert [(row["base_ns"], row["new_ns"], row["status"]) for row in result.rows("kernels")] == [
        (40 * US, 50 * US, "slower"),
        (150 * US, 150 * US, "same"),
    ]
    assert {row["code"] for row in result.rows("comparability")} >= {"format", "step-source"}


def test_kernels_whose_names_do_not_meet_are_not_compared(samples):
    """Another program, recorded by another profiler: most names would be new or gone, and mean nothing."""
    synthetic = samples / "synthetic"
    result = compared(synthetic / "torch_item_in_steps.pt.trace.json.gz", synthetic / "healthy.sqlite")
    assert "kernels" not in result.changes()
    texts = [block["text"] for block in result.section("kernels")["blocks"] if "text" in block]
    assert texts[0].startswith("Cannot compare kernels: only 8.3 % of kernel time is in kernels of both sides")
    assert "kernel-names" in {row["code"] for row in result.rows("comparability")}


# The input, and nothing else


def test_the_gain_of_faster_loader_workers_is_input_wait(samples):
    synthetic = samples / "synthetic"
    result = compared(
        synthetic / "torch_input_bound_workers.pt.trace.json.gz", synthetic / "torch_healthy.pt.trace.json.gz"
    )
    assert result.outcome == "faster"
    assert share_of_difference(result, "input_wait") == pytest.approx(1, abs=0.02)
    assert result.sentence.endswith("100 % of the gain is input wait.")
    assert {row["status"] for row in result.rows("kernels")} == {"same"}  # they do the same work in every step


def loading(program, part):
    """A batch in 8 ms, or in a part of it."""
    program.os_call("poll", round(4800 * US * part))
    program.os_call("read", round(900 * US * part))
    program.compute(round(2300 * US * part))


def test_the_gain_of_a_quicker_loader_in_an_nsys_trace_is_input_wait(tmp_path):
    """The twins share every duration but those of loading."""
    slow = training(tmp_path / "slow.sqlite", lambda program: loading(program, 1))
    quick = training(tmp_path / "quick.sqlite", lambda program: loading(program, 0.05))
    result = compared(slow, quick)
    assert result.outcome == "faster"
    # of 8 ms, by which durations vary by 3 %, 0.4 are left
    assert result.classes()["input_wait"]["difference_ns"] == pytest.approx(-7.6e6, rel=0.02)
    assert share_of_difference(result, "input_wait") == pytest.approx(1, abs=0.002)
    assert {row["class"] for row in result.rows("attribution") if abs(row["difference_ns"]) > 2} == {"input_wait"}
    assert {row["difference_ns"] for row in result.rows("kernels")} == {0}
    assert result.sentence.endswith("100 % of the gain is input wait.")


def test_the_gain_of_a_quicker_pipeline_in_an_xplane_trace_is_input_wait(tmp_path):
    """Waits of the step for tf.data are squeezed to a twentieth; all other time is unchanged."""
    space = next(story for story in STORIES if story.name == "gpu_keras_input_bound").space()
    (tmp_path / "slow.xplane.pb").write_bytes(space.encoded())
    squeezed_space(space, "IteratorGetNextOp::DoCompute", percent=-95)
    (tmp_path / "quick.xplane.pb").write_bytes(space.encoded())
    result = compared(tmp_path / "slow.xplane.pb", tmp_path / "quick.xplane.pb")
    assert result.outcome == "faster"
    assert result.classes()["input_wait"]["difference_ns"] == pytest.approx(-3600 * US * 0.95, rel=0.03)
    assert share_of_difference(result, "input_wait") == pytest.approx(1, abs=0.02)
    assert {row["difference_ns"] for row in result.rows("kernels")} == {0}


def test_the_gain_of_a_recorded_repair_adds_up_and_is_mostly_input_wait(samples):
    """Recorded on a CPU whose cores the loader and the network share: computing became quicker as well."""
    result = compared(samples / "kineto/slow.pt.trace.json.gz", samples / "kineto/repaired.pt.trace.json.gz")
    assert result.outcome == "faster"
    classes = {key: row["difference_ns"] for key, row in result.classes().items()}
    assert sum(classes.values()) == result.facts("attribution")["difference_ns"]
    assert sum(row["share_of_difference"] for row in result.rows("attribution")) == pytest.approx(1, abs=1e-12)
    assert share_of_difference(result, "input_wait") > 0.9
    assert min(classes, key=classes.__getitem__) == "input_wait"


# Long and short steps in turns


def test_a_loader_that_hands_out_two_batches_at_once_is_as_fast_as_one_that_hands_out_each(tmp_path):
    """Medians would show half the step, or one twice as long, depending on the kind of the middle step."""
    each = training(tmp_path / "each.sqlite", lambda program: loading(program, 0.5), steps=29)
    batches = iter(range(100))
    two = training(tmp_path / "two.sqlite", lambda program: loading(program, next(batches) % 2), steps=29)
    result = compared(each, two, *GATE)
    facts = result.facts("effect")
    base, new = result.rows("effect")
    assert (result.code, result.outcome, base["period"], new["period"]) == (0, "no-change", 1, 2)
    assert abs(facts["ratio"]) < 0.02
    assert abs(facts["median_ratio"]) > 0.3
    assert facts["high_ratio"] - facts["low_ratio"] < 0.12
    assert "Median step " in result.sentence
    (remark,) = [
        block["text"] for block in result.section("effect")["blocks"] if "turns in two" in block.get("text", "")
    ]
    assert "two every 2 steps (" in remark


@pytest.fixture
def study(public_traces, public_cases):
    """Captures of a study that its authors recorded: the program, two loader workers, pinned memory."""
    names = ("*AI-Profiler__baseline.nsys-rep", "*AI-Profiler__baseline_nvtx.nsys-rep")
    names += ("*AI-Profiler__firstOptimization.nsys-rep", "*AI-Profiler__secondOptimization.nsys-rep")
    found = [next((folder / "nsys").glob(name), None) for folder in (public_traces, public_cases) for name in names]
    captures = [path for path in found if path is not None]
    if len(captures) < 4 or find_nsys() is None:
        pytest.skip("captures of the study are missing, or nsys is")
    return dict(zip(("bare", "baseline", "first", "second"), captures, strict=True))


def test_a_recorded_study_is_judged_by_its_mean_steps(study):
    """Steps of 8 and 232 ms take turns after the first change: by their median it is 2.86 times as fast."""
    result = compared(study["baseline"], study["first"], study["second"])
    rows = result.rows("effect")
    assert [round(row["mean_ns"] / 1e6) for row in rows] == [117, 135, 154]  # the fastest first
    assert [(row["period"], row["verdict"]) for row in rows] == [(2, "faster"), (2, "faster"), (1, "base")]
    assert [row["speedup"] for row in rows] == pytest.approx([1.32, 1.14, 1], abs=0.01)
    assert min(row["input_share"] for row in rows) > 0.93
    (turns,) = [text for block in result.section("effect")["blocks"] if "take turns" in (text := block.get("text", ""))]
    assert turns.count("as 2 loader workers") == 2
    assert [row["class"] for row in result.rows("attribution") if (row["share_of_difference"] or 0) > 0.5] == [
        "input_wait"
    ]
    stayed = {row["code"] for row in result.rows("findings") if row["seen"] == "stayed"}
    assert {"TV101", "TV109"} <= stayed
    pairs = [block["rows"] for block in result.section("copies")["blocks"] if "rows" in block]
    h2d = [row for rows in pairs for row in rows if row["kind"] == "h2d"]
    assert [row["new_ns"] / row["base_ns"] for row in h2d] == pytest.approx([0.630, 0.335], abs=0.01)
    pinned = "copies to the device from pinned rather than pageable memory"
    grids = [
        block for block in result.section("effect")["blocks"] if block.get("title") == "Change from the previous side"
    ]
    assert [row["changed"] for grid in grids for row in grid["rows"]][:2] == [None, pinned]


def test_the_bare_program_of_a_recorded_study_is_compared_by_the_kernels_of_its_steps(study):
    """It marks no steps, and those inferred run the kernels of the marked ones as often."""
    result = compared(study["bare"], study["first"])
    assert (result.outcome, result.facts("effect")["speedup"]) == ("faster", pytest.approx(1.10, abs=0.01))
    assert {row["code"]: row["forbids"] for row in result.rows("comparability")}["step-source"] is None
    assert {row["code"]: row["seen"] for row in result.rows("findings")} == {
        "TV101": "stayed",
        "TV109": "not looked for in the base",
        "TV310": "stayed",
    }
    result = compared(study["bare"], study["second"])
    assert (result.outcome, result.facts("effect")["speedup"]) == ("cannot-judge", None)


# Every kernel


@pytest.fixture
def two_gpus(public_traces):
    """A training on two GPUs, recorded by nsys. It marks no steps: its blocks take their place (:data:`BLOCKS`)."""
    trace = next((public_traces / "nsys").glob("*mfu_2gpu_before.sqlite"), None)
    if trace is None:
        pytest.skip("the folder of public traces has no mfu_2gpu_before.sqlite")
    return trace


def test_kernels_that_are_10_percent_longer_are_named_and_fail_the_gate(tmp_path):
    """Of a step, 240 µs are kernels and 40 µs pauses: 280 µs, which become 24 longer."""
    base = loop(tmp_path / "base.sqlite", 12, [("gemm", 150 * US), ("add", 60 * US), ("norm", 30 * US)])
    result = compared(base, longer_kernels(base, tmp_path / "new.sqlite", percent=10), *GATE)
    assert (result.code, result.outcome) == (1, "slower")
    classes = result.classes()
    assert (classes["device_compute"]["base_ns"], classes["device_compute"]["new_ns"]) == (240 * US, 264 * US)
    assert {key: row["difference_ns"] for key, row in classes.items() if row["difference_ns"]} == {
        "device_compute": 24 * US
    }
    assert result.facts("effect")["ratio"] == pytest.approx(24 / 280)
    assert [(row["status"], row["name"], row["difference_ns"], row["ratio"]) for row in result.rows("kernels")] == [
        ("slower", "gemm", 15 * US, 0.1),
        ("slower", "add", 6 * US, 0.1),
        ("slower", "norm", 3 * US, 0.1),
    ]
    assert "regression: +8.6 %, slower" in result.stderr


def test_a_recorded_training_whose_kernels_are_20_percent_longer_fails_the_gate(two_gpus, tmp_path):
    """Kernels of a device of this trace hardly overlap (12 µs of 270 ms): +20 % to within a hundredth of a percent.

    Some of the 16 steps are two fifths longer, so the mean is known to 10 %: for half as much there is no verdict.
    """
    result = compared(two_gpus, longer_kernels(two_gpus, tmp_path / "longer.sqlite", percent=20), *GATE, *BLOCKS)
    assert (result.code, result.outcome) == (1, "slower")
    of_kernels = {"device_compute", "communication"}
    assert of_kernels < set(result.classes())
    for key, row in result.classes().items():
        if key in of_kernels:
            assert row["difference_ns"] / row["base_ns"] == pytest.approx(0.2, abs=1e-4)
        else:  # its start and its end are rounded to nanoseconds
            assert abs(row["difference_ns"]) <= 3
    assert share_of_difference(result, "device_compute", "communication") == pytest.approx(1, abs=1e-4)
    kernels = result.rows("kernels")
    assert len(kernels) == 27
    assert {row["status"] for row in kernels} == {"slower"}
    assert [row["ratio"] for row in kernels] == pytest.approx([0.2] * 27, abs=1e-3)
    assert result.facts("effect")["ratio"] == pytest.approx(0.18, abs=0.01)  # nine tenths of a step are kernels
    assert f"regression: {format_change(result.facts('effect')['ratio'], 'ratio')}, slower" in result.stderr


def test_a_recorded_training_has_not_changed_when_its_rows_are_shuffled(two_gpus, tmp_path):
    shuffled = shuffled_database(two_gpus, tmp_path / "copy.sqlite", HOUR_NS)
    assert_no_change(compared(two_gpus, shuffled, *GATE, *BLOCKS), COPIES)
