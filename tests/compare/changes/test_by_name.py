"""Events of two sides by name, worked by hand: per step, adding up, and never zero for what was not recorded."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.compare.changes.sections import api_section, copy_section, input_section, times_by_name
from tests.compare.sections_of import kernels, run, section, side, table
from traceviz.compare.changes.by_name import compare_api, compare_copies, compare_kernels, compare_stages
from traceviz.compare.changes.events import Status
from traceviz.report import Skipped


def test_stages_are_told_by_what_steps_waited_in_each():
    slow = input_section(0.6, ("one process", "DataLoader", 1200), ("copy", "exposed", 20))
    fast = input_section(0.1, ("many processes", "DataLoader", 200), ("copy", "exposed", 40))
    base, new = (
        side(name, run(steps, stages, input_wait=[500] * steps, host_compute=[500] * steps))
        for name, steps, stages in (("base", 2, slow), ("new", 4, fast))
    )
    compared = compare_stages(base, new)
    assert times_by_name(compared.changes) == {
        "one process": (Status.GONE, 600, 0),
        "many processes": (Status.NEW, 0, 50),
        "copy": (Status.SAME, 10, 10),
    }
    assert (compared.base_share, compared.new_share) == (0.6, 0.1)


def test_a_side_without_steps_waits_for_nothing_per_step():
    slow = input_section(0.6, ("one process", "DataLoader", 1200))
    base, new = (
        side(name, run(steps, slow, input_wait=[500] * steps, host_compute=[500] * steps))
        for name, steps in (("base", 2), ("new", 0))
    )
    for pair, without in (((base, new), "new"), ((new, base), "new"), ((new, new), "new and new")):
        compared = compare_stages(*pair)
        assert compared.why_not == f"no steady steps in {without}, and so nothing per step"
        assert compared.changes == ()


@pytest.mark.parametrize(
    ("verdict", "classes"),
    [
        ("cannot judge", ("input_wait", "host_compute")),
        ("not judged", ("input_wait", "host_compute")),
        ("possibly input-bound", ("input_wait", "host_compute")),
        ("not input-bound", ("host_blocked", "host_compute")),  # its time is in these, but was not recorded
    ],
)
def test_a_wait_for_input_that_cannot_be_judged_is_not_none(verdict, classes):
    base = side("base", run(2, input_section(0.6), input_wait=[600] * 2, host_compute=[400] * 2))
    new = side("new", run(2, input_section(0.0, verdict=verdict), **{key: [500] * 2 for key in classes}))
    assert compare_stages(base, new).why_not == "the wait for input cannot be told in new"


def test_the_api_is_compared_by_share_of_the_capture_and_by_step():
    base = side("base", run(2, api_section([("malloc", 750), ("launch", 248), ("query", 2)], [("launch", 4, 100)])))
    new = side("new", run(1, api_section([("launch", 400), ("sync", 600)], [("launch", 2, 50), ("sync", 1, 550)])))
    compared = compare_api(base, new)
    assert [(change.name, change.base_share, change.new_share) for change in compared.notable] == [
        ("malloc", 0.75, 0.0),
        ("sync", 0.0, 0.6),
        ("launch", 0.248, 0.4),
    ]
    assert [change.name for change in compared.changes if not change.is_notable] == ["query"]
    steady = {change.name: change.steady for change in compared.changes}
    assert (steady["launch"].status, steady["launch"].base_calls, steady["launch"].base_ns) == (Status.SAME, 2, 50)
    assert times_by_name([steady["sync"], steady["malloc"]]) == {
        "sync": (Status.NEW, 0, 550),
        "malloc": (Status.SAME, 0, 0),
    }
    assert (compared.base_ns, compared.new_ns) == (50, 600)


def test_shares_of_the_api_need_no_steps():
    base = side("base", run(0, api_section([("malloc", 3), ("launch", 1)], [])))
    compared = compare_api(base, side("new", run(1, api_section([("launch", 1)], [("launch", 1, 1)]))))
    assert [(change.name, change.base_share, change.new_share, change.steady) for change in compared.changes] == [
        ("launch", 0.25, 1.0, None),
        ("malloc", 0.75, 0.0, None),
    ]
    assert (compared.base_ns, compared.why_not) == (None, "")


def test_functions_that_no_step_calls_cost_steps_nothing():
    start_up = side("base", run(1, api_section([("malloc", 3)], [])))
    compared = compare_api(start_up, start_up)
    assert times_by_name(change.steady for change in compared.changes) == {"malloc": (Status.SAME, 0, 0)}
    assert (compared.base_ns, compared.new_ns) == (0, 0)


def test_copies_have_bytes_per_step():
    base = side("base", run(2, copy_section(("h2d", 2, 200, 4096), ("memset", 1, 10, 3))))
    new = side("new", run(1, copy_section(("h2d", 1, 40, 1024), ("d2h", 1, 5, 4))))
    compared = compare_copies(base, new)
    assert [
        (change.kind, change.times.status, change.times.base_ns, change.times.new_ns) for change in compared.changes
    ] == [
        ("h2d", Status.FASTER, 100, 40),
        ("memset", Status.GONE, 5, 0),
        ("d2h", Status.NEW, 0, 5),
    ]
    assert {change.kind: (change.base_bytes, change.new_bytes) for change in compared.changes} == {
        "h2d": (2048, 1024),
        "memset": (2, 0),  # 2049.5 bytes in all, rounded to even
        "d2h": (0, 4),
    }


def test_kernels_are_compared_per_step():
    base = side("base", run(4, kernels(("a", "gemm", 8, 4000), ("b", "copy", 4, 400))))
    new = side("new", run(2, kernels(("a", "gemm", 4, 2200), ("c", "copy", 3, 100))))
    compared = compare_kernels(base, new)
    # per step: a 1000 to 1100 in 2 calls, b 100 gone, c 50 in 1.5 calls
    assert times_by_name(compared.changes) == {
        "a": (Status.SLOWER, 1000, 1100),
        "b": (Status.GONE, 100, 0),
        "c": (Status.NEW, 0, 50),
    }
    assert [change.name for change in compared.changes] == [
        "a",
        "b",
        "c",
    ]  # 100, 100 and 50 apart; of equal ones the larger
    assert {change.name: (change.base_calls, change.new_calls) for change in compared.changes}["c"] == (
        0,
        Fraction(3, 2),
    )
    assert (compared.base_ns, compared.new_ns, compared.why_not) == (1100, 1150, "")
    assert compared.common == pytest.approx((1000 + 1100) / (1100 + 1150))


def test_whole_nanoseconds_add_up_to_the_kernel_time_of_a_step():
    rows = [(f"k{index}", "gemm", 3, 100) for index in range(7)]  # 7 × 33 1/3 in three steps: 233 1/3
    compared = compare_kernels(side("base", run(3, kernels(*rows))), side("new", run(3, kernels(*rows))))
    assert sum(change.base_ns for change in compared.changes) == compared.base_ns == 233
    assert {change.base_ns for change in compared.changes} == {33, 34}
    assert {change.status for change in compared.changes} <= {Status.SAME}  # by the exact figures, not the rounded ones


def test_runs_of_a_side_are_one_sum_over_all_their_steps():
    base = side("base", run(1, kernels(("a", "gemm", 1, 100))), run(3, kernels(("a", "gemm", 3, 500))))
    compared = compare_kernels(base, side("new", run(1, kernels(("a", "gemm", 1, 150)))))
    assert times_by_name(compared.changes) == {"a": (Status.SAME, 150, 150)}


@pytest.mark.parametrize(
    ("new_ns", "status"),
    [(980, Status.FASTER), (981, Status.SAME), (1019, Status.SAME), (1020, Status.SLOWER), (0, Status.FASTER)],
)
def test_less_than_two_percent_are_the_same(new_ns, status):
    base, new = (side(name, run(1, kernels(("a", "gemm", 1, ns)))) for name, ns in (("base", 1000), ("new", new_ns)))
    assert compare_kernels(base, new).changes[0].status is status


def test_a_kernel_of_another_library_is_renamed_and_says_what_it_was():
    base = side("base", run(2, kernels(("ampere_sgemm", "gemm", 4, 800), ("a", "gemm", 2, 900))))
    new = side("new", run(2, kernels(("bf16_gemm", "gemm", 4, 200), ("a", "gemm", 2, 900))))
    compared = compare_kernels(base, new)
    assert times_by_name(compared.changes) == {"bf16_gemm": (Status.RENAMED, 400, 100), "a": (Status.SAME, 450, 450)}
    assert [change.was for change in compared.changes] == ["ampere_sgemm", ""]
    assert [change.name for change in compared.of(Status.RENAMED)] == ["bf16_gemm"]
    assert compared.common == pytest.approx(900 / (850 + 550))  # renamed kernels are not in common


def test_other_template_arguments_are_judged_by_time_and_say_what_they_were():
    base = side("base", run(1, kernels(("k<float>", "gemm", 1, 100))))
    compared = compare_kernels(base, side("new", run(1, kernels(("k<half>", "gemm", 1, 50)))))
    assert [(change.name, change.status, change.was) for change in compared.changes] == [
        ("k<half>", Status.FASTER, "k<float>")
    ]


def test_work_per_step_does_not_hide_a_renamed_kernel():
    base = side("base", run(1, kernels(("old", "gemm", 2, 640))))
    new = side("new", run(1, kernels(("new", "gemm", 2, 1280))))
    scaled = [replace(whole, per=Fraction(units)) for whole, units in ((base, 32), (new, 128))]
    compared = compare_kernels(*scaled)
    assert times_by_name(compared.changes) == {"new": (Status.RENAMED, 20, 10)}  # per sample: 640 / 32 and 1280 / 128


NAMES = [(f"other{index}", "fusion", 1, 1000) for index in range(10)]


@pytest.mark.parametrize(("format_name", "is_compared"), [("nsys", True), ("xplane", False)])
def test_names_of_two_formats_that_do_not_meet_are_not_compared(format_name, is_compared):
    base = side("base", run(1, kernels(("a", "gemm", 1, 1000)), about={"format": "nsys"}))
    new = side("new", run(1, kernels(*NAMES), about={"format": format_name}))
    compared = compare_kernels(base, new)
    assert compared.common == 0.0
    assert bool(compared.changes) is is_compared
    why = (
        "cannot compare kernels: only 0.0 % of kernel time is in kernels of both sides, and nsys and xplane may call "
        "the same ones differently"
    )
    assert compared.why_not == ("" if is_compared else why)


@pytest.mark.parametrize(("shared", "is_compared"), [(100, True), (98, False)])
def test_a_tenth_of_kernel_time_in_common_is_enough_to_compare_two_formats(shared, is_compared):
    # a on both sides; other families, calls and times, so that nothing else is taken for the same
    base = side(
        "base", run(1, kernels(("a", "gemm", 1, shared), ("x", "fusion", 1, 1000 - shared)), about={"format": "nsys"})
    )
    rest = [(name, "reduction", 90, 10) for name in "defghijkl"]
    new = side(
        "new",
        run(1, kernels(("a", "gemm", 1, shared), ("y", "copy", 7, 910 - shared), *rest), about={"format": "xplane"}),
    )
    compared = compare_kernels(base, new)
    assert compared.common == pytest.approx(shared / 1000)
    assert (compared.why_not == "") is is_compared


def test_names_of_two_formats_that_meet_are_compared():
    base = side("base", run(1, kernels(("k<(int)4>(T1)", "gemm", 1, 10)), about={"format": "nsys"}))
    new = side("new", run(1, kernels(("k<4>(int)", "gemm", 1, 20)), about={"format": "kineto"}))
    assert times_by_name(compare_kernels(base, new).changes) == {"k<4>(int)": (Status.SLOWER, 10, 20)}


def test_a_side_that_did_not_record_is_said_with_its_reason():
    empty = run(2)
    skipped = type(empty)(empty.run, empty.verdict, empty.sections, (), (Skipped("kernels", "no kernels table"),))
    base, new = side("base", run(2, kernels(("a", "gemm", 1, 1)))), side("new", skipped)
    assert compare_kernels(base, new).why_not == "new did not record kernels (no kernels table)"
    assert compare_kernels(new, side("other", skipped)).why_not == (
        "neither new nor other recorded kernels (no kernels table)"
    )
    several = side("new", skipped, run(2, kernels(("a", "gemm", 1, 1))))
    assert compare_kernels(base, several).why_not == "new did not record kernels in 1 of its 2 runs (no kernels table)"
    assert compare_kernels(base, new).changes == ()
    assert compare_kernels(base, new).base_ns is None


def test_without_steps_nothing_is_per_step():
    base, new = side("base", run(2, kernels(("a", "gemm", 1, 1)))), side("new", run(0, kernels()))
    assert compare_kernels(base, new).why_not == "no steady steps in new, and so nothing per step"


def test_a_report_that_does_not_tell_of_steady_steps_is_to_be_made_again():
    old = side("old", run(2, section("kernels", table("", "name total_ns"))))
    compared = compare_kernels(old, side("new", run(2, kernels(("a", "gemm", 1, 1)))))
    assert compared.why_not == "the report of old does not tell of kernels per step: make it again from the trace"


def test_no_kernels_on_either_side_are_no_changes_and_no_reason():
    compared = compare_kernels(side("base", run(2, kernels())), side("new", run(2, kernels())))
    assert (compared.changes, compared.why_not, compared.base_ns, compared.common) == ((), "", 0, None)
