"""Changes between two sides, as their reports show them: one change at a time."""

from __future__ import annotations

import pytest

from tests.compare.sections_of import facts, kernels, run, section, side, table, tagged
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document
from traceviz.compare.work.settings import Changed, settings_changed


def changed(before, after):
    return settings_changed(side("base", run(12, before)), side("new", run(12, after)))


def matrices(*rows):
    return section("precision", table("", "type precision total_ns", *[("gemm", *row) for row in rows]))


def copied(*rows):
    return section(
        "copies", table("", "kind src_memory bytes", *rows), table("In steady steps", "kind calls total_ns bytes")
    )


def loaded_by(stage, advice=None):
    row = (stage, "DataLoader", 1, None, advice)
    return section("input_pipeline", table("", "stage kind self_ns path advice", row))


def api(name):
    return section("cuda_api", table("In steady steps", "name domain calls total_ns", (name, "runtime", 12, 5)))


def pipeline(**parallelism):
    return section("input_pipeline", facts(prefetches=True), table("", "stage parallelism", *parallelism.items()))


def test_precision_is_that_of_most_of_the_time():
    (change,) = changed(matrices(("tf32", 900), ("f32", 95), ("unknown", 5)), matrices(("f16", 600), ("unknown", 400)))
    assert change == Changed(
        "precision",
        "precision of matrix products",
        "tf32 90.0 %, f32 9.5 %",
        "f16 60.0 %, unknown 40.0 %",
        "matrix products in f16 rather than tf32",
    )


@pytest.mark.parametrize(("half", "is_said"), [(299, False), (300, True)])
def test_a_fifth_more_in_another_precision_is_a_change(half, is_said):
    found = changed(matrices(("f32", 900), ("bf16", 100)), matrices(("f32", 1000 - half), ("bf16", half)))
    assert [change.brief for change in found] == ["more matrix products in bf16"] * is_said


def test_a_side_whose_names_say_nothing_of_precision_says_nothing():
    assert changed(matrices(("unknown", 10)), matrices(("f16", 10))) == ()
    assert changed(section("kernels"), matrices(("f16", 10))) == ()


def test_pinned_memory_is_a_change_of_copies_to_the_device_by_their_bytes():
    before = copied(("h2d", "pageable", 900), ("h2d", "pinned", 100), ("d2h", "device", 5000))
    after = copied(("h2d", "pinned", 800), ("h2d", "pageable", 200), ("d2h", "device", 10))
    (change,) = changed(before, after)
    assert (change.base, change.new) == ("pageable 90.0 %, pinned 10.0 %", "pinned 80.0 %, pageable 20.0 %")
    assert change.brief == "copies to the device from pinned rather than pageable memory"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("single-process DataLoader (num_workers=0)", "multi-process DataLoader"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "#_MultiProcessingDataLoaderIter.__next__"),
    ],
)
def test_worker_processes_are_told_by_the_loader(before, after):
    (change,) = changed(loaded_by(before), loaded_by(after))
    assert change.brief == "data loaded by worker processes rather than the training process"
    (back,) = changed(loaded_by(after), loaded_by(before))
    assert (back.base, back.new) == ("worker processes", "the training process")


def test_advice_about_workers_does_not_tell_who_loads_the_data():
    advised = loaded_by("multi-process DataLoader", "num_workers=0 loads in the training process")
    assert changed(loaded_by("multi-process DataLoader"), advised) == ()


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"])
def test_graphs_are_on_where_steps_launch_them(name):
    (on,) = changed(api("cudaLaunchKernel"), api(name))
    assert (on.key, on.base, on.new) == ("graphs", "off", "on")
    assert changed(section("copies"), api(name)) == ()  # not recorded is not off


def test_compiled_kernels_and_attention_in_one_kernel_are_told_by_kernels():
    before = kernels(("softmax_warp_forward", "softmax", 12, 100), ("sgemm", "gemm", 12, 900))
    after = kernels(("flash_fwd_kernel", "attention", 12, 100), ("triton_poi_fused_0", "fusion", 12, 900))
    assert [(change.key, change.new) for change in changed(before, after)] == [("compiled", "on"), ("attention", "on")]


