"""The tf.data stage that steps wait for: across threads, fused or not, eager or in a graph, of old and new releases."""

import numpy as np
import pytest

from tests.analyses.builders import trace
from tests.analyses.pipelines import training
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.input.recorded_stages import forest_of, pipeline_stages
from traceviz.analyses.input.tfdata import fused_from, stage_advice, stage_path, take_label
from traceviz.analyses.input.tfdata_settings import (
    PipelineSettings,
    StageSettings,
    describe_settings,
    pipeline_settings,
)
from traceviz.analyses.input.tfdata_tree import waited_in
from traceviz.report import Grid

ANALYSIS = InputPipelineAnalysis()
HUGE = -4_611_686_018_427_387_904
"""An iterator's id: the pattern of an unsigned number beyond 63 bits."""


def sequential(pipeline, start, i):
    """Return next(iterator) for 700 ns: Batch takes 650, Map 600 of these, and the source 100 of these."""
    pipeline.add(start, 700, "IteratorGetNext", "input", group=i)
    pipeline.add(start + 10, 680, "Iterator::Root", id=HUGE, cpu_budget=8)
    pipeline.add(start + 20, 650, "Iterator::Root::BatchV2", id=2, parent_id=HUGE, batch_size=32)
    pipeline.add(start + 30, 600, "Iterator::Root::BatchV2::Map", id=3, parent_id=2)
    pipeline.add(start + 40, 100, "Iterator::Root::BatchV2::Map::TensorSlice", id=4, parent_id=3)


def prefetched(pipeline, start, i):
    """Check a prefetch that runs empty: the producer on thread 1 maps while the program waits."""
    pipeline.add(start, 500, "IteratorGetNextOp::DoCompute", "input", thread=2, group=i)
    pipeline.add(start, 500, "Iterator::Root", thread=2, group=i, id=1, cpu_budget=4)
    pipeline.add(
        start + 10, 480, "Iterator::Root::Prefetch", thread=2, id=2, parent_id=1, buffered_elements=0, buffer_limit=2
    )
    pipeline.add(start + 480, 5, "PrefetchConsume", thread=2, element_id=i)
    pipeline.add(start + 20, 450, "PrefetchProduce", thread=1, element_id=i)
    pipeline.add(start + 30, 430, "Iterator::Root::Prefetch::ParallelMapV2", thread=1, id=3, parent_id=2, parallelism=2)


def stages_of(record_batch, steps=5, **tables):
    return {stage.name: stage for stage in pipeline_stages(trace(**training(steps, record_batch, **tables)))}


