"""Quantiles of Student's t, against the density integrated by the trapezoidal rule."""

import math

import numpy as np
import pytest

from traceviz.core import resampling


def inside(quantile, freedom):
    """Return the probability between ``-quantile`` and ``quantile``."""
    at = np.linspace(0.0, quantile, 20_001)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return 2 * scale * float(np.trapezoid((1 + at**2 / freedom) ** (-(freedom + 1) / 2), at))


@pytest.mark.parametrize(
    ("freedom", "off_by"),
    [
        *((whole, 6e-6) for whole in range(1, 30)),
        (1.5, 0.0115),
        (2.25, 2e-3),
        (7.5, 3e-5),
        (12.9, 6e-6),
        (29.5, 6e-6),
        (30, 2e-5),
        (45, 5e-6),
        (200, 1e-6),
    ],
)
def test_95_percent_lie_inside_in_the_table_between_its_lines_and_beyond_it(freedom, off_by):
    assert inside(resampling.student(freedom), freedom) == pytest.approx(0.95, abs=off_by)


def test_less_than_1_degree_of_freedom_counts_as_1():
    assert resampling.student(0.3) == resampling.student(1.0) == pytest.approx(12.7062)
