"""Ranges that hold what operations recorded as well."""

import polars as pl
import pytest

from traceviz.analyses.derived.input_fetches import ANNOTATION, SAME_SHARE, _covered


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
    assert _covered(ranges, spans(*operations)).to_list() == again


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
