"""Kernels by name, compared with xprof's ``kernel_stats`` on the same captures."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.conftest import REPOSITORY
from traceviz import api

from .conftest import Ask

pytestmark = pytest.mark.oracle

SYNTHETIC = REPOSITORY / "sample_traces" / "synthetic"
SAMPLES = ("gpu_keras_input_bound", "gpu_jax_healthy", "gpu_events_dropped")
PUBLIC = (
    "ecbme4040__e4040-2022fall-assign2-yg2820__2022_11_04_21_26_12__instance-ecbm.xplane.pb",
    "tensorflow__profiler__34.83.195.179_6003.xplane.pb",
)
NO_KERNEL = ("Memcpy", "Memset")
"""Prefixes of the names of copies and fills, which xprof lists among the kernels."""


def of_xprof(answer: dict[str, list[dict[str, float]]]) -> dict[str, tuple[int, int]]:
    """Return occurrences and total nanoseconds by name; xprof has a row for every launch shape and op."""
    kernels: dict[str, tuple[int, int]] = {}
    for row in answer["rows"]:
        name = str(row["kernel_name"])
        if not name.startswith(NO_KERNEL):
            calls, total = kernels.get(name, (0, 0))
            kernels[name] = (calls + int(row["occurrences"]), total + round(row["total_duration_us"] * 1000))
    return kernels


def of_traceviz(file: Path) -> dict[str, tuple[int, int]]:
    """Return the same from the table of kernels."""
    kernels = api.open_trace(file, tables={"kernels"}).kernels
    totals = kernels.group_by(pl.col("name").cast(pl.String)).agg(pl.len(), pl.col("dur_ns").sum()).collect()
    return {name: (calls, total) for name, calls, total in totals.iter_rows()}


@pytest.mark.parametrize("name", SAMPLES)
def test_kernels_of_the_samples_equal_those_of_xprof(name: str, ask_xprof: Ask) -> None:
    file = SYNTHETIC / f"{name}.xplane.pb"
    expected = of_xprof(ask_xprof("kernel_stats", file))
    assert len(expected) >= 3
    assert of_traceviz(file) == expected


@pytest.mark.parametrize(("name", "kernels"), list(zip(PUBLIC, (116, 1330), strict=True)))
def test_kernels_of_public_captures_equal_those_of_xprof(
    name: str, kernels: int, ask_xprof: Ask, public_traces: Path
) -> None:
    file = public_traces / "xplane" / name
    expected = of_xprof(ask_xprof("kernel_stats", file))
    assert sum(calls for calls, _ in expected.values()) == kernels
    assert of_traceviz(file) == expected
