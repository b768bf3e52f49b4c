"""Numbers with units as nvprof prints them: ``133.81ms`` in columns of text, a row of units above numbers in CSV."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array, pc

_QUANTITY = r"^\s*(?P<number>[0-9]+(?:\.[0-9]*)?)\s*(?P<unit>[A-Za-z]*)\s*$"
_LARGEST = 2.0**62


def whole(values: Array, factors: Mapping[str, float], unit: str = "") -> Array:
    """Return printed ``values`` as whole numbers of the base unit; null for other texts.

    Six decimals of milliseconds are exact to the nanosecond, and of kilobytes to the byte; larger units are exact only
    to their printed digits. The product itself is exact below 2**53.

    Args:
        values: Strings.
        factors: The units that may follow a number, with the base units in each.
        unit: The unit of numbers without one.
    """
    parts = pc.extract_regex(values, _QUANTITY)
    number, stated = (pc.struct_field(parts, [index]) for index in (0, 1))
    of_unit = pa.array([factors.get(unit or "", np.nan), *factors.values()])
    place = pc.fill_null(pc.index_in(stated, value_set=pa.array(list(factors), pa.string())), -1)
    known = of_unit.take(pc.if_else(pc.equal(stated, ""), 0, pc.add(place, 1)))
    foreign = pc.and_(pc.not_equal(stated, ""), pc.equal(place, -1))
    product = pc.multiply(pc.cast(number, pa.float64()), known)
    usable = pc.and_(pc.less(product, _LARGEST), pc.invert(foreign))  # comparisons with "not a number" are false
    return pc.cast(pc.round(pc.if_else(usable, product, pa.scalar(None, pa.float64()))), pa.int64())