def test_each_nanosecond_of_the_wait_goes_to_the_deepest_stage_that_runs():
    stages = stages_of(sequential)
    waited = {name: stage.self_ns // 5 for name, stage in stages.items()}
    assert waited == {"IteratorGetNext": 20, "pipeline root": 30, "Batch": 50, "Map": 500, "TensorSlice": 100}


def test_the_largest_stage_is_named_with_its_path_and_its_own_advice():
    result = ANALYSIS.run(trace(**training(5, sequential)))
    stage = result.stages[0]
    assert (stage.name, stage.path, stage.kind, stage.calls) == ("Map", "Map > Batch", "tf.data", 5)
    assert "num_parallel_calls=tf.data.AUTOTUNE" in stage.advice
    assert (result.verdict.value, result.input_share) == ("highly input-bound", 0.7)


def test_a_consumer_waits_for_the_stage_that_produces_on_another_thread():
    stages = stages_of(prefetched)
    assert stages["ParallelMap"].self_ns == 5 * 430
    assert stages["Prefetch"].self_ns == 5 * (480 - 430)
    assert sum(stage.self_ns for stage in stages.values()) == 5 * 500


def test_an_element_that_was_produced_before_the_call_keeps_nobody_waiting():
    def ahead(pipeline, start, i):
        pipeline.add(start + 900, 50, "IteratorGetNext", "input", group=i)
        pipeline.add(start + 900, 40, "Iterator::Root::Prefetch", id=2, parent_id=1)
        pipeline.add(start + 930, 5, "PrefetchConsume", element_id=i)
        pipeline.add(start, 800, "PrefetchProduce", thread=1, element_id=i)
        pipeline.add(start, 800, "Iterator::Root::Prefetch::Map", thread=1, id=3, parent_id=2)

    stages = stages_of(ahead)
    assert stages["Prefetch"].self_ns == 5 * 40
    assert "Map" not in stages
    assert ANALYSIS.run(trace(**training(5, ahead))).stages[0].name == "Prefetch"


def test_a_producer_of_another_iterator_with_the_same_element_is_not_linked():
    def two(pipeline, start, i):
        prefetched(pipeline, start, i)
        pipeline.add(start + 20, 450, "PrefetchProduce", thread=3, element_id=i)
        pipeline.add(start + 20, 450, "Iterator::Root::Prefetch::Generator", thread=3, id=9, parent_id=8)

    assert "Generator" not in {name for name, stage in stages_of(two).items() if stage.self_ns}


def test_ids_beyond_63_bits_stay_apart():
    def patterns(pipeline, start, i):
        for thread, (identity, name) in enumerate([(HUGE, "Map"), (HUGE + 1, "Filter")]):
            base = start + 300 * thread
            pipeline.add(base, 200, "IteratorGetNext", "input", group=i)
            pipeline.add(base, 200, "Iterator::Root::Prefetch", id=identity)
            pipeline.add(base + 190, 5, "PrefetchConsume", element_id=i)
            pipeline.add(base + 10, 150, "PrefetchProduce", thread=1 + thread, element_id=i)
            pipeline.add(base + 10, 150, f"Iterator::Root::Prefetch::{name}", thread=1 + thread, parent_id=identity)

    stages = stages_of(patterns)
    assert (stages["Map"].self_ns, stages["Filter"].self_ns) == (750, 750)


def test_a_host_pipeline_is_what_the_prefetch_of_a_device_waits_for():
    def device(pipeline, start, i):
        pipeline.add(start, 600, "IteratorGetNextAsOptionalOp::DoCompute", "input", thread=1, group=i)
        pipeline.add(start, 600, "Iterator::Prefetch", thread=1, id=1, buffer_limit=1)
        pipeline.add(start + 590, 5, "PrefetchConsume", thread=1, element_id=i)
        pipeline.add(start, 560, "PrefetchProduce", thread=2, element_id=i)
        pipeline.add(start, 560, "Iterator::Prefetch::Generator", thread=2, id=2, parent_id=1)
        pipeline.add(start + 50, 400, "Iterator::Model", thread=3, id=3)
        pipeline.add(start + 50, 390, "Iterator::Model::TFRecord", thread=3, id=4, parent_id=3)

    stages = stages_of(device)
    assert stages["TFRecord"].self_ns == 5 * 390
    assert stages["Generator"].self_ns == 5 * 160
    assert "pipeline on the host" in stages["Generator"].advice


def test_calls_of_a_pipeline_that_fetches_in_the_background_are_no_wait():
    def background(pipeline, start, i):
        pipeline.add(start, 900, "IteratorGetNext", "input", thread=5, group=100 + i)
        pipeline.add(start, 900, "Iterator::Root::Map", thread=5)

    result = ANALYSIS.run(trace(**training(5, background)))
    assert (result.verdict.value, result.wait_ns) == ("not input-bound", 0)


def test_handing_a_batch_over_is_told_from_taking_it():
    def send(pipeline, start, i):
        pipeline.add(start, 200, "IteratorGetNext/_1:_Send", "input", thread=4, group=i)
        pipeline.add(start + 50, 100, "IteratorGetNext/_3:_Send", "input", thread=3, group=i)

    (stage,) = stages_of(send).values()
    assert (stage.name, stage.self_ns) == ("handing the batch over", 1000)


def test_a_stage_of_the_programs_own_pipeline_has_the_name_it_was_given():
    def own(pipeline, start, i):
        pipeline.add(start, 300, "load_shard", "input", group=i, _ipl_stage_name="shard reader")

    assert stages_of(own)["shard reader"].self_ns == 1500


def test_two_stages_of_one_kind_are_told_apart_by_their_place():
    def two_maps(pipeline, start, i):
        pipeline.add(start, 500, "IteratorGetNext", "input", group=i)
        pipeline.add(start, 500, "Iterator::Root::Map", id=1)
        pipeline.add(start, 300, "Iterator::Root::Map::Map", id=2, parent_id=1)

    stages = stages_of(two_maps)
    assert (stages["Map (Map)"].self_ns, stages["Map (Map > Map)"].self_ns) == (1000, 1500)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (
            "Iterator::Root::Prefetch::MapAndBatch::Shuffle::TensorSlice",
            ("Prefetch", "MapAndBatch", "Shuffle", "TensorSlice"),
        ),
        (
            "Iterator::Model::ParallelMapV2::Zip[0]::FlatMap[0]::Concatenate",
            ("ParallelMap", "Zip", "FlatMap", "Concatenate"),
        ),
        ("Iterator::Root::MemoryCacheImpl::FlatMap[12]::TFRecord", ("Cache", "FlatMap", "TFRecord")),
        ("Iterator::Root::ParallelInterleaveV4", ("ParallelInterleave",)),
        ("Iterator::Root", ()),
    ],
)
def test_versions_and_positions_are_no_part_of_a_stages_name(name, path):
    assert stage_path(name) == path


