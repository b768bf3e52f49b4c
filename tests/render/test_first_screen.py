"""Contents of a report's first screen, which fits on one screen."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.render.report_strategies import REPORTS
from tests.render.sample_report import sample_report
from traceviz.analyses.registry import ANALYSES
from traceviz.render.first_screen import DETAILS, Detail, first_screen, most_lines, spoken
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import (
    COMPARISON,
    MEASURES,
    STATED,
    Bar,
    Bars,
    Candidate,
    Claim,
    Column,
    Fact,
    Finding,
    Grid,
    Note,
    Report,
    Section,
    Severity,
    Skipped,
    Verdict,
)
from traceviz.report.findings.record import BY_CAUSE
from traceviz.report.verdicts import VerdictCode
from traceviz.testing import HOSTILE_NAMES, hostile_report

INPUT = replace(sample_report(), verdict=replace(sample_report().verdict, cause="input"))


def drawn(report, width, **options):
    return renderer("terminal").render(report, RenderOptions(width, first_screen=True, **options))


def finding(code, slug, severity=Severity.ERROR, cost_ns=100, *, message="It is slow.", advice=("Do it.",)):
    return Finding(code, slug, severity, message, (), advice, cost_ns, 0.5, "steady step time")


def report(findings=(), sections=(), cause="", sentence="Slow.", **others):
    return Report((), Verdict(VerdictCode.NONE, sentence, cause), sections, findings, **others)


@pytest.mark.parametrize(("width", "most"), [(100, 45), (200, 45), (80, 60), (99, 48), (40, 120)])
def test_a_screen_has_45_lines_at_100_columns_and_60_at_80(width, most):
    assert most_lines(width) == most


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_names_neither_lengthen_the_screen_nor_break_a_line(name):
    """Names of findings and what shares are shares of are words of ours."""
    hostile = hostile_report(name)
    foreign = tuple(replace(f, slug="slow", code="TV205", share_of="time") for f in hostile.findings)
    sections = tuple(replace(section, slug=slug) for section in hostile.sections for slug in ("breakdown", "kernels"))
    for width in (80, 100):
        text = drawn(replace(hostile, findings=foreign, sections=sections), width)
        assert text.count("\n") == len(text.splitlines()) <= most_lines(width)
        assert [c for c in text if c != "\n" and not c.isprintable()] == []
    assert renderer("markdown").render(hostile_report(name), RenderOptions(first_screen=True)).endswith("\n")


@given(report=REPORTS, width=st.integers(40, 200))
@settings(max_examples=12)
def test_any_report_has_a_screen(report, width):
    """With names of 10,000 characters the least detail may be longer; its lines still fit."""
    for name in ("terminal", "markdown"):
        text = renderer(name).render(report, RenderOptions(width, first_screen=True))
        assert [line for line in text.split("\n") if line != line.rstrip()] == []


def test_a_screen_takes_the_most_detail_that_fits():
    much, advice = "Much happens. " * 25, "Do much. " * 40
    many = tuple(finding(f"TV20{n}", f"problem-{n}", message=much, advice=(f"{n} {advice}",)) for n in range(5))
    parts = tuple(Bar(str(n), f"a long name of part {n}", 10**9, 0.125) for n in range(8))
    run = Section("whole_run", "The whole run", (Bars("", "8 s", "ns", parts),))
    notes = (Note("n", Severity.WARNING, much),) * 2
    healthy = replace(INPUT.verdict, cause="healthy", caveats=())
    crowded = replace(INPUT, verdict=healthy, findings=many, notes=notes, sections=(run, *INPUT.sections))
    stakes = {width: drawn(crowded, width).count("at stake") for width in (40, 100)}
    assert stakes == {40: 3, 100: 2}
    assert 40 < len(drawn(crowded, 100).splitlines()) <= 45


def test_the_screen_begins_with_the_time_of_an_epoch_and_samples_per_second():
    columns = tuple(Column(name, name) for name in ("key", "value", "unit"))
    rows = (("total_ns", 9e9, "ns"), ("samples_per_second", 512.4, "per_second"), ("epoch_ns", 2_500_000_000, "ns"))
    strange = (("energy_per_sample_j", 2, "furlong"),)
    for more, shown in (((), "epoch 2.50 s, 512 samples/s"), (strange, "epoch 2.50 s, 512 samples/s, 2 a sample")):
        section = Section("measures", "", (Grid(columns, (*rows, *more), MEASURES, audience="machine"),))
        facts = {fact.key: fact.value for fact in first_screen(report(sections=(section,))).run}
        assert facts["figures"] == shown
    assert "figures" not in {fact.key for fact in first_screen(report()).run}


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([("validation loss", "lower", 0.25), ("lr", None, 0.1)], ["validation loss 0.25"]),
        ([("validation loss", "lower", None)], []),
        ([("lr", None, 0.1)], []),
    ],
)
def test_the_screen_begins_with_the_last_value_of_1_figure_of_quality(rows, shown):
    columns = tuple(Column(name, name) for name in ("label", "better", "last"))
    section = Section("quality", "Quality", (Grid(columns, tuple(rows), STATED),))
    facts = [fact.value for fact in first_screen(report(sections=(section,))).run]
    assert facts == shown
    assert ["validation loss 0.25" in drawn(report(sections=(section,)), 100)] == [bool(shown)]


def test_what_the_verdict_states_is_not_repeated_in_its_finding():
    sentence = "Launch-bound: kernels take 3.00 µs. Not input-bound (0.0 %)."
    lead = finding("TV202", "launch-bound-kernels", message="Kernels take 3.00 µs.")
    other = finding("TV302", "pageable-copies", message="Copies take 5 ms.", cost_ns=999)
    shown = first_screen(report((other, lead), cause="launch-bound-kernels", sentence=sentence)).findings
    assert [(f.code, f.message) for f in shown] == [("TV202", ""), ("TV302", "Copies take 5 ms.")]


def test_evidence_is_what_neither_verdict_nor_message_state():
    (shown, *_) = first_screen(INPUT).findings
    assert (shown.code, shown.message) == ("TV101", "")
    unnumbered = tuple(section for section in INPUT.sections if section.slug != "breakdown")
    placed = replace(finding("TV613", "lock-wait"), evidence=(Fact("place", "mostly in", "train.py:41 decode"),))
    said = (replace(placed, message=f"It is in {where}.") for where in ("decode (train.py:41)", "load (train.py:4)"))
    shown = [first_screen(report((placed,))).findings[0].evidence for placed in said]
    assert [len(evidence) for evidence in shown] == [0, 1]
    stated = replace(
        INPUT, verdict=replace(INPUT.verdict, headline="", sentence="130 ms of each, 57.5 %."), sections=unnumbered
    )
    assert [fact.key for fact in first_screen(stated).findings[0].evidence] == ["waits"]
    assert first_screen(INPUT).bars[0].whole == "57 steady steps"
    assert [fact.value for fact in first_screen(INPUT).findings[0].evidence] == [130_000_000]


def test_a_finding_shows_its_first_advice_that_no_finding_before_it_gave():
    one = finding("TV202", "one", cost_ns=2, advice=("Compile.", "Use graphs."))
    two = finding("TV407", "two", cost_ns=1, advice=("Compile.", "Use larger batches."))
    assert [f.advice for f in first_screen(report((one, two))).findings] == [("Compile.",), ("Use larger batches.",)]


def test_what_is_spoken_is_the_verdict_and_what_findings_add_to_it():
    lead = finding("TV202", "launch-bound-kernels", message="Kernels take 3 µs.", advice=("Use larger batches.", "b"))
    other = finding("TV302", "pageable-copies", message="Copies take 5 ms.", cost_ns=1)
    hint = finding("TV204", "small", Severity.INFO)
    said = spoken(
        report((lead, other, hint), cause="launch-bound-kernels", sentence="Launch-bound: kernels take 3 µs.")
    )
    assert said == (
        "Launch-bound: kernels take 3 µs.",
        "TV202 launch-bound-kernels: Use larger batches.",
        "TV302 pageable-copies: Copies take 5 ms.",
    )


def test_information_is_shown_where_it_explains_the_first_finding_or_stands_alone():
    copies = finding("TV303", "copies", Severity.INFO, 0)
    loader = finding("TV109", "slow-loader", Severity.INFO, 0)
    alone = first_screen(report((copies,)))
    beside = first_screen(report((finding("TV101", "input-bound"), copies, loader), cause="input"))
    assert [f.slug for f in alone.findings] == ["copies"]
    assert [f.slug for f in beside.findings] == ["input-bound", "slow-loader"]
    assert beside.others == "Also: copies (--section findings)."


def test_small_parts_of_a_bar_are_one_and_parts_of_nothing_none():
    shares = (0.5, 0.3, 0.0, 0.18, 0.008, 0.007, 0.005)
    bars = Bars("Step time", "time", "ns", tuple(Bar(str(i), str(i), s * 1e9, s) for i, s in enumerate(shares)))
    (shown,) = first_screen(report(sections=(Section("breakdown", "", (bars,)),))).bars
    assert [bar.label for bar in shown.bars] == ["0", "1", "3", "other (3)"]
    assert sum(bar.value for bar in shown.bars) == pytest.approx(1e9)
    assert shown.bars[-1].share == pytest.approx(0.02)
    (fewer,) = first_screen(report(sections=(Section("breakdown", "", (bars,)),)), Detail(parts=2)).bars
    assert [(bar.label, bar.share) for bar in fewer.bars] == [("0", 0.5), ("other (5)", pytest.approx(0.5))]


def test_the_bar_with_the_base_of_the_headline_comes_first():
    def bars(label):
        return Bars("Parts", label, "ns", (Bar("a", "a", 1, 1.0),))

    sections = (Section("breakdown", "", (bars("steps"),)), Section("whole_run", "", (bars("34 s"),)))
    spanned = replace(report(sections=sections), run=(Fact("span_ns", "captured time", 811_000_000, "ns"),))
    assert [fact.value for fact in first_screen(spanned).run] == ["811 ms profiled"]
    of_run, of_steps = ("Where the run's time went", "34 s"), ("Where the steps' time went", "steps")
    assert [(bar.title, bar.whole) for bar in first_screen(spanned).bars] == [of_steps, of_run]
    lead = Candidate("run_saving", "saving", 9, 0.3, "run", "measured", "", "", leads=True)
    led = replace(spanned, verdict=replace(spanned.verdict, candidates=(lead,)))
    assert [(bar.title, bar.whole) for bar in first_screen(led).bars] == [of_run, of_steps]


def test_the_bar_of_a_verdict_has_its_parts_and_comes_before_those_of_sections():
    claims = [Claim(key, key, 10, share, "steady step time", "measured", "") for key, share in (("a", 0.7), ("b", 0.3))]
    steps = Section("breakdown", "", (Bars("", "time of 12 steady steps (348 ms)", "ns", (Bar("c", "c", 1, 1.0),)),))
    whole = report(sections=(steps,))
    (shown,) = first_screen(replace(whole, verdict=replace(whole.verdict, parts=tuple(claims)))).bars
    assert [(bar.key, bar.value, bar.share) for bar in shown.bars] == [("a", 10, 0.7), ("b", 10, 0.3)]
    assert (shown.title, shown.whole) == ("Where the steps' time went", "12 steady steps (348 ms)")


def test_a_bar_of_steady_steps_says_how_many_they_are():
    part = (Bar("a", "a", 1, 1.0),)
    steps = Section("breakdown", "", (Bars("Step time", "time of 12 steady steps (348 ms)", "ns", part),))
    work = Section("cpu_steps", "", (Bars("By what is computed", "steady step time", "ns", part),))
    assert [bar.whole for bar in first_screen(report(sections=(steps, work))).bars] == ["12 steady steps (348 ms)"]
    captured = Section("cpu_steps", "", (Bars("By what is computed", "captured time", "ns", part),))
    (alone,) = first_screen(report(sections=(captured,))).bars
    assert (alone.title, alone.whole) == ("Where the time went", "captured time")


def test_a_legend_leaves_out_values_where_that_saves_lines():
    parts = tuple(Bar(name, name, 10**9, 0.25) for name in ("Element-wise operations", "Input", "Ranges", "Optimizer"))
    bars = Section("breakdown", "", (Bars("Step time", "4 s", "ns", parts),))
    narrow, wide = (drawn(report(sections=(bars,)), width) for width in (80, 100))
    assert narrow.count("1.00 s") == 0
    assert wide.count("1.00 s") == 4
    assert narrow.count("25.0 %") == 4


def test_the_largest_times_outside_of_steps_come_first():
    columns = (Column("part", "Part"), Column("time_ns", "Time", "ns"))
    grid = Grid(columns, (("imports", 5), ("validation", 9), ("saving", 7)), "Where outside of steps")
    run = Section("whole_run", "The whole run", (Grid(columns, (("steps", 1),)), grid))
    shown = first_screen(report((finding("TV701", "time-outside-steps"),), (run,), "os_call")).tables
    assert [(table.title, table.blocks[0].rows[0][0]) for table in shown] == [
        ("The whole run · Where outside of steps", "validation")
    ]


def test_a_finding_about_as_much_time_brings_its_table():
    table = Grid((Column("name", "Name"),), (("a",),), "By kind: what was copied")
    slugs = ("input_pipeline", "copies", "os_calls")
    sections = tuple(Section(slug, slug, (table,)) for slug in slugs)
    lead, copies = finding("TV101", "input-bound", cost_ns=100), finding("TV302", "pageable-copies", cost_ns=95)
    both, small = ((lead, replace(copies, cost_ns=cost)) for cost in (95, 50))
    titles = [[t.title for t in first_screen(report(found, sections, "input")).tables] for found in (both, small)]
    assert titles == [
        ["input_pipeline · By kind", "copies · By kind"],
        ["input_pipeline · By kind", "os_calls · By kind"],
    ]


@pytest.mark.parametrize(
    ("code", "cause", "titles"),
    [
        ("TV613", "lock-wait", ["In steps", "Other threads and processes"]),
        ("TV109", "input", ["Other threads and processes"]),
        ("TV108", "input", ["In steps"]),
        ("TV611", "python-in-loop", ["In steps"]),
        ("TV999", "io", ["In steps"]),
    ],
)
def test_what_other_threads_do_is_shown_where_the_program_waits_for_them(code, cause, titles):
    grids = tuple(
        Grid((Column("place", "Where"),), (("train.py:1",),), title)
        for title in ("In steps", "Outside of steps", "Functions", "Other threads and processes")
    )
    shown = report((finding(code, cause),), (Section("host_time", "Host", grids),), cause)
    assert [table.title for table in first_screen(shown).tables] == [f"Host · {title}" for title in titles]


def test_threads_that_wait_for_work_come_last():
    columns = (Column("thread", "Thread"), Column("kind", "Key", importance=9))
    rows = (("feeder", "lock"), ("server", "io"), ("worker", "input"))
    host = Section("host_time", "Host", (Grid(columns, rows, "Other threads and processes"),))
    (table,) = first_screen(report((finding("TV109", "slow-loader-workers"),), (host,), "input")).tables
    assert [row[0] for row in table.blocks[0].rows] == ["worker", "server", "feeder"]


def test_causes_of_little_idle_time_have_no_table():
    columns = (Column("cause", "Cause"), Column("share", "Of steps", "ratio", bar=True))
    tables = []
    for share in (0.049, 0.05):
        waits = Section("host_waits", "Causes", (Grid(columns, (("a", share),)),))
        tables.append(len(first_screen(report(sections=(waits,), cause="synchronisation")).tables))
    assert tables == [0, 1]


@pytest.mark.parametrize(
    ("cause", "code", "tables"),
    [
        ("input", "TV101", ["input_pipeline"]),
        ("healthy", "", ["kernels"]),
        ("pageable-copies", "TV302", ["copies", "cuda_api"]),
        ("host", "TV205", ["cuda_api", "kernels"]),
        ("", "TV301", ["cuda_api"]),
    ],
)
def test_tables_are_those_behind_the_cause(cause, code, tables):
    shown = replace(
        INPUT, verdict=Verdict(VerdictCode.NONE, "", cause), findings=(finding(code, cause),) if code else ()
    )
    behind = sorted(section.slug for section in first_screen(shown).tables)
    assert [slug for slug in behind if slug in tables] == tables
    assert len(behind) <= 2


def test_tables_of_causes_are_those_of_sections_that_exist():
    tables = {table for tables in BY_CAUSE.values() for table in tables}
    assert {table.partition(":")[0] for table in tables} - {*ANALYSES.names()} == set()


def test_the_finding_that_leads_is_told_by_its_code_too():
    leads = Candidate("x", "x", 1, 0.5, "", "measured", "TV206", "", leads=True)
    shown = report((finding("TV301", "b", cost_ns=9), finding("TV206", "a", cost_ns=1)))
    shown = replace(shown, verdict=Verdict(VerdictCode.NONE, "", "blocking_copy", (leads,)))
    assert first_screen(shown).findings[0].code == "TV206"


def test_what_was_not_measured_is_said_once_in_words():
    missing = {
        "cuda_api": ("cuda_api",),
        "kernels": ("kernels",),
        "precision": ("kernels",),
        "copies": ("memcpy",),
        "steps": (),
        "precision2": (),
    }
    skipped = tuple(Skipped(slug, "why", tables) for slug, tables in missing.items())
    assert first_screen(report(skipped=skipped)).unseen == "Not measured: device work, steps."
    assert first_screen(report(skipped=skipped[3:4])).unseen == "Not measured: copies."
    programs = (Section("device_programs", "", (Bars("", "", "ns", ()),)),)
    of_tpu = (*skipped[:1], *skipped[3:5])
    assert first_screen(report(sections=programs, skipped=of_tpu)).unseen == "Not measured: steps."
    assert first_screen(report()).unseen == ""


def test_the_last_line_says_how_to_see_the_rest():
    notes = tuple(Note("n", severity, "x") for severity in (Severity.INFO, Severity.WARNING, Severity.INFO))
    screen = first_screen(replace(INPUT, notes=notes))
    assert screen.more == (
        "all 9 sections: --all · one: --section NAME · notes: --section notes · traceviz explain TV101"
    )
    assert [note.severity for note in screen.notes] == [Severity.WARNING]


def test_a_note_on_which_part_is_shown_comes_before_warnings():
    notes = tuple(
        Note(code, severity, code) for code, severity in (("bad", Severity.WARNING), ("window", Severity.INFO))
    )
    screens = [first_screen(report(notes=notes), Detail(notes=most)) for most in (2, 1)]
    assert [[note.code for note in screen.notes] for screen in screens] == [["window", "bad"], ["window"]]


def test_long_texts_end_with_a_sentence():
    text = "One is here. " * 40
    screen = first_screen(report((finding("TV202", "a", message=f"A. {text}"),), sentence=text), Detail(characters=100))
    assert screen.lines.headline == ("One is here. " * 15).rstrip()
    assert screen.findings[0].message == "A. " + ("One is here. " * 7).rstrip()
    assert first_screen(report(sentence="x" * 700)).lines.headline == "x" * 499 + "…"


def test_more_rows_are_shown_where_they_are_asked_for():
    healthy = replace(INPUT, verdict=Verdict(VerdictCode.NONE, "", "healthy"))
    table = drawn(healthy, 100, top=3).partition("Kernels ─")[2]
    assert len(re.findall(r"^  \w.* ms  +\d", table, re.MULTILINE)) == 4  # three, and the sum of the others


def test_comparisons_and_named_sections_have_no_first_screen():
    compared = replace(INPUT, schema=COMPARISON)
    for name in ("terminal", "markdown"):
        draw = renderer(name).render
        assert draw(compared, RenderOptions(first_screen=True)) == draw(compared, RenderOptions())
        one = RenderOptions(sections=("kernels",))
        assert draw(INPUT, replace(one, first_screen=True)) == draw(INPUT, one)


def test_every_detail_shows_less_than_the_one_before_it():
    lengths = [len(str(first_screen(INPUT, detail))) + 100 * detail.rows for detail in DETAILS]
    assert lengths[0] > lengths[3] > lengths[-1]