def test_stages_of_a_pipeline_are_told_where_they_occur_once():
    (change,) = changed(pipeline(Map=None, Batch=None), pipeline(Map=8, Batch=None))
    assert (change.label, change.base, change.new) == (
        "parallelism of Map",
        "one at a time",
        "in parallel, 8 at a time",
    )


def test_prefetch_is_off_and_on():
    base, new = (section("input_pipeline", facts(prefetches=state)) for state in (True, False))
    (change,) = changed(base, new)
    assert change.brief == "prefetch at the end of the pipeline off"


def test_tags_that_differ_are_listed_and_repeats_are_not():
    found = changed(tagged(workers="0", seed="1", only="a"), tagged(workers="4", seed="2"))
    assert found == (Changed("tag.workers", "workers", "0", "4"),)


def test_the_verdict_names_3_changes_and_the_section_all_of_them():
    base = side("a", run(12, matrices(("f32", 1)), copied(("h2d", "pageable", 9)), kernels(("k", "gemm", 12, 9))))
    others = (
        matrices(("f16", 1)),
        copied(("h2d", "pinned", 9)),
        kernels(("k", "gemm", 12, 9), ("triton_k", "fusion", 12, 9)),
    )
    page = document(compare([base, side("b", run(12, *others, tagged(workers="4")))]))
    assert page.verdict.sentence.endswith(
        "Changed: matrix products in f16 rather than f32; copies to the device from pinned rather than pageable "
        "memory; compiled kernels (torch.compile, XLA) on."
    )
    (grid,) = page.grids("changed")
    assert [row[0] for row in grid.rows] == ["precision", "memory", "compiled"]
    same = document(compare([base, base]))
    assert list(same.grids("changed")) == []
    assert "Changed:" not in same.verdict.sentence


def test_every_change_of_a_path_says_what_was_changed():
    loaders = [side(f"run{workers}", run(12, tagged(workers=str(workers)))) for workers in (0, 4, 4)]
    page = document(compare([*loaders[:2], side("copy", run(13, tagged(workers="4")))]))
    (changes, *_) = page.grids("changed")
    assert [row[:2] + row[3:] for row in changes.rows] == [("run4", "run0", "0", "4")]
    path = list(page.grids("effect"))[1]
    assert [row[-1] for row in path.rows] == ["workers 4", None, "workers 4"]


def stated(command="python train.py", **settings):
    values = {"command": command} | {f"setting.{key.replace('__', '.')}": value for key, value in settings.items()}
    return section("run", facts(**values))


def test_threads_are_named_once_though_the_environment_set_them():
    found = changed(
        stated(threads__intra_op="32", OMP_NUM_THREADS="32"), stated(threads__intra_op="2", OMP_NUM_THREADS="2")
    )
    assert [change.brief for change in found] == ["threads of an operator 2 rather than 32", ""]
    assert [(change.base, change.new) for change in found] == [("32", "2"), ("32", "2")]


def test_a_variable_of_one_side_was_unset_on_the_other():
    found = changed(stated(threads__intra_op="2"), stated(threads__intra_op="2", MKL_NUM_THREADS="1"))
    assert [change.brief for change in found] == ["MKL_NUM_THREADS 1 rather than unset"]


@pytest.mark.parametrize(
    ("command", "brief"),
    [
        ("python train.py --threads 2", ["arguments 2 rather than 32"]),
        ("python train.py --threads 32 --compile", ["arguments --compile rather than none"]),
        ("python train.py --threads 32", []),
        ("python other.py --threads 2", []),  # another program
    ],
)
def test_arguments_of_the_same_script_are_compared_word_by_word(command, brief):
    found = changed(stated("python train.py --threads 32"), stated(command))
    assert [change.brief for change in found] == brief


def test_runs_that_state_no_settings_have_none_changed():
    assert changed(section("run"), stated(threads__intra_op="2")) == ()
