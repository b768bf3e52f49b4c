"""NVIDIA's own ``nsys stats`` as an oracle: its printed tables, and the same sums from our tables.

Names are compared as the contract has them: without the ``_vNNNN`` suffix of API functions, which NVIDIA's scripts
strip from four digits only.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceviz.trace.tables import TraceTables

COPY_WORDS = {"h2d": "HtoD", "d2h": "DtoH", "d2d": "DtoD", "p2p": "PtoP", "h2h": "HtoH", "unknown": "Unknown"}
SUMMARIES = (
    "cuda_api_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
    "osrt_sum",
    "nvtx_sum",
)


@dataclass(frozen=True, slots=True)
class Expected:
    """One printed row: its key, exact integers, and figures rounded to ``digits``."""

    key: tuple[str, ...]
    count: int
    total: float
    minimum: float
    maximum: float
    median: float
    mean: float
    percent: float | None
    digits: int


def expected_rows(path: Path) -> list[Expected]:
    """Return rows of a printed summary."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [_row(row, "MB" if "Total (MB)" in row else "ns") for row in rows]


def _row(row: dict[str, str], unit: str) -> Expected:
    count = next(row[name] for name in ("Num Calls", "Instances", "Count") if name in row)
    names = [row[name] for name in ("GridXYZ", "BlockXYZ", "Style", "Name", "Operation", "Range") if name in row]
    total = row["Total Time (ns)"] if unit == "ns" else row["Total (MB)"]
    figures = [float(row[f"{name} ({unit})"]) for name in ("Min", "Max", "Med", "Avg")]
    percent = float(row["Time (%)"]) if "Time (%)" in row else None
    key = tuple(re.sub(r"_v\d{4,5}$", "", " ".join(name.split())) for name in names)
    return Expected(key, int(count), float(total), *figures, percent, digits=1 if unit == "ns" else 3)


def summary(tables: TraceTables, name: str) -> pl.DataFrame:
    """Return the same summary of our tables: key columns, count, total, minimum, maximum, median, mean, percent."""
    frame, keys = _SOURCES[name](tables)
    value = pl.col("value")
    sums = frame.group_by(keys).agg(
        pl.len().alias("count"),
        value.sum().alias("total"),
        value.min().alias("minimum"),
        value.max().alias("maximum"),
        value.median().alias("median"),
        value.mean().alias("mean"),
    )
    return sums.with_columns((pl.col("total") * 100.0 / pl.col("total").sum()).alias("percent"))


def differences(tables: TraceTables, path: Path) -> list[str]:
    """Return rows in which our tables disagree with the printed summary at ``path``; empty if all agree."""
    ours = {tuple(row[:-7]): row[-7:] for row in summary(tables, path.stem).iter_rows()}
    return [problem for row in expected_rows(path) for problem in _compared(row, ours)]


def _compared(row: Expected, ours: dict[tuple[str, ...], Sequence[float]]) -> list[str]:
    if row.key not in ours:
        return [f"{row.key}: missing"]
    count, total, minimum, maximum, median, mean, percent = ours[row.key]
    half = 0.5 * 10**-row.digits + 1e-6  # means of seconds in nanoseconds have 16 digits
    exact = half if row.digits == 3 else 0
    pairs = [
        ("count", count, row.count, 0),
        ("total", total, row.total, exact),
        ("minimum", minimum, row.minimum, exact),
        ("maximum", maximum, row.maximum, exact),
        ("median", median, row.median, half),
        ("mean", mean, row.mean, half),
    ]
    pairs += [] if row.percent is None else [("percent", percent, row.percent, 0.05 + 1e-9)]
    return [f"{row.key} {figure}: {got} != {want}" for figure, got, want, slack in pairs if abs(got - want) > slack]


def _named(table: str):
    def frame(tables: TraceTables) -> tuple[pl.DataFrame, list[str]]:
        return tables.scan(table).select(_text("name"), pl.col("dur_ns").alias("value")).collect(), ["name"]

    return frame


def _kernels(tables: TraceTables) -> tuple[pl.DataFrame, list[str]]:
    shape = [
        pl.concat_str([pl.col(f"{part}_{axis}").cast(pl.String) for axis in "xyz"], separator=" ").alias(part)
        for part in ("grid", "block")
    ]
    frame = tables.kernels.select(*shape, _text("name"), pl.col("dur_ns").alias("value")).collect()
    return frame, ["grid", "block", "name"]


def _text(column: str) -> pl.Expr:
    """Return names with single blanks: keys of both sides are compared that way."""
    return pl.col(column).cast(pl.String).str.replace_all(r"\s+", " ").str.strip_chars()


def _memory(column: str, scale: float | None):
    def frame(tables: TraceTables) -> tuple[pl.DataFrame, list[str]]:
        value = pl.col(column) / scale if scale else pl.col(column)
        kind = pl.col("kind").cast(pl.String).replace_strict(COPY_WORDS)
        copies = tables.memcpy.select(("[CUDA memcpy " + kind + "]").alias("name"), value.alias("value"))
        fills = tables.memset.select(pl.lit("[CUDA memset]").alias("name"), value.alias("value"))
        return pl.concat([copies, fills]).collect(), ["name"]

    return frame


def _nvtx(tables: TraceTables) -> tuple[pl.DataFrame, list[str]]:
    """Ranges that never ended last until the last event; names of named domains are prefixed with them."""
    domain = pl.col("domain").cast(pl.String)
    prefix = pl.when((domain == "") | domain.str.contains(r"^\[domain \d+\]$")).then(pl.lit("")).otherwise(domain + ":")
    kind = pl.col("kind").cast(pl.String)
    style = kind.replace({"push_pop": "PushPop", "start_end": "StartEnd"}).alias("style")
    end = (pl.col("start_ns") + pl.col("dur_ns").fill_null(0)).max() - pl.col("start_ns")
    ranges = tables.nvtx.with_columns(pl.col("dur_ns").fill_null(end)).filter(kind != "mark")
    named = ranges.select(style, (prefix + _text("name")).alias("name"), pl.col("dur_ns").alias("value"))
    return named.collect(), ["style", "name"]


_SOURCES = {
    "cuda_api_sum": _named("cuda_api"),
    "cuda_gpu_kern_sum": _kernels,
    "cuda_gpu_mem_time_sum": _memory("dur_ns", None),
    "cuda_gpu_mem_size_sum": _memory("bytes", 1e6),
    "osrt_sum": _named("os_calls"),
    "nvtx_sum": _nvtx,
}
