"""Shares of CUDA functions: those with 1 % or more, and the rest as one."""

import pytest

from traceviz.render.figures.of_reports import api
from traceviz.render.figures.values import NoFigure, RankedBars
from traceviz.report import Column, Fact, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode

MS = 1_000_000
COLUMNS = (
    *(Column("name", "Function"), Column("domain", "API"), Column("calls", "Calls", "count", additive=True)),
    *(Column("total_ns", "Total", "ns", additive=True), Column("share_of_api", "Share", "ratio", additive=True)),
)


def of(*rows):
    grid = Grid(
        COLUMNS, tuple((name, domain, calls, round(share * 100 * MS), share) for name, domain, calls, share in rows)
    )
    run = (Fact("source", "trace", "train.nsys-rep"),)
    return api(Report(run, Verdict(VerdictCode.NONE, ""), (Section("cuda_api", "", (grid,)),)))


def test_functions_below_1_percent_are_one_bar():
    found = of(
        *(("cudaMalloc", "runtime", 9, 0.01), ("cudaLaunchKernel", "runtime", 1_000, 0.973)),
        *(("cudaFree", "runtime", 3, 0.0099), ("cuInit", "driver", 1, 0.0071)),
    )
    assert isinstance(found, RankedBars)
    assert [bar.label for bar in found.bars] == ["cudaLaunchKernel", "cudaMalloc", "2 other functions"]
    assert [bar.value for bar in found.bars] == pytest.approx([0.973, 0.01, 0.017])
    assert [bar.detail for bar in found.bars] == ["97.3 ms in 1,000 calls", "1.00 ms in 9 calls", "1.70 ms in 4 calls"]
    assert found.subtitle == "1,013 calls, 100 ms on all threads, of train.nsys-rep"


def test_functions_of_one_name_in_two_apis_are_told_apart():
    found = of(("cudaFree", "runtime", 1, 0.6), ("cudaFree", "driver", 1, 0.4))
    assert isinstance(found, RankedBars)
    assert [bar.label for bar in found.bars] == ["cudaFree (runtime)", "cudaFree (driver)"]


def test_of_30_functions_with_3_percent_each_20_have_a_bar():
    found = of(*((f"f{n}", "runtime", 1, 1 / 30) for n in range(30)))
    assert isinstance(found, RankedBars)
    assert len(found.bars) == 21
    assert found.bars[-1].label == "10 other functions"


def test_a_trace_without_calls_has_no_such_figure():
    assert of() == NoFigure("no CUDA call was recorded")
