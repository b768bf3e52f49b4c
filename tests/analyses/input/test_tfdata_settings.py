"""Settings of a pipeline as the trace records them."""

import polars as pl
import pytest

from traceviz.analyses.input.tfdata_settings import _largest


@pytest.mark.parametrize(
    ("values", "largest"), [([8, 12, None], 12), ([-1], None), ([0], None), ([None], None), ([], None)]
)
def test_a_budget_is_the_largest_number_above_0(values, largest):
    args = pl.DataFrame(
        {"key": ["cpu_budget"] * len(values), "integer": values}, {"key": pl.String, "integer": pl.Int64}
    )
    other = pl.DataFrame({"key": ["other"], "integer": [99]}, args.schema)
    assert _largest(pl.concat([args, other]), "cpu_budget") == largest