def test_a_fused_stage_says_what_it_was_made_of():
    assert fused_from("fused(MapDataset:2,BatchDatasetV2:3)") == ("Map", "Batch")
    assert fused_from("MapDataset/_4") == ()


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("TFRecord", "interleave"),
        ("Generator", "interpreter's lock"),
        ("Map", "num_parallel_calls"),
        ("MapAndBatch", "vectorise"),
        ("Shuffle", "smaller buffer"),
        ("Filter", "Filter early"),
        ("Prefetch", "cannot keep up"),
        ("Unheard", ".prefetch("),
    ],
)
def test_the_advice_fits_the_kind_of_stage(kind, advice):
    assert advice in stage_advice(("Prefetch", "Batch", kind))[0]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("IteratorGetNextAsOptional_4/_2:Identity", "IteratorGetNext"),
        ("IteratorGetNext:IteratorGetNext", "IteratorGetNext"),
        ("load_batch", "load_batch"),
    ],
)
def test_operations_that_take_a_batch_are_named_without_their_suffix(name, label):
    assert take_label(name) == label


def test_a_map_that_calls_python_is_told_about_the_lock():
    def python_map(pipeline, start, i):
        sequential(pipeline, start, i)
        pipeline.add(start + 200, 300, "PyFunc:EagerPyFunc", "op", thread=7)

    assert "calls Python" in stages_of(python_map)["Map"].advice


def test_the_waits_of_random_pipelines_add_up_to_the_time_in_which_a_batch_is_taken():
    random = np.random.default_rng(5)

    def record_batch(pipeline, start, i):
        pipeline.add(start, 800, "IteratorGetNext", "input", group=i)
        for thread in range(4):
            for depth in range(3):
                begin, length = random.integers(0, 700), random.integers(1, 300)
                path = "::".join(["Map"] * (depth + 1))
                pipeline.add(int(start + begin), int(length), f"Iterator::Root::{path}", thread=thread, id=depth)

    view = trace(**training(6, record_batch))
    waits = steady_time(view)[0]
    assert waited_in(forest_of(view, 0), waits)["self_ns"].sum() == 6 * 800


def test_settings_are_read_beside_the_calls():
    settings = pipeline_settings(trace(**training(5, prefetched)))
    prefetch, parallel = settings.stages
    assert (prefetch.kind, prefetch.buffer_limit, prefetch.empty_share, prefetch.calls) == ("Prefetch", 2, 1.0, 5)
    assert (parallel.kind, parallel.parallelism, settings.cpu_budget) == ("ParallelMap", 2, 4)


def codes(record_batch, **changes):
    result = ANALYSIS.run(trace(**training(5, record_batch, **changes)))
    return [finding.code for finding in ANALYSIS.judge(result)]


def test_settings_explain_the_wait_and_cost_nothing_of_their_own():
    result = ANALYSIS.run(trace(**training(5, prefetched)))
    first, *explained = ANALYSIS.judge(result)
    assert (first.code, first.cost_ns) == ("TV101", 2500)
    assert [(finding.code, finding.cost_ns, str(finding.severity)) for finding in explained] == [
        ("TV103", 0, "info"),
        ("TV104", 0, "info"),
    ]


def test_a_pipeline_that_keeps_up_is_left_alone():
    assert codes(prefetched, step_ns=10_001) == []


def test_a_sequential_map_without_prefetch_is_said_twice():
    assert codes(sequential) == ["TV101", "TV106", "TV105"]


@pytest.mark.parametrize(("empty_calls", "raised"), [(2, False), (3, True)])
def test_a_prefetch_runs_empty_from_half_of_its_calls_on(empty_calls, raised):
    def partly(pipeline, start, i):
        pipeline.add(start, 500, "IteratorGetNext", "input", group=i)
        pipeline.add(start, 500, "Iterator::Root::Prefetch", buffered_elements=0 if i < empty_calls else 2)

    assert ("TV103" in codes(partly)) == raised


@pytest.mark.parametrize(
    ("parallelism", "autotune", "raised"), [(3, "false", True), (4, "false", False), (3, "true", False)]
)
def test_cores_are_left_idle_below_the_budget_unless_the_runtime_tunes(parallelism, autotune, raised):
    def mapped(pipeline, start, i):
        pipeline.add(start, 500, "IteratorGetNext", "input", group=i)
        pipeline.add(start, 500, "Iterator::Root", cpu_budget=4)
        pipeline.add(start, 500, "Iterator::Root::ParallelMapV2", parallelism=parallelism, autotune=autotune)

    assert ("TV104" in codes(mapped)) == raised


