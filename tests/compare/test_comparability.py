"""Remarks on two sides, and their consequences: hand-made reports, one difference at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from tests.compare.sections_of import STEADY, facts, finding, kernels, run, section, side, steps_of, table, tagged
from tests.compare.sides_of import report
from traceviz.compare.comparability import remarks
from traceviz.compare.compare import compare
from traceviz.compare.work.amounts import batch, calls_per_step, other_sizes
from traceviz.report import Note, Severity, Skipped


@dataclass(frozen=True)
class Said:
    per: str = ""
    same_work: bool = False


PLAIN = Said()
DECLARED, NVTX = "declared by the trace", "NVTX ranges"
INFERRED = "inferred from repeating kernels"


def by_code(base, new, options=PLAIN):
    return {remark.code: remark for remark in remarks(base, new, options)}


def codes(base, new, options=PLAIN):
    return {(remark.code, remark.severity.value, remark.forbids) for remark in remarks(base, new, options)}


def pair(*sections, steps=12, base=(), **about):
    """Return a base with sections ``base`` and a new side with these."""
    return side("base", run(steps, *base)), side("new", run(steps, *sections, about=about))


def test_equal_sides_are_not_remarked():
    whole = run(
        20,
        steps_of(DECLARED),
        tagged(batch="32"),
        kernels(("a", "gemm", 20, 2000), shapes=[("a", "4x1x1", "32x1x1", 2000)]),
        section("capture", facts(overhead_ns=10, span_ns=100)),
        about={"format": "nsys", "devices": "A100", "framework": "JAX", "host": "n1", "driver_version": "1"},
    )
    assert remarks(side("base", whole), side("new", whole), PLAIN) == ()


# ------------------------------------------------------------------------------------------------------ work


@pytest.mark.parametrize("tag", ["batch", "batch_size", "batch-size", "Batch"])
def test_other_batches_forbid_a_verdict_and_say_how_to_compare(tag):
    base, new = side("base", run(12, tagged(**{tag: "32"}))), side("new", run(12, tagged(**{tag: "128"})))
    (remark,) = remarks(base, new, PLAIN)
    assert (remark.code, remark.severity, remark.forbids) == ("batch", Severity.ERROR, "verdict")
    assert remark.text == (
        f"steps do different work (batch 32 against 128): compare the time per sample with --per {tag}"
    )


@pytest.mark.parametrize("options", [Said(per="batch"), Said(same_work=True)])
def test_a_verdict_per_sample_or_on_the_users_word_is_not_forbidden(options):
    base, new = side("base", run(12, tagged(batch="32"))), side("new", run(12, tagged(batch="128")))
    assert remarks(base, new, options) == ()


def test_equal_batches_and_batches_of_one_side_say_nothing():
    base, new = side("base", run(12, tagged(batch="32"))), side("new", run(12, tagged(workers="4")))
    assert remarks(base, base, PLAIN) == ()
    assert remarks(base, new, PLAIN) == ()


def test_runs_of_one_side_with_different_batches_are_no_side():
    mixed = side("base", run(12, tagged(batch="32")), run(12, tagged(batch="64")))
    text = "runs of a side differ in batch (32 and 64): make a side of each, as with --by"
    assert by_code(mixed, mixed)["batch"].text == text
    assert batch(side("base", run(12, tagged(batch="32")), run(12))) is None


def launched(*shapes, extra=0):
    """Return kernels whose steady sums are those of the shapes; ``extra`` in a kernel of unknown shape."""
    rows = [(name, "gemm", 12, total) for name, _, _, total in shapes]
    rows += [("unknown", "fusion", 12, extra)] * bool(extra)
    return kernels(*rows, shapes=[*shapes, *([("unknown", None, None, extra)] * bool(extra))])


def test_the_same_kernels_over_other_grids_forbid_a_verdict():
    before = launched(("a", "32x1x1", "128x1x1", 900), ("b", "1x1x1", "64x1x1", 100))
    after = launched(("a", "128x1x1", "128x1x1", 3600), ("b", "1x1x1", "64x1x1", 100))
    base, new = pair(after, base=(before,))
    assert other_sizes(base, new) == pytest.approx(0.9)
    remark = by_code(base, new)["launch-sizes"]
    assert (remark.severity, remark.forbids) == (Severity.ERROR, "verdict")
    assert "90.0 % of the time of the kernels in common" in remark.text
    assert "launch-sizes" not in by_code(base, new, Said(same_work=True))
    assert "launch-sizes" not in by_code(base, new, Said(per="tokens"))


@pytest.mark.parametrize(("other_ns", "is_said"), [(800, False), (801, True)])
def test_four_fifths_of_the_time_in_common_must_be_of_other_sizes(other_ns, is_said):
    before = launched(("a", "32x1x1", "128x1x1", other_ns), ("b", "1x1x1", "64x1x1", 1000 - other_ns))
    after = launched(("a", "64x1x1", "128x1x1", 500), ("b", "1x1x1", "64x1x1", 500))
    assert ("launch-sizes" in by_code(*pair(after, base=(before,)))) is is_said


@pytest.mark.parametrize(("extra", "share"), [(1000, 1.0), (1001, None)])
def test_half_of_the_kernel_time_must_be_in_common(extra, share):
    before = launched(("a", "32x1x1", "128x1x1", 1000), extra=extra)
    after = launched(("a", "64x1x1", "128x1x1", 1000))
    assert other_sizes(*pair(after, base=(before,))) == share


def test_a_grid_that_only_sometimes_occurs_is_no_other_size():
    # one in four launches of the base's time is of the other grid: the distributions differ by a quarter
    before = launched(("a", "32x1x1", "128x1x1", 1000))
    after = kernels(("a", "gemm", 12, 1000), shapes=[("a", "32x1x1", "128x1x1", 750), ("a", "8x1x1", "128x1x1", 250)])
    assert other_sizes(*pair(after, base=(before,))) == pytest.approx(0.25)


def test_sizes_that_only_the_base_has_weigh_by_their_time_as_well():
    # a: two thirds of the base's 600 are of the grid of the new side, so a third is apart; b is the same: 200 of 1000
    before = launched(("a", "32x1x1", "128x1x1", 400), ("a", "8x1x1", "128x1x1", 200), ("b", "1x1x1", "64x1x1", 400))
    after = launched(("a", "32x1x1", "128x1x1", 600), ("b", "1x1x1", "64x1x1", 100))
    assert other_sizes(*pair(after, base=(before,))) == pytest.approx(0.2)


def test_a_kernel_with_another_block_was_tuned():
    before, after = launched(("a", "32x1x1", "128x1x1", 1000)), launched(("a", "16x1x1", "256x1x1", 900))
    assert other_sizes(*pair(after, base=(before,))) is None


def test_two_demanglers_do_not_hide_other_sizes():
    before = launched(("k<(int)4>(T1)", "32x1x1", "128x1x1", 1000))
    assert other_sizes(*pair(launched(("k<4>(int)", "64x1x1", "128x1x1", 1000)), base=(before,))) == 1.0


@pytest.mark.parametrize(("source", "forbids"), [(INFERRED, "verdict"), (DECLARED, "")])
def test_steps_of_many_times_the_kernels_are_other_steps_where_they_were_inferred(source, forbids):
    base = side("base", run(12, steps_of(source), kernels(("a", "gemm", 12, 900), ("b", "gemm", 12, 100))))
    new = side("new", run(12, steps_of(source), kernels(("a", "gemm", 48, 900), ("b", "gemm", 12, 100))))
    assert calls_per_step(base, new) == 4.0
    remark = by_code(base, new)["kernel-calls"]
    assert remark.forbids == forbids
    assert remark.text.startswith("a step of new runs the kernels in common 4.00× as often as one of base")


@pytest.mark.parametrize(("calls", "factor"), [(17, None), (18, 1.5), (8, 8 / 12), (9, None)])
def test_calls_differ_from_half_as_many_again_on(calls, factor):
    base, new = (side("s", run(12, kernels(("a", "gemm", count, 900)))) for count in (12, calls))
    assert calls_per_step(base, new) == factor


@pytest.mark.parametrize(("other_ns", "factor"), [(900, 4.0), (901, None)])
def test_calls_of_kernels_with_less_than_half_of_the_time_say_nothing(other_ns, factor):
    base = side("base", run(12, kernels(("a", "gemm", 12, 900), ("b", "copy", 12, other_ns))))
    assert calls_per_step(base, side("new", run(12, kernels(("a", "gemm", 48, 900))))) == factor


def test_calls_are_per_step_whatever_work_a_step_does():
    base = side("s", run(12, kernels(("a", "gemm", 12, 900))))
    assert calls_per_step(replace(base, per=Fraction(32)), replace(base, per=Fraction(128))) is None


# ----------------------------------------------------------------------------------------------------- steps


def test_a_side_without_steps_says_why():
    empty = replace(run(0), skipped=(Skipped("steps", "no ranges were recorded."),))
    remark = by_code(side("base", run(12)), side("new", empty))["no-steps"]
    assert "step-count" not in by_code(side("base", run(12)), side("new", empty))
    assert (remark.text, remark.forbids) == ("new has no steady steps: no ranges were recorded", "verdict")


@pytest.mark.parametrize(("steps", "is_said"), [(9, True), (10, False)])
def test_few_steps_are_said(steps, is_said):
    assert (("few-steps", "warning", "") in codes(side("base", run(12)), side("new", run(steps)))) is is_said


@pytest.mark.parametrize(("steps", "is_said"), [(23, False), (24, True)])
def test_twice_the_steps_are_said(steps, is_said):
    known = by_code(side("base", run(12)), side("new", run(steps)))
    assert ("step-count" in known) is is_said
    assert not is_said or known["step-count"].text == "12 steady steps against 24"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (steps_of(DECLARED), steps_of(INFERRED), {("step-source", "error", "verdict")}),
        (steps_of(DECLARED), steps_of(NVTX), {("step-source", "info", "")}),
        (steps_of(NVTX, "epoch"), steps_of(NVTX, "step"), {("step-marker", "warning", "")}),
        (
            steps_of(INFERRED, "k1"),
            steps_of(INFERRED, "k2"),
            {("step-marker", "warning", ""), ("inferred-steps", "warning", "")},
        ),
        (steps_of(INFERRED, "k1"), steps_of(INFERRED, "k1"), {("inferred-steps", "warning", "")}),
        (steps_of(NVTX, "k1"), steps_of(NVTX, "k1"), set()),
    ],
)
def test_steps_that_were_found_otherwise_are_said(before, after, expected):
    assert codes(*pair(after, base=(before,))) == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (12, {("step-source", "info", "")}),
        (13, {("step-source", "info", "")}),
        (14, {("step-source", "error", "verdict")}),
        (24, {("step-source", "error", "verdict"), ("kernel-calls", "error", "verdict")}),
    ],
)
def test_inferred_steps_that_run_the_kernels_of_declared_ones_as_often_are_steps(calls, expected):
    """A layer runs them as often as it comes in a step."""
    before = kernels(("a", "gemm", 12, 97), ("b", "copy", 12, 2), ("c", "copy", 1, 1))
    after = kernels(("a", "gemm", calls, 97), ("b", "copy", 12, 2), ("d", "copy", 1, 1))
    assert codes(*pair(steps_of(INFERRED), after, base=(steps_of(NVTX), before))) == expected


def test_inferred_steps_that_run_other_kernels_besides_may_be_other_work():
    before = kernels(("a", "gemm", 12, 100))
    after = kernels(("a", "gemm", 12, 100), ("b", "copy", 12, 20))
    for sides in (
        pair(steps_of(INFERRED), after, base=(steps_of(NVTX), before)),
        pair(steps_of(INFERRED), before, base=(steps_of(NVTX), after)),
    ):
        assert by_code(*sides)["step-source"].forbids == "verdict"


def test_markers_of_two_frameworks_differ_of_course():
    base = side("base", run(12, steps_of(DECLARED, "train"), about={"framework": "TensorFlow"}))
    new = side("new", run(12, steps_of(DECLARED, "ProfilerStep"), about={"framework": "PyTorch"}))
    assert codes(base, new) == {("step-marker", "info", ""), ("framework", "info", "")}


def test_ranks_are_counted():
    rows = [(index, index % 2, 1000) for index in range(12)]
    two = replace(run(0), sections=(section("breakdown", table("By step", "step process dur_ns", *rows)),))
    known = by_code(side("base", two), side("new", run(12)))
    assert known["ranks"].text == "2 ranks against 1: steps may share their work among them"


# ------------------------------------------------------------------------------------------- where and how


@pytest.mark.parametrize(
    ("key", "code", "severity"),
    [
        ("devices", "devices", "warning"),
        ("framework", "framework", "info"),
        ("format", "format", "warning"),
        ("producer", "producer", "info"),
        ("driver_version", "software", "info"),
        ("cuda_version", "software", "info"),
        ("host", "host", "info"),
    ],
)
def test_what_runs_say_of_themselves(key, code, severity):
    base, new, silent = (
        side(label, run(12, about={key: value})) for label, value in zip("abc", ("X", "Y", None), strict=True)
    )
    assert codes(base, new) == {(code, severity, "")}
    assert "X against Y" in by_code(base, new)[code].text
    assert codes(base, silent) == set()  # what is not known does not differ


def test_collectors_are_compared_without_their_versions():
    def recorded(words):
        return section("run", facts(recorded_by=words, machine="8 cores"))

    base = (recorded("nsys 2026.1, resources"),)
    assert codes(*pair(recorded("nsys 2025.9, resources"), base=base)) == set()
    known = by_code(*pair(recorded("resources"), base=base))
    assert known["recorders"].text.startswith("recorded by nsys and resources against resources")


def test_other_machines_are_said_once():
    base = side("base", run(12, section("run", facts(machine="8 cores")), about={"host": "n1"}))
    new = side("new", run(12, section("run", facts(machine="64 cores")), about={"host": "n2"}))
    assert codes(base, new) == {("machine", "warning", "")}


@pytest.mark.parametrize(
    ("before", "after", "is_said"),
    [(10, 5, False), (10, 4, True), (0, 6, True), (None, 6, True), (None, 5, False), (None, None, False)],
)
def test_overhead_that_differs_by_more_than_five_points_is_said(before, after, is_said):
    def capture(overhead):
        return section("capture", facts(span_ns=100, **({} if overhead is None else {"overhead_ns": overhead})))

    assert ("overhead" in by_code(*pair(capture(after), base=(capture(before),)))) is is_said


def test_an_overhead_that_is_known_on_both_sides_stands_beside_the_verdict():
    sections = [section("capture", facts(span_ns=100, overhead_ns=cost)) for cost in (1, 20)]
    remark = by_code(*pair(sections[1], base=(sections[0],)))["overhead"]
    assert remark.brief == "the profiler took 1.0 % of base and 20.0 % of new"


def with_frames():
    return section("modules", facts(source="calls of nn.Module"))


def test_what_only_one_side_recorded_is_said_and_frames_of_python_beside_the_verdict():
    shapes = section("operators", table("By shapes", "name"))
    found = by_code(*pair(with_frames(), base=(shapes,)))["detail"]
    assert found.text.startswith("only base recorded shapes of inputs; only new recorded frames of Python: recording ")
    assert (found.severity, found.brief) == (Severity.WARNING, "only new recorded frames of Python")
    calls = by_code(*pair(base=(section("os_calls", facts(calls=1)),)))["detail"]
    assert (calls.severity, calls.brief) == (Severity.INFO, "")
    assert "detail" not in by_code(*pair(with_frames(), base=(with_frames(),)))


def test_another_profiler_is_said_instead_of_what_it_records():
    base = side("base", run(12, about={"format": "nsys"}))
    found = by_code(base, side("new", run(12, with_frames(), about={"format": "kineto"})))
    assert ("format" in found, "detail" in found) == (True, False)


def test_an_unknown_overhead_is_not_none():
    base = (section("capture", facts(span_ns=100)),)
    known = by_code(*pair(section("capture", facts(span_ns=100, overhead_ns=20)), base=base))
    assert known["overhead"].text.startswith("the profiler took an unknown share of base and 20.0 % of new")


def test_lost_events_are_said():
    lost = run(12, findings=[finding("TV901", 0, 0.0, Severity.WARNING, "")])
    damaged = replace(run(12), notes=(Note("damaged", Severity.WARNING, "The file ends early."),))
    known = remarks(side("base", lost), side("new", damaged), PLAIN)
    assert [remark.text for remark in known] == [
        "events are missing from base, and its totals are lower bounds: TV901 costs 0",
        "events are missing from new, and its totals are lower bounds: The file ends early",
    ]


# ---------------------------------------------------------------------------------------------- what is there


def test_classes_by_other_rules_forbid_attribution():
    def ruled(basis):
        plain = run(12)
        return side(
            basis,
            replace(
                plain, sections=(replace(plain.sections[0], blocks=(*plain.sections[0].blocks, facts(basis=basis))),)
            ),
        )

    assert codes(ruled("traceviz"), ruled("xprof")) == {("basis", "error", "attribution")}
    assert codes(ruled("traceviz"), ruled("traceviz")) == set()


def test_a_report_without_classes_by_step_forbids_attribution():
    old = section("steps", table("Every step", "step dur_ns warmup process", *((i, 1000, False, 0) for i in range(12))))
    known = codes(side("base", run(12)), side("new", replace(run(12), sections=(old,))))
    assert known == {("no-classes", "warning", "attribution")}


@pytest.mark.parametrize(("wait", "severity"), [(10, "warning"), (9, "info")])
def test_classes_that_one_side_does_not_measure_are_said(wait, severity):
    base = side("base", run(12, wait=[wait] * 12, compute=[1000 - wait] * 12))
    new = side("new", run(12, compute=[1000] * 12))
    assert codes(base, new) == codes(new, base) == {("classes", severity, "")}
    assert by_code(base, new)["classes"].text == "new does not measure wait: such time counts there as another class"


def test_a_class_that_some_runs_of_a_side_lack_is_said():
    base = side("base", run(12, wait=[500] * 12, compute=[500] * 12))
    new = side("new", run(12, wait=[500] * 12, compute=[500] * 12), run(12, compute=[1000] * 12))
    assert ("classes", "warning", "") in codes(base, new)


def other_kernels(new_format="nsys", framework="PyTorch", renamed="copy", calls=7):
    about = {"format": "nsys", "framework": "PyTorch"}, {"format": new_format, "framework": framework}
    base = side("base", run(12, kernels(("a", "gemm", 12, 95), ("c", "gemm", 1, 5)), about=about[0]))
    new = side("new", run(12, kernels(("b", renamed, calls, 95), ("c", "gemm", 1, 5)), about=about[1]))
    return base, new


@pytest.mark.parametrize(
    ("new_format", "expected"), [("nsys", ("kernel-set", "verdict")), ("xplane", ("kernel-names", "kernels"))]
)
def test_hardly_a_kernel_in_common(new_format, expected):
    base, new = other_kernels(new_format)
    known = {(remark.code, remark.forbids) for remark in remarks(base, new, PLAIN) if remark.code.startswith("kernel")}
    assert known == {expected}


@pytest.mark.parametrize(
    "sides",
    [
        other_kernels(framework="TensorFlow"),  # which calls its kernels otherwise
        other_kernels(renamed="gemm", calls=12),  # of another library, as often per step
    ],
)
def test_other_kernels_that_may_do_the_same_work_forbid_nothing(sides):
    assert {remark.forbids for remark in remarks(*sides, PLAIN) if remark.code == "kernel-set"} == {""}


def test_doubts_about_the_work_of_steps_are_the_users_to_set_aside():
    base, new = other_kernels()
    sides = [
        replace(whole, reports=(replace(whole.reports[0], sections=(*whole.reports[0].sections, steps)),))
        for whole, steps in ((base, steps_of(DECLARED)), (new, steps_of(INFERRED)))
    ]
    forbidden = {remark.code: remark.forbids for remark in remarks(*sides, PLAIN)}
    assert (forbidden["kernel-set"], forbidden["step-source"]) == ("verdict", "verdict")
    vouched = {remark.code: (remark.severity, remark.forbids) for remark in remarks(*sides, Said(same_work=True))}
    assert vouched["kernel-set"] == vouched["step-source"] == (Severity.WARNING, "")


def test_a_side_without_a_device_is_said_and_what_belongs_beside_the_verdict():
    host = side("host", run(12, host_compute=[1000] * 12, about={"format": "kineto"}))
    device = side("gpu", run(12, device_compute=[1000] * 12, about={"format": "nsys", "devices": "H200"}))
    known = by_code(host, device)
    assert known["no-device"].text == "gpu ran on H200, host shows none"
    assert compare([host, device]).shown.caveats == ("no device in host", "another profiler")
    assert compare([host, host]).shown.caveats == ()


@pytest.mark.parametrize(
    ("before", "after", "brief"),
    [("2 × H200", "H200", ""), ("8 × A100 (1 used)", "A100", ""), ("A100", "4 × H200", "other devices")],
)
def test_more_devices_of_a_model_are_no_other_devices(before, after, brief):
    sides = [side(label, run(12, about={"devices": devices})) for label, devices in (("a", before), ("b", after))]
    assert by_code(*sides)["devices"].brief == brief


def test_one_recording_on_both_sides_is_said_and_twice_on_one_side_is_no_repeat():
    slow, other = (report([1000 + 7 * index % (11 + add) for index in range(12)]) for add in (0, 1))
    assert codes(side("a", slow), side("b", slow)) == {("copies", "info", "")}
    assert codes(side("a", slow), side("b", other)) == set()
    assert ("copied-runs", "error", "verdict") in codes(side("a", slow, slow), side("b", other))
    assert ("shared-runs", "error", "verdict") in codes(side("a", slow, other), side("b", other))
    assert codes(side("a", slow, other), side("b", other, slow)) == {("copies", "info", "")}
    same = side("a", run(12), run(12))
    assert codes(same, same) == set()  # steps that all last equally long prove nothing


@pytest.mark.parametrize(("code", "is_said"), [("run-killed", True), ("run-failed", True), ("disk-full", False)])
def test_a_run_that_did_not_end_by_itself_is_said(code, is_said):
    stopped = replace(run(12), notes=(Note(code, Severity.WARNING, "The program was killed by SIGINT."),))
    texts = [
        remark.text
        for remark in remarks(side("base", run(12)), side("new", stopped), PLAIN)
        if remark.code == "stopped"
    ]
    assert texts == ["a run of new did not end by itself: The program was killed by SIGINT"] * is_said


def test_runs_of_a_side_without_steps_are_said():
    known = by_code(side("base", run(12), run(0), run(12)), side("new", run(12)))
    expected = "1 run of base left out of all that is per step: of 3, no more have steady steps"
    assert known["runs-without-steps"].text == expected


def test_a_tenth_of_the_kernel_time_in_common_is_enough():
    base = side("base", run(12, kernels(("a", "gemm", 12, 90), ("c", "gemm", 1, 10))))
    new = side("new", run(12, kernels(("b", "copy", 7, 90), ("c", "gemm", 1, 10))))
    assert codes(base, new) == set()


@pytest.mark.parametrize(
    ("before", "after", "is_said"),
    [(1_000_000, 950_000, False), (1_000_000, 949_999, True), (0, 1_000_000, True), (0, 65_536, False)],
)
def test_bytes_to_the_device_that_differ_are_said(before, after, is_said):
    def copied(per_step):
        return section("copies", table(STEADY, "kind calls total_ns bytes", ("h2d", 12, 120, 12 * per_step)))

    assert ("bytes-to-device" in by_code(*pair(copied(after), base=(copied(before),)))) is is_said


def test_bytes_are_per_sample_where_samples_are_compared():
    def copied(per_step, units):
        rows = ("h2d", 12, 120, 12 * per_step)
        return replace(
            side("s", run(12, section("copies", table(STEADY, "kind calls total_ns bytes", rows)))), per=Fraction(units)
        )

    assert codes(copied(3_200_000, 32), copied(12_800_000, 128)) == set()
    assert "bytes-to-device" in by_code(copied(3_200_000, 32), copied(12_800_000, 32))


def test_what_forbids_comes_first():
    base = side("base", run(5, tagged(batch="1"), about={"framework": "a", "devices": "a"}))
    new = side("new", run(5, tagged(batch="2"), about={"framework": "b", "devices": "b"}))
    codes_in_order = [remark.code for remark in remarks(base, new, PLAIN)]
    assert codes_in_order == ["batch", "few-steps", "few-steps", "devices", "framework"]


# --------------------------------------------------------------------------------------------------- serving


def serving(*phases):
    return section("serving", table("", "phase steps tokens", *phases))


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ([("prefill", 10, 1000), ("decode", 90, 360)], ""),
        ([("prefill", 15, 1000), ("decode", 85, 360)], ""),
        ([("prefill", 16, 1000), ("decode", 84, 360)], "prompts in 16.0 % of steps and 13.6 tokens a step"),
        ([("mixed", 10, 1000), ("decode", 90, 496)], ""),
        ([("mixed", 10, 1000), ("decode", 90, 497)], "prompts in 10.0 % of steps and 15 tokens a step"),
        ([("mixed", 10, None), ("decode", 90, 900)], ""),
        ([("decode", 100, None)], "prompts in 0.0 % of steps)"),
    ],
)
def test_engines_that_serve_other_requests_are_not_judged(phases, said):
    base = side("base", run(12, serving(("prefill", 10, 1000), ("decode", 90, 360))))
    known = remarks(base, side("new", run(12, serving(*phases))), PLAIN)
    assert [(remark.code, remark.forbids) for remark in known] == ([("requests", "verdict")] if said else [])
    assert all(f"(prompts in 10.0 % of steps and 13.6 tokens a step against {said}" in remark.text for remark in known)


def test_requests_of_engines_are_taken_for_the_same_on_the_users_word():
    sides = [side(name, run(12, serving(("decode", 10, tokens)))) for name, tokens in (("base", 10), ("new", 99))]
    assert remarks(*sides, Said(same_work=True)) == ()


def test_training_has_no_requests_to_differ_in():
    training = side("new", run(12))
    assert remarks(side("base", run(12, serving(("decode", 10, 10)))), training, PLAIN) == ()
