"""Figures of the host of two sides: means over runs, and what of them people see."""

from __future__ import annotations

import pytest

from tests.compare.sections_of import run, section, side, table
from traceviz.compare.changes.machine_use import compare_host
from traceviz.report import Column, Fact, Facts, Grid


def host_section(cpu, rss, read):
    known = Facts(
        (Fact("cpu_mean", "CPU", cpu, "ratio"), Fact("rss_max", "memory", rss, "bytes"), Fact("samples", "n", 9))
    )
    rows = (("cpu_percent", "", "%", cpu * 100, 0, 100.0), ("power", "GPU 0", "W", 250.0, 0, None), *read)
    return section("host", known, table("Metrics in the units ...", "metric device unit mean p95 max", *rows))


def test_the_host_is_told_by_means_over_runs():
    base = side("base", run(1, host_section(0.2, 100, ())), run(1, host_section(0.4, 300, ())))
    new = side("new", run(1, host_section(0.9, 100, (("read", "", "bytes/s", 5.0, 0, 6.0),))))
    figures = {change.key: change for change in compare_host(base, new).changes}
    assert (figures["cpu_mean"].base, figures["cpu_mean"].new) == (pytest.approx(0.3), 0.9)
    assert figures["cpu_mean"].ratio == pytest.approx(2.0)
    assert (figures["rss_max"].base, figures["rss_max"].ratio, figures["rss_max"].unit) == (200, -0.5, "bytes")
    assert (figures["host.cpu_percent.mean"].new, figures["host.cpu_percent.mean"].unit) == (
        pytest.approx(0.9),
        "ratio",
    )
    assert (figures["GPU 0.power.mean"].base, figures["GPU 0.power.mean"].label) == (250.0, "GPU 0 power, W, mean")
    assert (figures["host.read.max"].base, figures["host.read.max"].new, figures["host.read.max"].ratio) == (
        None,
        6.0,
        None,
    )
    assert "samples" not in figures
    assert "GPU 0.power.max" not in figures
    assert compare_host(base, side("new", run(1))).why_not == "new did not record host resources"


def test_of_the_host_people_see_the_program_and_what_differs():
    sections = [
        section(
            "host",
            Facts(
                (
                    Fact("cpu_mean", "CPU", 0.5, "ratio"),
                    Fact("cores", "usable cores", cores),
                    Fact("physical_cores", "physical cores", 8),
                    Fact("sampler_cost", "sampling took", cost, "ratio"),
                )
            ),
            table("Metrics", "metric device unit mean p95 max", ("power", "GPU 0", "W", power, 0, 300.0)),
        )
        for cores, cost, power in ((4, 0.1, 200.0), (8, 0.2, 209.0))
    ]
    compared = compare_host(*(side(name, run(1, host)) for name, host in zip(("base", "new"), sections, strict=True)))
    assert [change.key for change in compared.notable] == ["cpu_mean", "cores"]
    assert [change.key for change in compared.changes][2:] == ["physical_cores", "GPU 0.power.mean", "GPU 0.power.max"]


def test_a_grid_without_columns_is_no_metric():
    empty = section("host", Grid((), ()), Grid((Column("metric", "m"),), ()))
    assert compare_host(side("a", run(1, empty)), side("b", run(1, empty))).changes == ()
