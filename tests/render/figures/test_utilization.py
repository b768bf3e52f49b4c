"""Devices and host over time, on one axis."""

from traceviz.render.figures.of_reports import utilization
from traceviz.render.figures.values import CurvePoint, Curves, NoFigure
from traceviz.report import Fact, Lane, Report, Section, Timeline, Verdict
from traceviz.report.verdicts import VerdictCode

S = 1_000_000_000


def of(**timelines):
    sections = tuple(Section(slug, slug, (timeline,)) for slug, timeline in timelines.items())
    return utilization(Report((Fact("source", "trace", "train.nsys-rep"),), Verdict(VerdictCode.NONE, ""), sections))


def test_a_device_and_2_metrics_of_the_host_are_3_panels_over_the_time_of_both():
    device = Timeline("", 0, 4 * S, (Lane("GPU 0", (0.0, 1.0)),))
    host = Timeline("", -2 * S, 8 * S, (Lane("CPU", (0.5, None), "16 cores"), Lane("memory", (0.1, 0.2), "42.1 GB")))
    found = of(device_use=device, host=host)
    assert isinstance(found, Curves)
    assert [(panel.axis.label, panel.full, panel.remark) for panel in found.panels] == [
        *(("GPU 0", "", "mean 50.0 %"), ("CPU", "16 cores", ""), ("memory", "42.1 GB", ""))
    ]
    assert (found.x.start, found.x.end) == (-2 * S, 8 * S)
    assert found.title == "Use of devices and the host over time"


def test_a_slice_begins_where_the_one_before_ends():
    found = of(device_use=Timeline("", 0, 4 * S, (Lane("GPU 0", (0.25, 1.0)),)))
    assert isinstance(found, Curves)
    assert found.panels[0].lines[0].points == (CurvePoint(0, 0.25), CurvePoint(2 * S, 1.0), CurvePoint(4 * S, None))


def test_of_18_lanes_16_are_drawn_and_the_rest_is_said():
    found = of(device_use=Timeline("", 0, S, tuple(Lane(f"GPU {n}", (0.5,)) for n in range(18))))
    assert isinstance(found, Curves)
    assert len(found.panels) == 16
    assert found.notes == ("2 more are left out.",)


def test_memory_of_a_device_is_called_so():
    memory = Timeline("", 0, S, (Lane("CUDA:0", (0.5,)),))
    found = of(device_use=Timeline("", 0, S, (Lane("GPU 0", (0.5,)),)), memory=memory)
    assert isinstance(found, Curves)
    assert [panel.axis.label for panel in found.panels] == ["GPU 0", "memory of CUDA:0"]
    assert (found.title, of(memory=memory).title) == ("Use of devices over time", "Use of device memory over time")


def test_devices_that_did_nothing_are_no_figure():
    nothing = NoFigure("neither devices nor the host were busy in it, or nobody sampled them")
    assert of() == nothing
    assert of(device_use=Timeline("", 0, S, (Lane("GPU 0", (0.0, None)),))) == nothing
