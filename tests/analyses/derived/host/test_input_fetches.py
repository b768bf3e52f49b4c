"""Ranges that hold what operations recorded as well."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.input_fetches import (
    ANNOTATION,
    FETCHED_PART,
    SAME_SHARE,
    _is_covered,
    input_ops,
    is_input,
    parameter_fetches,
)


def spans(*pairs):
    return pl.DataFrame({"start_ns": [start for start, _ in pairs], "end_ns": [end for _, end in pairs]})


@pytest.mark.parametrize(
    ("operations", "again"),
    [
        ([(0, 1), (10, 11)], [True, True, False]),  # ranges of 1 ns, 1 ns and 100 ns
        ([(0, 1)], [True, False, False]),
        ([(20, 20 + round(SAME_SHARE * 100))], [False, False, True]),
        ([(20, 19 + round(SAME_SHARE * 100))], [False, False, False]),
        ([(30, 20 + round(SAME_SHARE * 100)), (0, 1), (10, 11)], [False, False, False]),
    ],
)
def test_of_3_ranges_those_are_recorded_that_hold_operations_if_most_of_them_is_covered(operations, again):
    ranges = spans((0, 1), (10, 11), (20, 120))
    assert _is_covered(ranges, spans(*operations)).to_list() == again


@pytest.mark.parametrize(
    ("name", "is_input"),
    [
        ("data loading", True),
        ("## data_load ##", True),
        ("## wait_for_training_batch ##", True),
        ("## load_batch 12 ##", True),
        ("=== next batch ===", True),
        ("[pl][profile][_TrainingEpochLoop].train_dataloader_next", True),
        ("## sparse_data_dist ##", False),
        ("## forward ##", False),
        ("## copy_batch_to_gpu ##", False),  # moves a batch; what takes it has a name of its own
        ("## all2all_data:kjt values ##", False),
        ("wait_sparse_data_dist", False),
        ("[param|input]", False),
        ("metadata", False),
    ],
)
def test_an_annotation_is_of_input_by_its_whole_name_whatever_is_put_around_it(name, is_input):
    assert pl.Series([name]).str.contains(ANNOTATION).to_list() == [is_input]


def python(*names, **further):
    """Return functions of 50 ns each, 100 ns apart, in a step; a kernel in each gap."""
    calls = [(100 * n, 50, name, "python") for n, name in enumerate(names)]
    return trace(steps=[(0, 1000, 0)], host_ops=[*calls, *further.pop("ops", [])], kernels=[(60, 30, "k")], **further)


@pytest.mark.parametrize(
    ("name", "is_input"),
    [
        ("/home/me/data.py(12): load_batch", True),
        ("train.py(88): get_batch", True),
        ("$data.py:12 next_batch", True),
        ("train.py(3): _get_images", True),
        ("video.py(12): preprocess", False),  # of a request, say
        ("model.py(12): get_batch_size", False),
        ("model.py(12): data", False),
        ("torch/utils/data/dataloader.py(700): _next_data", False),
        ("/usr/lib/python3.11/site-packages/plot/lines.py(7): get_data", False),
    ],
)
def test_a_python_function_of_the_program_takes_a_batch_by_its_name(name, is_input):
    assert input_ops(python("train.py(1): main", name, name), 0)["name"].to_list() == [name, name] * is_input


def test_functions_are_looked_at_only_where_nothing_else_takes_a_batch_and_the_outermost_counts():
    load = "data.py(12): load_batch"
    assert input_ops(python(load, load), 0)["start_ns"].to_list() == [0, 100]
    assert input_ops(python(load), 0).height == 0  # before the steps, once
    nested = python(load, load, ops=[(10, 20, "data.py(40): load_images", "python")])
    assert input_ops(nested, 0)["name"].to_list() == [load, load]
    loader = python(load, load, ops=[(300, 9, "enumerate(DataLoader)#_X.__next__", "input")])
    assert input_ops(loader, 0)["start_ns"].to_list() == [300]


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("data loading", True),
        ("next batch", True),
        ("load_data", True),
        ("## sparse_data_dist ##", False),
        ("data_parallel", False),
        ("all2all_tw_data:init", False),
        ("input_proj", False),
        ("get_data_ptr", False),
        ("update_data", False),
        ("data transfer", False),
    ],
)
def test_ranges_that_only_move_data_or_weights_do_not_load_input(name, loads):
    ranges = pl.DataFrame({"name": [name], "category": [None]}, schema={"name": pl.String, "category": pl.String})
    assert ranges.select(is_input(None)).to_series().to_list() == [loads]


@pytest.mark.parametrize(
    ("name", "is_part"),
    [
        ("prefetch_layers_[2, 3]", True),
        ("prefetch_h2d_layer_3", True),
        ("stream expert 7", True),
        ("weights_prefetch", True),
        ("prefetch", False),
        ("prefetch_batch", False),
        ("load_images", False),
        ("player fetch", False),
    ],
)
def test_a_range_that_fetches_parts_of_the_model_takes_no_batch(name, is_part):
    assert pl.Series([name]).str.contains(FETCHED_PART).to_list() == [is_part]
    names = pl.DataFrame({"name": [name], "category": [None]}, schema={"name": pl.String, "category": pl.String})
    assert names.select(is_input(None)).to_series().to_list() == [not is_part and name != "player fetch"]


def test_a_range_within_a_fetch_of_parameters_is_of_parameters_too():
    """
    prefetch_layer_3   |----------------------|
    prefetch wq           |------|
    prefetch                                       |----|      on its own: of the input
    """
    layer, part = (0, 100, "prefetch_layer_3"), (10, 50, "prefetch wq")
    assert parameter_fetches(trace(nvtx=[layer, part])) == {"prefetch_layer_3", "prefetch wq"}
    assert parameter_fetches(trace(nvtx=[layer, (200, 50, "prefetch")])) == {"prefetch_layer_3"}
    assert parameter_fetches(trace(nvtx=[part])) == frozenset()
