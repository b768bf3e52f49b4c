"""What changed by name, worked by hand: per step, adding up, and never zero for what was not recorded."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.compare.sections_of import STEADY, facts, finding, kernels, run, section, side, table
from traceviz.analyses.registry import ANALYSES
from traceviz.compare.attribution import attribute
from traceviz.compare.changes import changes
from traceviz.compare.changes.changes import Change, Seen
from traceviz.compare.changes.findings import FOUND_IN
from traceviz.compare.effect import effect
from traceviz.report import Column, Fact, Facts, Grid, Severity, Skipped


def told(found):
    return {one.name: (one.status, one.base_ns, one.new_ns) for one in found}


def test_kernels_are_compared_per_step():
    base = side("base", run(4, kernels(("a", "gemm", 8, 4000), ("b", "copy", 4, 400))))
    new = side("new", run(2, kernels(("a", "gemm", 4, 2200), ("c", "copy", 3, 100))))
    found = changes.kernels(base, new)
    # per step: a 1000 to 1100 in 2 calls, b 100 gone, c 50 in 1.5 calls
    assert told(found.changes) == {
        "a": (Change.SLOWER, 1000, 1100),
        "b": (Change.GONE, 100, 0),
        "c": (Change.NEW, 0, 50),
    }
    assert [one.name for one in found.changes] == ["a", "b", "c"]  # 100, 100 and 50 apart; of equal ones the larger
    assert {one.name: (one.base_calls, one.new_calls) for one in found.changes}["c"] == (0, Fraction(3, 2))
    assert (found.base_ns, found.new_ns, found.why_not) == (1100, 1150, "")
    assert found.common == pytest.approx((1000 + 1100) / (1100 + 1150))


def test_whole_nanoseconds_add_up_to_the_kernel_time_of_a_step():
    rows = [(f"k{index}", "gemm", 3, 100) for index in range(7)]  # 7 × 33 1/3 in three steps: 233 1/3
    found = changes.kernels(side("base", run(3, kernels(*rows))), side("new", run(3, kernels(*rows))))
    assert sum(one.base_ns for one in found.changes) == found.base_ns == 233
    assert {one.base_ns for one in found.changes} == {33, 34}
    assert {one.status for one in found.changes} <= {Change.SAME}  # by the exact figures, not the rounded ones


def test_runs_of_a_side_are_one_sum_over_all_their_steps():
    base = side("base", run(1, kernels(("a", "gemm", 1, 100))), run(3, kernels(("a", "gemm", 3, 500))))
    found = changes.kernels(base, side("new", run(1, kernels(("a", "gemm", 1, 150)))))
    assert told(found.changes) == {"a": (Change.SAME, 150, 150)}


@pytest.mark.parametrize(
    ("new_ns", "status"),
    [(980, Change.FASTER), (981, Change.SAME), (1019, Change.SAME), (1020, Change.SLOWER), (0, Change.FASTER)],
)
def test_less_than_two_percent_are_the_same(new_ns, status):
    base, new = (side(name, run(1, kernels(("a", "gemm", 1, ns)))) for name, ns in (("base", 1000), ("new", new_ns)))
    assert changes.kernels(base, new).changes[0].status is status


def test_a_kernel_of_another_library_is_renamed_and_says_what_it_was():
    base = side("base", run(2, kernels(("ampere_sgemm", "gemm", 4, 800), ("a", "gemm", 2, 900))))
    new = side("new", run(2, kernels(("bf16_gemm", "gemm", 4, 200), ("a", "gemm", 2, 900))))
    found = changes.kernels(base, new)
    assert told(found.changes) == {"bf16_gemm": (Change.RENAMED, 400, 100), "a": (Change.SAME, 450, 450)}
    assert [one.was for one in found.changes] == ["ampere_sgemm", ""]
    assert [one.name for one in found.of(Change.RENAMED)] == ["bf16_gemm"]
    assert found.common == pytest.approx(900 / (850 + 550))  # renamed kernels are not in common


def test_other_template_arguments_are_judged_by_time_and_say_what_they_were():
    base = side("base", run(1, kernels(("k<float>", "gemm", 1, 100))))
    found = changes.kernels(base, side("new", run(1, kernels(("k<half>", "gemm", 1, 50)))))
    assert [(one.name, one.status, one.was) for one in found.changes] == [("k<half>", Change.FASTER, "k<float>")]


def test_work_per_step_does_not_hide_a_renamed_kernel():
    base = side("base", run(1, kernels(("old", "gemm", 2, 640))))
    new = side("new", run(1, kernels(("new", "gemm", 2, 1280))))
    scaled = [type(one)(one.label, one.reports, Fraction(units)) for one, units in ((base, 32), (new, 128))]
    found = changes.kernels(*scaled)
    assert told(found.changes) == {"new": (Change.RENAMED, 20, 10)}  # per sample: 640 / 32 and 1280 / 128


NAMES = [(f"other{index}", "fusion", 1, 1000) for index in range(10)]


@pytest.mark.parametrize(("format_name", "is_told"), [("nsys", True), ("xplane", False)])
def test_names_of_two_formats_that_do_not_meet_are_not_compared(format_name, is_told):
    base = side("base", run(1, kernels(("a", "gemm", 1, 1000)), about={"format": "nsys"}))
    new = side("new", run(1, kernels(*NAMES), about={"format": format_name}))
    found = changes.kernels(base, new)
    assert found.common == 0.0
    assert bool(found.changes) is is_told
    why = (
        "cannot compare kernels: only 0.0 % of kernel time is in kernels of both sides, and nsys and xplane may call "
        "the same ones differently"
    )
    assert found.why_not == ("" if is_told else why)


def test_names_of_two_formats_that_meet_are_compared():
    base = side("base", run(1, kernels(("k<(int)4>(T1)", "gemm", 1, 10)), about={"format": "nsys"}))
    new = side("new", run(1, kernels(("k<4>(int)", "gemm", 1, 20)), about={"format": "kineto"}))
    assert told(changes.kernels(base, new).changes) == {"k<4>(int)": (Change.SLOWER, 10, 20)}


def test_a_side_that_did_not_record_is_said_with_its_reason():
    empty = run(2)
    skipped = type(empty)(empty.run, empty.verdict, empty.sections, (), (Skipped("kernels", "no kernels table"),))
    base, new = side("base", run(2, kernels(("a", "gemm", 1, 1)))), side("new", skipped)
    assert changes.kernels(base, new).why_not == "new did not record kernels (no kernels table)"
    assert changes.kernels(new, side("other", skipped)).why_not == (
        "neither new nor other recorded kernels (no kernels table)"
    )
    several = side("new", skipped, run(2, kernels(("a", "gemm", 1, 1))))
    assert changes.kernels(base, several).why_not == "new did not record kernels in 1 of its 2 runs (no kernels table)"
    assert changes.kernels(base, new).changes == ()
    assert changes.kernels(base, new).base_ns is None


def test_without_steps_nothing_is_per_step():
    base, new = side("base", run(2, kernels(("a", "gemm", 1, 1)))), side("new", run(0, kernels()))
    assert changes.kernels(base, new).why_not == "no steady steps in new, and so nothing per step"


def test_a_report_that_does_not_tell_of_steady_steps_is_to_be_made_again():
    old = side("old", run(2, section("kernels", table("", "name total_ns"))))
    found = changes.kernels(old, side("new", run(2, kernels(("a", "gemm", 1, 1)))))
    assert found.why_not == "the report of old does not tell of kernels per step: make it again from the trace"


def test_no_kernels_on_either_side_are_no_changes_and_no_reason():
    found = changes.kernels(side("base", run(2, kernels())), side("new", run(2, kernels())))
    assert (found.changes, found.why_not, found.base_ns, found.common) == ((), "", 0, None)


def api_section(capture, steady):
    everything = table("", "name domain total_ns", *((name, "runtime", total) for name, total in capture))
    rows = ((name, "runtime", calls, total) for name, calls, total in steady)
    return section("cuda_api", everything, table(STEADY, "name domain calls total_ns", *rows))


def test_the_api_is_told_by_share_of_the_capture_and_by_step():
    base = side("base", run(2, api_section([("malloc", 750), ("launch", 248), ("query", 2)], [("launch", 4, 100)])))
    new = side("new", run(1, api_section([("launch", 400), ("sync", 600)], [("launch", 2, 50), ("sync", 1, 550)])))
    found = changes.api(base, new)
    assert [(one.name, one.base_share, one.new_share) for one in found.notable] == [
        ("malloc", 0.75, 0.0),
        ("sync", 0.0, 0.6),
        ("launch", 0.248, 0.4),
    ]
    assert [one.name for one in found.changes if not one.is_notable] == ["query"]
    steady = {one.name: one.steady for one in found.changes}
    assert (steady["launch"].status, steady["launch"].base_calls, steady["launch"].base_ns) == (Change.SAME, 2, 50)
    assert told([steady["sync"], steady["malloc"]]) == {"sync": (Change.NEW, 0, 550), "malloc": (Change.SAME, 0, 0)}
    assert (found.base_ns, found.new_ns) == (50, 600)


def test_shares_of_the_api_need_no_steps():
    base = side("base", run(0, api_section([("malloc", 3), ("launch", 1)], [])))
    found = changes.api(base, side("new", run(1, api_section([("launch", 1)], [("launch", 1, 1)]))))
    assert [(one.name, one.base_share, one.new_share, one.steady) for one in found.changes] == [
        ("launch", 0.25, 1.0, None),
        ("malloc", 0.75, 0.0, None),
    ]
    assert (found.base_ns, found.why_not) == (None, "")


def test_functions_that_no_step_calls_cost_steps_nothing():
    start_up = side("base", run(1, api_section([("malloc", 3)], [])))
    found = changes.api(start_up, start_up)
    assert told(one.steady for one in found.changes) == {"malloc": (Change.SAME, 0, 0)}
    assert (found.base_ns, found.new_ns) == (0, 0)


def copy_section(*rows):
    return section("copies", table(STEADY, "kind calls total_ns bytes", *rows))


def test_copies_have_bytes_per_step():
    base = side("base", run(2, copy_section(("h2d", 2, 200, 4096), ("memset", 1, 10, 3))))
    new = side("new", run(1, copy_section(("h2d", 1, 40, 1024), ("d2h", 1, 5, 4))))
    found = changes.copies(base, new)
    assert [(one.kind, one.times.status, one.times.base_ns, one.times.new_ns) for one in found.changes] == [
        ("h2d", Change.FASTER, 100, 40),
        ("memset", Change.GONE, 5, 0),
        ("d2h", Change.NEW, 0, 5),
    ]
    assert {one.kind: (one.base_bytes, one.new_bytes) for one in found.changes} == {
        "h2d": (2048, 1024),
        "memset": (2, 0),  # 2049.5 bytes in all, rounded to even
        "d2h": (0, 4),
    }


def input_section(share, *stages, verdict="highly input-bound"):
    inside = table("Inside the loader", "stage kind self_ns", ("decode", "op", 999))
    own = table("", "stage kind self_ns path", *((name, kind, waited, None) for name, kind, waited in stages))
    return section("input_pipeline", facts(verdict=verdict, input_share=share), inside, own)


def test_stages_are_told_by_what_steps_waited_in_each():
    slow = input_section(0.6, ("one process", "DataLoader", 1200), ("copy", "exposed", 20))
    fast = input_section(0.1, ("many processes", "DataLoader", 200), ("copy", "exposed", 40))
    base, new = (
        side(name, run(steps, told, input_wait=[500] * steps, host_compute=[500] * steps))
        for name, steps, told in (("base", 2, slow), ("new", 4, fast))
    )
    found = changes.stages(base, new)
    assert told(found.changes) == {
        "one process": (Change.GONE, 600, 0),
        "many processes": (Change.NEW, 0, 50),
        "copy": (Change.SAME, 10, 10),
    }
    assert (found.base_share, found.new_share) == (0.6, 0.1)


@pytest.mark.parametrize(
    ("verdict", "classes"),
    [
        ("cannot judge", ("input_wait", "host_compute")),
        ("possibly input-bound", ("input_wait", "host_compute")),
        ("not input-bound", ("host_blocked", "host_compute")),  # its time is in these: nobody saw it
    ],
)
def test_a_wait_for_input_that_cannot_be_judged_is_not_none(verdict, classes):
    base = side("base", run(2, input_section(0.6), input_wait=[600] * 2, host_compute=[400] * 2))
    new = side("new", run(2, input_section(0.0, verdict=verdict), **{key: [500] * 2 for key in classes}))
    assert changes.stages(base, new).why_not == "the wait for input cannot be told in new"


def host_section(cpu, rss, read):
    known = Facts(
        (Fact("cpu_mean", "CPU", cpu, "ratio"), Fact("rss_max", "memory", rss, "bytes"), Fact("samples", "n", 9))
    )
    rows = (("cpu_percent", "", "%", cpu * 100, 0, 100.0), ("power", "GPU 0", "W", 250.0, 0, None), *read)
    return section("host", known, table("Metrics in the units ...", "metric device unit mean p95 max", *rows))


def test_the_host_is_told_by_means_over_runs():
    base = side("base", run(1, host_section(0.2, 100, ())), run(1, host_section(0.4, 300, ())))
    new = side("new", run(1, host_section(0.9, 100, (("read", "", "bytes/s", 5.0, 0, 6.0),))))
    found = {one.key: one for one in changes.host(base, new).changes}
    assert (found["cpu_mean"].base, found["cpu_mean"].new) == (pytest.approx(0.3), 0.9)
    assert found["cpu_mean"].ratio == pytest.approx(2.0)
    assert (found["rss_max"].base, found["rss_max"].ratio, found["rss_max"].unit) == (200, -0.5, "bytes")
    assert (found["host.cpu_percent.mean"].new, found["host.cpu_percent.mean"].unit) == (pytest.approx(0.9), "ratio")
    assert (found["GPU 0.power.mean"].base, found["GPU 0.power.mean"].label) == (250.0, "GPU 0 power, W, mean")
    assert (found["host.read.max"].base, found["host.read.max"].new, found["host.read.max"].ratio) == (None, 6.0, None)
    assert "samples" not in found
    assert "GPU 0.power.max" not in found
    assert changes.host(base, side("new", run(1))).why_not == "new did not record host resources"


def test_findings_appear_stay_and_go_with_their_cost_per_step():
    quiet = section("input_pipeline", facts(verdict="not input-bound"))
    base = run(4, quiet, section("copies"), findings=[finding("TV101", 800, 0.2, Severity.ERROR)])
    new = run(2, quiet, section("copies"), findings=[finding("TV302", 100, 0.05, Severity.WARNING)])
    found = {one.code: one for one in changes.findings(side("base", base), side("new", new)).changes}
    gone, appeared = found["TV101"], found["TV302"]
    assert (gone.seen, gone.base_ns, gone.new_ns, gone.base_share, gone.new_share) == (
        Seen.WENT_AWAY,
        200,
        None,
        0.2,
        None,
    )
    assert (appeared.seen, appeared.base_ns, appeared.new_ns) == (Seen.APPEARED, None, 50)
    assert (gone.severity, gone.message) == (Severity.ERROR, "TV101 costs 800")
    assert list(found) == ["TV302", "TV101"]
    same = changes.findings(side("base", base), side("base", base)).changes
    assert [(one.seen, one.base_ns, one.new_ns) for one in same] == [(Seen.STAYED, 200, 200)]


@pytest.mark.parametrize("verdict", [None, "cannot judge"])
def test_a_finding_that_nobody_looked_for_neither_appears_nor_goes(verdict):
    sections = [section("input_pipeline", facts(verdict=verdict))] if verdict else []
    without = side("without", run(4, *sections))
    having = side("with", run(4, findings=[finding("TV101", 800, 0.2, Severity.ERROR)]))
    (first,) = changes.findings(without, having).changes
    (second,) = changes.findings(having, without).changes
    assert (first.seen, first.base_ns, first.base_share, first.new_ns) == (Seen.ONLY_NEW, None, None, 200)
    assert (second.seen, second.base_ns, second.new_ns) == (Seen.ONLY_BASE, 200, None)


def test_what_a_finding_costs_is_of_the_runs_that_have_it():
    having = run(4, section("copies"), findings=[finding("TV302", 800, 0.2, Severity.WARNING)])
    base = side("base", having, run(36, section("copies")))
    (found,) = changes.findings(base, side("new", having)).changes
    assert (found.base_ns, found.base_share, found.new_ns, found.new_share) == (200, 0.2, 200, 0.2)


def test_a_finding_without_a_known_cost_has_none_on_either_side():
    unpriced = replace(finding("TV108", 0, 0.0, Severity.WARNING), share=None)
    base = side("base", run(4, findings=[unpriced]))
    (found,) = changes.findings(base, side("new", run(4, section("input_pipeline", facts(verdict="fine"))))).changes
    assert (found.seen, found.base_share, found.new_share) == (Seen.WENT_AWAY, None, None)


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
    found = changes.host(*(side(name, run(1, one)) for name, one in zip(("base", "new"), sections, strict=True)))
    assert [one.key for one in found.notable] == ["cpu_mean", "cores"]
    assert [one.key for one in found.changes][2:] == ["physical_cores", "GPU 0.power.mean", "GPU 0.power.max"]


@pytest.mark.parametrize(("collector", "seen"), [("torch 2.13", Seen.WENT_AWAY), ("nsys 2026.2, nvtx", Seen.ONLY_BASE)])
def test_a_kind_of_loader_that_the_other_profiler_cannot_see_did_not_go_away(collector, seen):
    quiet, other = (section("run", facts(recorded_by=words)) for words in ("torch 2.12", collector))
    pipeline = section("input_pipeline", facts(verdict="highly input-bound"))
    base = side("base", run(4, quiet, pipeline, findings=[finding("TV108", 800, 0.2, Severity.INFO)]))
    (found,) = changes.findings(base, side("new", run(4, other, pipeline))).changes
    assert found.seen == seen


def test_a_cost_of_other_time_is_not_told_per_step():
    base = side("base", run(2, findings=[finding("TV601", 800, 0.2, Severity.ERROR, "captured time")]))
    (found,) = changes.findings(base, base).changes
    assert (found.seen, found.base_ns, found.base_share) == (Seen.STAYED, None, 0.2)


def test_every_finding_is_looked_for_in_the_section_that_raises_it():
    assert dict(FOUND_IN) == {code: analysis.slug for analysis in ANALYSES for code in analysis.rules}


def test_a_side_against_itself_has_no_changes():
    whole = side("a", run(3, kernels(("a", "gemm", 7, 1000), ("b", "fusion", 5, 1)), copy_section(("h2d", 1, 7, 9))))
    assert {one.status for one in changes.kernels(whole, whole).changes} == {Change.SAME}
    assert {one.difference_ns for one in changes.kernels(whole, whole).changes} == {0}
    assert {one.times.status for one in changes.copies(whole, whole).changes} == {Change.SAME}


def test_a_grid_without_columns_is_no_metric():
    empty = section("host", Grid((), ()), Grid((Column("metric", "m"),), ()))
    assert changes.host(side("a", run(1, empty)), side("b", run(1, empty))).changes == ()


def test_with_several_units_of_work_in_a_step_every_time_is_of_one_unit():
    classes = {"input_wait": [400] * 4, "host_compute": [600] * 4}
    sections = (
        kernels(("a", "gemm", 8, 4000)),
        copy_section(("h2d", 8, 400, 4096)),
        input_section(0.4, ("loading", "DataLoader", 1600)),
        section("cuda_api", table("", "name domain total_ns share_of_api", ("cudaFree", "runtime", 800, 1.0))),
    )
    steady = section(
        "cuda_api", *sections[3].blocks, table(STEADY, "name domain calls total_ns", ("cudaFree", "runtime", 4, 800))
    )
    costs = [finding("TV302", 800, 0.2, Severity.WARNING)]
    whole = side("whole", run(4, *sections[:3], steady, findings=costs, **classes))
    one = replace(whole, per=Fraction(2))
    told = changes.kernels(whole, one), changes.copies(whole, one), changes.stages(whole, one), changes.api(whole, one)
    kernel, copied, stage, called = (found.changes[0] for found in told)
    assert (kernel.base_calls, kernel.new_calls, kernel.base_ns, kernel.new_ns) == (2, 1, 1000, 500)
    assert (copied.base_bytes, copied.new_bytes, copied.times.base_ns, copied.times.new_ns) == (1024, 512, 100, 50)
    assert (stage.base_ns, stage.new_ns) == (400, 200)
    assert (called.steady.base_ns, called.steady.new_ns, called.base_share, called.new_share) == (200, 100, 1.0, 1.0)
    (cost,) = changes.findings(whole, one).changes
    assert (cost.base_ns, cost.new_ns, cost.base_share, cost.new_share) == (200, 100, 0.2, 0.2)
    found = attribute(whole, one)
    assert [(part.base_ns, part.new_ns) for part in found.classes] == [(400, 200), (600, 300)]
    assert (effect(whole.runs, one.runs).speedup, found.difference_ns) == (2, -500)
