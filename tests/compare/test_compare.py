"""Comparisons as a whole: the reported pair, the path, and the document for renderers."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.compare.sections_of import finding, kernels, run, side, steps_of, tagged
from tests.compare.sides_of import report, steps
from tests.compare.sides_of import side as side_of_steps
from traceviz.compare.compare import compare
from traceviz.compare.effect import Effect, Outcome
from traceviz.compare.options import CompareOptions
from traceviz.compare.report.change_table import from_to
from traceviz.compare.report.document import document
from traceviz.compare.report.sentences import effect_words, main_cause
from traceviz.compare.sides import sides as of_sides
from traceviz.compare.sides.sides import Side
from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.render.json import dumps, loads
from traceviz.render.options import RenderOptions
from traceviz.render.registry import RENDERERS, renderer
from traceviz.report import COMPARISON, Facts, Grid, Severity

MS = 1_000_000
BASE, NEW = [10 * MS] * 20, [5 * MS] * 20


def halves():
    """Return a base of 6 ms waiting and 4 ms computing, and a new side of 2 ms and 3 ms."""
    base = report(BASE, input_wait=[6 * MS] * 20, host_compute=[4 * MS] * 20)
    new = report(NEW, input_wait=[2 * MS] * 20, host_compute=[3 * MS] * 20)
    return Side("slow", (base,)), Side("fast", (new,))


def grid_rows(result, slug, number=0):
    grids = [block for block in result.section(slug).blocks if isinstance(block, Grid)]
    names = [column.name for column in grids[number].columns]
    return [dict(zip(names, row, strict=True)) for row in grids[number].rows]


def test_twice_as_fast_and_80_percent_of_it_is_input_wait():
    result = document(compare(halves()))
    assert result.verdict.code == "faster"
    assert result.verdict.sentence == (
        "2.00× faster: mean step 10.0 → 5.00 ms (−50.0 %, 95 % interval −50.0 to −50.0 %). "
        "80 % of the gain is input_wait."
    )
    assert result.fact("effect", "speedup") == 2.0
    assert result.fact("effect", "ratio") == -0.5
    changes = {row["class"]: row["difference_ns"] for row in grid_rows(result, "attribution")}
    assert changes == {"input_wait": -4 * MS, "host_compute": -1 * MS}
    assert sum(changes.values()) == result.fact("attribution", "difference_ns") == -5 * MS
    assert [row["share_of_difference"] for row in grid_rows(result, "attribution")] == [0.8, 0.2]


def test_twice_as_slow_is_a_loss():
    result = document(compare(halves()[::-1]))
    assert result.verdict.code == "slower"
    assert result.verdict.sentence.startswith("2.00× slower: mean step 5.00 → 10.0 ms (+100.0 %")
    assert result.verdict.sentence.endswith("80 % of the loss is input_wait.")


def test_a_side_against_itself_changes_by_0():
    generator = np.random.default_rng(3)
    same = side_of_steps("a", steps(generator, 50, 1e7, 0.05))
    result = document(compare([same, Side("b", same.reports)]))
    assert result.verdict.code == "no-change"
    assert result.verdict.sentence.startswith("No change: mean step ")
    assert result.fact("effect", "difference_ns") == 0
    assert [row["difference_ns"] for row in grid_rows(result, "attribution")] == [0]


def test_a_class_that_gains_more_than_all_is_told_with_what_took_it_back():
    base = report(BASE, input_wait=[8 * MS] * 20, host_compute=[2 * MS] * 20)
    new = report(NEW, input_wait=[0] * 20, host_compute=[5 * MS] * 20)
    result = document(compare([Side("a", (base,)), Side("b", (new,))]))
    assert result.verdict.sentence.endswith(
        "Input_wait alone fell by 8.00 ms on average; other classes took some of it back."
    )


def test_no_class_is_named_where_none_makes_half_of_the_difference():
    base = report(BASE, a=[4 * MS] * 20, b=[3 * MS] * 20, c=[3 * MS] * 20)
    new = report([4 * MS] * 20, a=[2 * MS] * 20, b=[1 * MS] * 20, c=[1 * MS] * 20)
    compared = compare([Side("a", (base,)), Side("b", (new,))])
    assert compared.shown.attribution is not None
    assert main_cause(compared.shown.attribution) is None
    assert document(compared).verdict.sentence.endswith("%).")


def test_speed_ups_of_a_path_multiply_and_its_differences_add_up_to_the_total():
    sides = [side_of_steps(name, [ms * MS] * 12) for name, ms in (("base", 12), ("a", 6), ("b", 8), ("c", 3))]
    result = document(compare(sides))
    *path, total = grid_rows(result, "effect", 1)
    assert [(row["before"], row["after"], row["speedup"]) for row in path] == [
        ("base", "a", 2.0),
        ("a", "b", 0.75),
        ("b", "c", pytest.approx(8 / 3)),
    ]
    assert total["speedup"] == pytest.approx(math.prod(row["speedup"] for row in path)) == 4.0
    assert total["difference_ns"] == sum(row["difference_ns"] for row in path) == -9 * MS
    ranked = grid_rows(result, "effect")
    assert [(row["side"], row["speedup"]) for row in ranked] == [("c", 4.0), ("a", 2.0), ("b", 1.5), ("base", 1.0)]
    assert [row["verdict"] for row in ranked] == ["faster", "faster", "faster", "base"]
    assert [row["compared"] for row in path] == ["2.00× faster", "1.33× slower", "2.67× faster"]
    assert result.verdict.sentence.startswith(
        "Fastest of 4 sides: c, mean step 3.00 ms. a is 2.00× slower, b 2.67× slower, base 4.00× slower. "
        "From base to c: mean step 12.0 → 3.00 ms"
    )


def test_of_3_sides_the_fastest_is_named_and_no_other_is_0_80_times_slower():
    sides = [side_of_steps(name, [ms * MS] * 12) for name, ms in (("base", 4), ("slow", 5), ("same", 4))]
    result = document(compare([*sides, side_of_steps("short", [MS, MS])]))
    assert result.verdict.sentence == (
        "Fastest of 4 sides: base, mean step 4.00 ms. slow is 1.25× slower. As fast as it: same. Cannot judge short."
    )
    rows = [(row["side"], row["compared"], row["against_fastest"]) for row in grid_rows(result, "effect")]
    assert rows == [
        ("base", "base", "fastest"),
        ("same", "no change", "no change"),
        ("slow", "1.25× slower", "1.25× slower"),
        ("short", "cannot judge", None),
    ]
    for name in RENDERERS.names():
        assert "0.80×" not in renderer(name).render(result, RenderOptions(100))


def test_2_sides_are_no_path_and_values_of_a_tag_are_none():
    assert compare(halves()).path == ()
    sides = [side(f"batch={b}", run(9, tagged(batch=str(b)))) for b in (8, 16, 32)]
    compared = compare(sides, CompareOptions(per="batch"), by=("batch",), left_out=("odd",))
    assert compared.path == ()
    assert compared.shown.new.label == "batch=32"
    result = document(compared)
    assert [row["tag.batch"] for row in grid_rows(result, "effect")] == ["8", "16", "32"]
    assert [row["mean_ns"] for row in grid_rows(result, "effect")] == [125.0, 62.5, 31.25]
    text = renderer("terminal").render(result, RenderOptions(80))
    assert "Fastest of 3 sides: batch=32, mean time per sample 31.2 ns. batch=16 is 2.00×" in " ".join(text.split())
    assert "1 run without a tag of batch left out: odd." in text


def test_other_batches_are_not_judged_without_per():
    compared = compare([side(b, run(9, tagged(batch=b))) for b in ("8", "16")])
    assert compared.shown.judgement.outcome is Outcome.UNKNOWN
    result = document(compared)
    assert result.verdict.code == "cannot-judge"
    assert "--per batch" in result.verdict.sentence
    assert "µs" not in result.verdict.sentence
    (base, new) = grid_rows(result, "effect")
    assert (base["mean_ns"], new["mean_ns"], new["difference_ns"], new["ratio"]) == (1000, 1000, None, None)


def test_a_class_of_17_ns_in_3_samples_adds_up_to_the_sample():
    base = report([100] * 9, a=[17] * 9, b=[83] * 9)
    tags = tagged(batch="3")
    sides = [Side(name, (type(base)(base.run, base.verdict, (*base.sections, tags)),)) for name in "ab"]
    compared = compare(sides, CompareOptions(per="batch")).shown.attribution
    assert compared is not None
    assert compared.base_ns == 33
    assert sorted(change.base_ns for change in compared.classes) == [6, 27]


def test_fewer_than_2_sides_is_a_usage_error():
    with pytest.raises(UsageError, match=r"takes two sides.*There is one side, slow"):
        compare(halves()[:1])
    with pytest.raises(UsageError, match=r"takes two sides.*There is none"):
        compare([])


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (Side("odd", (report([]),)), "odd has no steps"),
        (side_of_steps("odd", [5 * MS]), "odd has 1 steady step, and 5 are needed"),
        (side_of_steps("odd", [0] * 20), "most steps of odd last no time at all"),
    ],
)
def test_steps_that_are_none_or_1_or_of_no_time_cannot_be_judged_and_still_render(odd, why):
    good = side_of_steps("good", BASE)
    for sides in ((good, odd), (odd, good), (odd, odd)):
        result = document(compare(sides))
        assert result.verdict.code == "cannot-judge"
        assert result.verdict.sentence.endswith(f"Cannot judge: {why}.")
        texts = [renderer(name).render(result, RenderOptions(80)) for name in RENDERERS.names() if name != "svg"]
        assert [text[-1] for text in texts] == ["\n"] * 7


def test_what_neither_side_recorded_is_skipped_and_said_once():
    result = document(compare(halves()))
    assert {"kernels", "cuda_api", "copies", "host"} <= {skip.slug for skip in result.skipped}
    assert "not compared: " in renderer("terminal").render(result, RenderOptions(80))


def test_kernels_of_the_pair_told_come_first_and_those_of_others_are_for_machines():
    one, two, three = (
        side(name, run(10, kernels(("k", "gemm", 10, total)), steps_of("NVTX ranges")))
        for name, total in (("one", 1_000), ("two", 2_000), ("three", 5_000))
    )
    result = document(compare([one, two, three]))
    grids = [block for block in result.section("kernels").blocks if isinstance(block, Grid)]
    assert [(grid.audience, grid.rows[0][0]) for grid in grids] == [("all", "slower"), ("machine", "slower")]
    assert grid_rows(result, "kernels")[0]["new_ns"] == 200
    assert grid_rows(result, "kernels", 1)[0]["new_ns"] == 500


def test_sections_come_in_their_order():
    one = side("one", run(10, kernels(("k", "gemm", 10, 1_000)), steps_of("NVTX ranges")))
    result = document(compare([one, Side("two", one.reports)]))
    assert [section.slug for section in result.sections] == [
        *("effect", "attribution", "changed", "kernels", "findings", "comparability")
    ]


def test_the_json_document_has_the_schema_of_a_comparison_and_is_refused_as_a_report():
    text = dumps(document(compare(halves())))
    stated = json.loads(text)
    assert stated["schema"] == COMPARISON == "traceviz.comparison/1"
    (grid,) = [b for b in stated["sections"][1]["blocks"] if b["type"] == "grid"]
    (change,) = [c for c in grid["columns"] if c["name"] == "difference_ns"]
    assert (change["signed"], change["better"], change["bar"]) == (True, "lower", True)
    assert grid["rows"][0]["difference_ns"] == -4 * MS
    with pytest.raises(DamagedTraceError, match=r"It is a comparison of reports\. Name the traces"):
        loads(text)


def test_reports_read_back_from_json_compare_as_those_analysed_now():
    base, new = halves()
    read = [Side(side.label, tuple(loads(dumps(saved)) for saved in side.reports)) for side in (base, new)]
    assert document(compare(read)) == document(compare((base, new)))


def test_every_line_of_4_sides_fits_80_columns():
    sides = [side_of_steps(f"a side with a name that is far too long, number {i}", [i * MS] * 9) for i in range(1, 5)]
    result = document(compare(sides))
    for width in (80, 100):
        text = renderer("terminal").render(result, RenderOptions(width))
        assert max(map(len, text.splitlines())) <= width
        assert "4.00 ms" in text


def test_80_columns_have_room_for_the_intervals_of_3_sides():
    sides = [side_of_steps(name, [ms * MS] * 9) for name, ms in (("baseline", 1), ("prefetch", 3), ("mixed", 4))]
    text = renderer("terminal").render(document(compare(sides)), RenderOptions(80))
    assert "mixed                9    4.00 ms  +300.0 %  +300.0, +300.0    4.00× slower" in text


def test_long_names_give_way_before_the_number_of_steps_and_the_interval_in_80_columns():
    names = ("profiler_of_a_long_name.worker0.1623143089861", "profiler_of_a_long_name.worker1.1623143089862")
    sides = [side_of_steps(name, [ms * MS] * 9) for name, ms in zip(names, (1, 2), strict=True)]
    text = renderer("terminal").render(document(compare(sides)), RenderOptions(80, sections=("effect",)))
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("  profiler")]
    assert lines[0][0] == "9"
    assert lines[1][:7] == ["9", "2.00", "ms", "+100.0", "%", "+100.0,", "+100.0"]


def test_a_path_of_9_changes_is_for_programs():
    for count, audience in ((9, "all"), (10, "machine")):
        sides = [side_of_steps(f"s{i}", [i * MS] * 9) for i in range(1, count + 1)]
        (path,) = (b for b in document(compare(sides)).grids("effect") if b.title == "Change from the previous side")
        assert path.audience == audience


def test_one_run_of_each_side_leaves_out_what_a_restart_changes_and_2_runs_do_not():
    blocks = document(compare(halves())).section("effect").blocks
    assert any("variation between runs is not included" in getattr(block, "text", "") for block in blocks)
    repeated = [side_of_steps(name, [ms * MS] * 9, [ms * MS + 1] * 9) for name, ms in (("a", 2), ("b", 3))]
    result = document(compare(repeated))
    assert [block for block in result.section("effect").blocks if not isinstance(block, Grid | Facts)] == []
    assert [row["runs"] for row in grid_rows(result, "effect")] == [2, 2]


@pytest.mark.parametrize(
    ("base", "new", "words"),
    [(205e6, 68.5e6, "205 → 68.5 ms"), (1.2e9, 68.5e6, "1.20 s → 68.5 ms"), (0.0, 5.0, "none → 5.00 ns")],
)
def test_a_unit_is_said_once_where_both_have_it(base, new, words):
    assert from_to(base, new) == words


@pytest.mark.parametrize(("long_ms", "is_said"), [(11, False), (13, True)])
def test_long_steps_that_take_turns_with_short_ones_are_said(long_ms, is_said):
    base = side_of_steps("base", [10 * MS] * 20)
    result = document(compare([base, side_of_steps("new", [10 * MS, long_ms * MS] * 10)]))
    said = [block.text for block in result.section("effect").blocks if "take turns" in getattr(block, "text", "")]
    sentence = (
        "Long and short steps take turns in new every 2 steps (10.0 to 13.0 ms). The mean counts both, as throughput "
        "does, and intervals hold whole turns; the median is one kind of step, or lies between them."
    )
    assert said == [sentence] * is_said
    assert [row["period"] for row in grid_rows(result, "effect")] == [1, 2]


def test_turns_of_steps_that_wait_for_loader_workers_tell_how_many_there_are():
    base, workers = side_of_steps("base", [10 * MS] * 20), finding("TV109", 0, 0.0, Severity.INFO)
    (turns,) = side_of_steps("new", [2 * MS, 2 * MS, 38 * MS] * 8).reports
    result = document(compare([base, Side("new", (replace(turns, findings=(workers,)),))]))
    (said,) = [block.text for block in result.section("effect").blocks if "take turns" in getattr(block, "text", "")]
    assert "new every 3 steps (2.00 to 38.0 ms, as 3 loader workers that fetch side by side hand out batches)." in said


def test_medians_are_told_where_they_changed_otherwise_than_means():
    base = side_of_steps("base", [10 * MS] * 20)
    stalls = side_of_steps("stalls", [9 * MS] * 16 + [34 * MS] * 4)
    turns = side_of_steps("turns", [8 * MS, 8 * MS, 29 * MS] * 10)
    assert "Median step" not in document(compare([base, base])).verdict.sentence
    assert document(compare([base, turns])).verdict.sentence.startswith(
        "1.50× slower: mean step 10.0 → 15.0 ms (+50.0 %, 95 % interval +50.0 to +50.0 %). "
        "Median step 10.0 → 8.00 ms (−20.0 %)."
    )
    wide = document(compare([base, stalls]))
    assert wide.fact("effect", "median_ratio") == pytest.approx(-0.1)
    assert wide.fact("effect", "ratio") == pytest.approx(0.4)


@pytest.mark.parametrize(("new", "is_judged"), [([2, 18, 4, 16, 6, 14], True), ([2, 19, 2, 18, 6, 17], False)])
def test_what_cannot_be_judged_has_no_speed_up_in_any_format(new, is_judged):
    result = document(compare([side_of_steps("a", [2, 18, 4, 16, 6, 14]), side_of_steps("b", new)]))
    pages = {
        name: renderer(name).render(result, RenderOptions(100, sections=("effect",))) for name in RENDERERS.names()
    }
    assert [row["speedup"] for row in grid_rows(result, "effect")] == ([1.0, 1.0] if is_judged else [None, None])
    assert ["no change" in pages[name] for name in ("terminal", "markdown")] == [is_judged] * 2
    facts = {fact.key: fact.value for fact in result.facts("effect")}
    assert [facts[key] for key in ("speedup", "speedup_low", "speedup_high")] == (
        [1, 1, 1] if is_judged else [None] * 3
    )
    rows = list(csv.DictReader(io.StringIO(pages["csv"])))
    assert [row["speedup [factor]"] for row in rows] == (["1.0", "1.0"] if is_judged else ["", ""])
    assert (rows[1]["verdict"], rows[1]["low_ratio"] != "") == ("no change" if is_judged else "cannot judge", True)


def test_of_tagged_sides_none_of_which_can_be_judged_the_fastest_of_the_same_work_is_told():
    times = np.array([1, 9, 2, 8, 3, 7], np.int64) * MS
    sides = [side_of_steps(name, times * factor) for name, factor in (("a", 6), ("b", 5), ("c", 4), ("d", 1))]
    sides[3] = Side("d", (report([MS]),))  # not to be judged, and no figure of it
    compared = compare(sides, by=("tag",))
    assert {pair.judgement.outcome for pair in compared.pairs} == {Outcome.UNKNOWN}
    assert compared.shown.new.label == "c"


def test_an_effect_is_told_with_its_share_and_the_interval_of_that():
    effect = Effect(100.0, 2.0, -99.0, -80.0, 100.0, 2.0, runs=False)
    assert effect_words(effect) == "100 → 2.00 ns (−98.0 %, 95 % interval −99.0 to −80.0 %)"


def test_a_side_without_steps_on_a_path_of_3_leaves_its_2_changes_unknown():
    sides = [side_of_steps("a", BASE), Side("b", (report([]),)), side_of_steps("c", NEW)]
    result = document(compare(sides))
    path = [(row["verdict"], row["difference_ns"]) for row in grid_rows(result, "effect", 1)]
    assert path == [("cannot judge", None), ("cannot judge", None), ("faster", -5 * MS)]
    assert "Cannot judge b: b has no steps." in renderer("terminal").render(result, RenderOptions(80))


def test_steps_of_a_report_are_read_once_however_often_they_are_asked_for(monkeypatch):
    read = []
    run_steps = of_sides._run_steps
    monkeypatch.setattr(of_sides, "_run_steps", lambda report: read.append(report) or run_steps(report))
    findings = [finding(code, 500, 0.1, Severity.WARNING) for code in ("TV101", "TV201", "TV301")]
    sides = [side(name, run(12, kernels(("a", "gemm", 12, 900)), findings=findings)) for name in "abc"]
    assert [change.base_ns for change in compare(sides).shown.findings.changes] == [42] * 3  # 500 ns of 12 steps
    assert len(read) == 3
    assert "Grid(" not in repr(sides)
