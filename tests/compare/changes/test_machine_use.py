"""Use of devices and of the host on two sides."""

from __future__ import annotations

import math

import pytest

from tests.compare.sections_of import facts, run, section, side, table
from tests.support.reports import report_of
from traceviz.compare.changes.machine_use import compare_device_use, compare_host
from traceviz.compare.sides.sides import Side
from traceviz.report import Bar, Bars, Column, Fact, Facts, Grid


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


def device(busy, extent, *causes, judged=0.5):
    """Return devices that work from the first to the last of ``extent`` ns, and the gaps besides."""
    columns = (
        Column("busy_ns", "Busy"),
        Column("judged_utilisation", "Of steady steps"),
        Column("extent_ns", "Extent"),
    )
    gaps = Bars("Causes", "time in gaps", "ns", tuple(Bar(key, f"{key} (3)", time, 0.1) for key, time in causes))
    use = section("device_use", Grid(columns, ((busy, judged, extent),)))
    return use, section("idle_gaps", gaps)


def sampled(*rows):
    return section("host", table("Metrics", "metric device unit mean p95 max", *rows))


def figures(changes):
    return {figure.key: (figure.base, figure.new) for figure in changes.figures}


def test_busy_and_idle_by_cause_add_up_to_the_time_from_first_to_last_work():
    base = side("a", run(1, *device(40, 100, ("input_wait", 50), ("before_first_work", 900))))
    new = side("b", run(1, *device(80, 100, ("launch", 15))))
    changes = compare_device_use(base, new)
    assert figures(changes)["device_use.utilisation"] == (0.4, 0.8)
    assert {part.key: (part.base, pytest.approx(part.new)) for part in changes.parts} == {
        "busy": (0.4, 0.8),
        "input_wait": (0.5, 0.0),
        "short_gaps": (pytest.approx(0.1), 0.05),
        "launch": (0.0, 0.15),
    }
    assert changes.parts[1].label == "idle: input_wait"


def test_figures_are_means_over_runs_and_devices_and_power_is_that_of_all_devices():
    power = sampled(("GPU power", "GPU 0", "W", 100.0, 0, 0), ("GPU power", "GPU 1", "W", 50.0, 0, 0))
    less = sampled(("GPU power", "GPU 0", "W", 60.0, 0, 0), ("GPU utilisation", "GPU 0", "%", 25.0, 0, 0))
    efficiency = section("gpu_efficiency", facts(sm_efficiency=0.25, occupancy=None))
    base = side("a", run(1, *device(1, 2, judged=0.2), power), run(1, *device(1, 2, judged=0.4), efficiency, power))
    found = figures(compare_device_use(base, side("b", run(1, *device(1, 2), less))))
    assert found["device_use.judged_utilisation"] == (pytest.approx(0.3), 0.5)
    assert (found["host.power_w"], found["host.sampled_utilisation"]) == ((150, 60), (None, 0.25))
    assert found["gpu_efficiency.sm_efficiency"] == (0.25, None)
    assert "gpu_efficiency.occupancy" not in found


def test_a_side_without_devices_is_said_and_one_that_was_only_sampled_is_compared():
    on_device = side("a", run(1, *device(1, 2)))
    assert compare_device_use(on_device, side("b", run(1))).why_not == "b did not record work of devices"
    busy = side("c", run(1, sampled(("GPU utilisation", "GPU 0", "%", 25.0, 0, 0))))
    assert figures(compare_device_use(busy, busy)) == {"host.sampled_utilisation": (0.25, 0.25)}
    assert compare_device_use(busy, busy).parts == ()


@pytest.mark.parametrize("name", ["input_bound", "two_ranks"])
def test_parts_of_the_devices_of_a_sample_add_up(samples, name):
    whole = Side(name, (report_of(samples / "synthetic" / f"{name}.sqlite"),))
    changes = compare_device_use(whole, whole)
    assert math.fsum(part.base for part in changes.parts) == pytest.approx(1)
    assert {part.base - part.new for part in changes.parts} == {0}
    assert len(changes.parts) >= 3
