"""Numbers of arguments as columns of the contract."""

import numpy as np
import pyarrow as pa
import pytest

from traceviz.parsers.kineto.columns import Numbers, narrow


@pytest.mark.parametrize(("kind", "most"), [(pa.int32(), 2**31 - 1), (pa.int16(), 2**15 - 1)])
def test_a_number_is_known_from_0_to_the_largest_of_its_kind(kind, most):
    values = np.array([-1, 0, 7, most, most + 1, 5], np.int64)
    known = np.array([True, True, True, True, True, False])
    assert narrow(Numbers(values, known), kind).to_pylist() == [None, 0, 7, most, None, None]