@pytest.mark.parametrize(("used", "raised"), [("899 out of 1000 (89.90%)", False), ("900 out of 1000 (90.00%)", True)])
def test_the_memory_budget_is_used_up_from_nine_tenths_on(used, raised):
    def full(pipeline, start, i):
        pipeline.add(start, 500, "IteratorGetNext", "input", group=i)
        pipeline.add(start, 500, "Iterator::Root", ram_usage_megabytes=used, ram_budget_megabytes=1000)
        pipeline.add(start, 500, "Iterator::Root::Prefetch", buffered_elements=1)

    assert ("TV107" in codes(full)) == raised


def test_a_trace_without_properties_still_names_stages_of_one_thread():
    tables = training(5, sequential)
    del tables["op_args"]
    assert ANALYSIS.run(trace(**tables)).stages[0].name == "Map"


@pytest.mark.parametrize(("buffered", "advice"), [(0, "cannot keep up"), (3, "Batches were ready")])
def test_a_prefetch_that_was_never_empty_is_not_blamed_on_the_stages_before_it(buffered, advice):
    def ready(pipeline, start, i):
        pipeline.add(start, 500, "IteratorGetNext", "input", group=i)
        pipeline.add(start, 500, "Iterator::Root::Prefetch", buffered_elements=buffered)

    first = ANALYSIS.judge(ANALYSIS.run(trace(**training(5, ready))))[0]
    assert advice in first.advice[0]


def test_a_wait_that_is_not_the_pipelines_is_not_explained_by_its_settings():
    def send(pipeline, start, i):
        pipeline.add(start, 400, "IteratorGetNext/_1:_Send", "input", thread=4, group=i)
        pipeline.add(start + 600, 1, "IteratorGetNext", "input", group=i)
        pipeline.add(start + 600, 1, "Iterator::Root::Map")

    assert codes(send) == ["TV101"]


def test_of_8_settings_only_those_that_a_stage_has_are_columns():
    settings = PipelineSettings((StageSettings(("ParallelMap",), 3, parallelism=4),))
    grid = next(block for block in describe_settings(settings) if isinstance(block, Grid))
    assert [column.name for column in grid.columns if column.importance < 9] == ["stage", "parallelism"]


def waiting(*stages):
    """Return a batch taken in 500 ns of each step, from ``stages``: name and properties, from the consumer on."""

    def record_batch(pipeline, start, i):
        pipeline.add(start, 500, "IteratorGetNext", "input", group=i)
        for place, (name, properties) in enumerate(stages, 1):
            pipeline.add(start + place, 500 - 2 * place, f"Iterator::Root::{name}", **properties)

    return record_batch


def messages(tables):
    return {finding.code: finding.message for finding in ANALYSIS.judge(ANALYSIS.run(trace(**tables)))}


@pytest.mark.parametrize("last", ["FiniteTake", "FiniteSkip", "ForeverRepeat", "MaxIntraOpParallelism"])
def test_a_prefetch_before_a_stage_that_only_passes_elements_on_counts_as_the_end(last):
    explained = messages(training(5, waiting((last, {}), (f"{last}::Prefetch", {"buffered_elements": 0}))))
    assert sorted(explained) == ["TV101", "TV103"]


def test_the_last_stage_without_a_prefetch_is_the_1_that_works():
    explained = messages(training(5, waiting(("MaxIntraOpParallelism", {}), ("MaxIntraOpParallelism::BatchV2", {}))))
    assert explained["TV105"].startswith("The pipeline ends in Batch, without a prefetch")


def test_the_prefetch_of_a_validation_between_2_epochs_says_nothing_of_the_training():
    def record_batch(pipeline, start, i):
        waiting(("BatchV2", {}))(pipeline, start, i)
        if i == 4:
            pipeline.add(9000, 490, "Iterator::Root::Prefetch", buffered_elements=0)

    explained = messages(training(5, record_batch))
    assert explained["TV105"].startswith("The pipeline ends in Batch, without a prefetch")


def test_figures_that_the_last_of_5_calls_could_not_read_are_those_of_the_call_before():
    def record_batch(pipeline, start, i):
        known = {"parallelism": 2, "cpu_budget": 4} if i < 4 else {"parallelism": "unavailable"}
        waiting(("ParallelMapV2", known))(pipeline, start, i)

    assert messages(training(5, record_batch))["TV104"] == (
        "ParallelMap works on 2 elements at once, where the pipeline may use 4 cores."
    )


def test_1_call_1_element_and_1_core_are_singular():
    stages = (("Prefetch", {"buffered_elements": 0}), ("Prefetch::ParallelMapV2", {"parallelism": 1, "cpu_budget": 2}))
    explained = messages(training(1, waiting(*stages)))
    assert explained["TV103"] == "In 100.0 % of its 1 call, the prefetch buffer was found empty."
    assert "works on 1 element at once" in explained["TV104"]
    settings = PipelineSettings((StageSettings(("Prefetch",), 1),), cpu_budget=1)
    assert describe_settings(settings)[-1].text == "The pipeline may use 1 core and ends in a prefetch."
