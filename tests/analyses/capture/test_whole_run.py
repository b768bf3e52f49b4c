"""Findings on the whole run, and the start of a verdict on steps if they are the smaller part of it."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.headline.sentences import continue_sentence
from traceviz.analyses.run import analyze

S = 1_000_000_000
FRAMES = [
    (0, None, "<module>", "train.py", 3),
    (1, None, "save_checkpoint", "train.py", 88),
    (2, None, "validate", "train.py", 30),
    (3, None, "train_step", "train.py", 20),
    (4, 0, "_find_and_load", "<frozen importlib._bootstrap>", 1, {"origin": "standard"}),
    (5, None, "export", "train.py", 95),
]


def run(*, startup=2, stepping=10, validating=0, saving=0, after=0, profiled=False, imports=True, **more):
    """Return a report on a run of these seconds per part, with a hundred steps and a part between the middle two."""
    each = stepping * S // 100
    half = (startup * S) + 50 * each
    begin = [startup * S + at * each + (at >= 50) * (validating + saving) * S for at in range(100)]
    end = (startup + stepping + validating + saving + after) * S
    phases = [(0, end, "program", "train.py", {"thread_id": None})]
    phases += [(at, each, "step", "keras", {"number": number}) for number, at in enumerate(begin)]
    rows = [(0, startup * S, 4 if imports else 0), (begin[0], 50 * each, 3), (half, validating * S, 2)]
    rows += [(half + validating * S, saving * S, 1), (begin[50], 50 * each, 3), (begin[99] + each, after * S, 5)]
    stacks = [(at, lasts, stack, lasts // 10_000_000) for at, lasts, stack in rows if lasts]
    work = {}
    if profiled:
        work = {
            "steps": [(at, each, number) for number, at in enumerate(begin[:20])],
            "kernels": [(at, each // 2, "gemm") for at in begin[:20]],
            "nvtx": [(at + each // 2, each // 2, "data loading") for at in begin[:20]],
        }
    return analyze(tables(phases=phases, stacks=stacks, stack_frames=FRAMES, **work, **more))


def codes(report):
    return [finding.code for finding in report.findings if finding.code.startswith("TV7")]


def message(report, code):
    return next(finding.message for finding in report.findings if finding.code == code)


def first_sentence(report):
    return report.verdict.sentence.partition(". ")[0]


def test_steps_that_are_most_of_a_run_are_said_to_be_nothing_else():
    report = run(startup=2, stepping=10, validating=0)
    assert codes(report) == []
    assert "of this run" not in report.verdict.sentence
    assert report.fact("whole_run", "steps_share") == 10 / 12


@pytest.mark.parametrize(
    ("saving", "stepping", "cause"),
    [(4, 12, "input"), (5, 5, "run_saving"), (1, 12, "input")],  # 24 % of the run against 35 %, 45 % against 23 %, 7 %
)
def test_time_outside_of_steps_leads_if_it_is_a_fifth_of_the_run_and_larger_than_what_leads_in_them(
    saving, stepping, cause
):
    report = run(startup=1, stepping=stepping, saving=saving, profiled=True)
    assert report.verdict.cause == cause
    assert report.verdict.sentence.startswith("Steps are ") == (cause == "run_saving")


def test_saving_does_not_lead_over_the_steps_of_a_program_without_devices():
    assert "of this run" not in run(startup=1, stepping=10, saving=5).verdict.sentence


@pytest.mark.parametrize("unseen", [0, 3])
@pytest.mark.parametrize(("encloses", "cause"), [(True, "synchronisation"), (False, "run_other")])
def test_a_function_that_encloses_a_run_without_steps_does_not_lead_over_what_devices_wait_for(encloses, cause, unseen):
    """Unknown time of the run, 3 s more, does not count: the function encloses the 10 s that are known."""
    main, load = (0, None, "main", "serve.py", 12), (1, None, "load_model", "serve.py", 3)
    at = range(0, 10 * S, S // 10)
    report = analyze(
        tables(
            phases=[(-unseen * S, (10 + unseen) * S, "program", "serve.py", {"thread_id": None})],
            stacks=[(0, 10 * S, 0, 1000)] if encloses else [(0, 7 * S, 1, 700), (7 * S, 3 * S, 0, 300)],
            stack_frames=[main, load],
            kernels=[(start, S // 20, "gemm") for start in at],
            cuda_api=[(start + S // 20, S // 25, "cudaStreamSynchronize") for start in at],
        )
    )
    assert report.verdict.cause == cause


def test_steps_that_are_the_smaller_part_of_a_run_are_said_first_with_the_largest_part_and_its_line():
    report = run(startup=2, stepping=3, validating=3, saving=12)
    assert first_sentence(report) == "Steps are 15.0 % of this run; 60.0 % is save_checkpoint (train.py:88)"
    assert report.verdict.cause == "run_saving"
    leading = [candidate for candidate in report.verdict.candidates if candidate.leads]
    assert [(candidate.key, candidate.time_ns, candidate.share) for candidate in leading] == [
        ("run_saving", 12 * S, 0.6)
    ]
    assert report.verdict.candidates[0] is leading[0]


def test_a_short_start_up_is_said_after_what_leads_in_the_steps():
    report = run(startup=20, stepping=10, profiled=True)
    assert report.verdict.sentence.startswith("Highly input-bound: 50.0 % of steady step time waits")
    assert " Steps are 33.3 % of this run; 66.7 % is start-up." in report.verdict.sentence
    assert report.verdict.cause == "input"
    assert codes(report) == []


def test_a_short_start_up_that_is_the_programs_own_work_is_what_a_run_is_about():
    report = run(startup=20, stepping=10, profiled=True, imports=False)
    assert (
        first_sentence(report)
        == "Steps are 33.3 % of this run; 66.7 % is start-up, mostly the script train.py (line 3)"
    )
    assert [(found.code, found.severity.value) for found in report.findings if found.code == "TV704"] == [
        ("TV704", "info")
    ]


def test_where_nothing_leads_within_the_steps_their_sentence_is_about_computing():
    phases = [(0, 20 * S, "program", ""), *((12 * S + at * S // 2, S // 2, "step", "keras") for at in range(16))]
    declared = [(12 * S + at * S // 2, S // 2, at) for at in range(16)]
    kernels = [(at, lasts, "gemm") for at, lasts, _ in declared]
    frames, rows = FRAMES, [(0, 12 * S, 4, 1200)]
    report = analyze(tables(phases=phases, stacks=rows, stack_frames=frames, steps=declared, kernels=kernels))
    begin = (
        "Healthy: the device computes in 100.0 % of steady step time. Steps are 40.0 % of this run; 60.0 % is start-up."
    )
    assert report.verdict.sentence.startswith(begin)
    assert report.verdict.cause == "healthy"


@pytest.mark.parametrize(
    ("recurs", "says"),
    [
        (True, " 81.8 % of this run is compilation, mostly jit in train_step (train.py:20), which recurs in steps."),
        (False, " Steps are 16.7 % of this run; 83.3 % is compilation."),
    ],
)
def test_compilation_that_recurs_in_steps_is_no_start_up(recurs, says):
    first, each = (S, S) if recurs else (10 * S, S // 5)
    starts = [first + at * each for at in range(10)]
    compiles = [(at, each * 9 // 10) for at in starts] if recurs else [(0, first)]
    phases = [(0, starts[-1] + each, "program", ""), *((at, each, "step", "jax") for at in starts)]
    phases += [(at, lasts, "compilation", "jit") for at, lasts in compiles]
    events = [(at, lasts, "backend_compile", "compile") for at, lasts in compiles]
    events += [] if recurs else [(at, each // 2, "IteratorGetNext", "input") for at in starts]
    marks = [(at, each, number) for number, at in enumerate(starts)]
    stacks = [(0, starts[-1] + each, 3, 1000)]
    report = analyze(tables(phases=phases, steps=marks, host_ops=events, stacks=stacks, stack_frames=FRAMES))
    assert says in report.verdict.sentence


def test_start_up_that_is_partly_the_programs_own_work_is_said_by_imports_and_that():
    phases = [(0, 12 * S, "program", ""), *((10 * S + at * S // 10, S // 10, "step", "keras") for at in range(20))]
    rows = [(0, 6 * S, 4, 600), (6 * S, 4 * S, 5, 400)]
    report = analyze(tables(phases=phases, stacks=[*rows, (10 * S, 2 * S, 3, 200)], stack_frames=FRAMES))
    assert first_sentence(report) == (
        "Steps are 16.7 % of this run; 83.3 % is start-up (imports 50.0 %, export (train.py:95) 33.3 %)"
    )
    assert "TV704" not in codes(report)  # a run of 12 s mostly starts up


def test_a_long_start_up_leaves_the_sentence_to_what_leads_within_the_steps():
    report = run(startup=40, stepping=10, profiled=True)
    assert report.verdict.sentence.startswith("Highly input-bound")
    assert " Steps are 20.0 % of this run; 80.0 % is start-up." in report.verdict.sentence
    assert "TV704" in codes(report)


def test_a_long_start_up_is_what_a_run_is_about_in_whose_steps_nothing_leads():
    report = run(startup=120, stepping=40)
    assert (
        first_sentence(report)
        == "Steps are 25.0 % of this run; 75.0 % is start-up, mostly the script train.py (line 3)"
    )
    assert report.verdict.cause == "run_startup"
    assert (
        message(report, "TV704")
        == "The first step waits for start-up: 75.0 % of the run, 120 s, mostly the script train.py (line 3)."
    )
    assert report.findings[0].severity.value == "error"
    shorter = run(startup=117, stepping=39)
    assert " Steps are 25.0 % of this run; 75.0 % is start-up." in shorter.verdict.sentence
    assert shorter.verdict.cause != "run_startup"


@pytest.mark.parametrize(("seconds", "found"), [(9, False), (11, True)])
def test_from_half_of_a_short_run_on_start_up_is_a_finding_unless_it_is_imports_of_less_than_half_a_minute(
    seconds, found
):
    assert ("TV704" in codes(run(startup=seconds, stepping=10, imports=False))) is found
    assert "TV704" not in codes(run(startup=seconds, stepping=10))


@pytest.mark.parametrize(("seconds", "found"), [(24, False), (26, True)])
def test_from_a_fifth_of_a_run_of_two_minutes_on_imports_are_a_finding(seconds, found):
    assert ("TV704" in codes(run(startup=seconds, stepping=100))) is found


@pytest.mark.parametrize(("machine", "found"), [(110.0, True), (199.0, False)])
def test_40_seconds_of_imports_are_a_finding_unless_other_programs_use_a_fifth_of_the_2_cores(machine, found):
    used = [("program CPU", 100.0), ("machine CPU", machine)]
    samples = [(at * S, name, cpu, {"unit": "%", "device_id": None}) for at in range(40) for name, cpu in used]
    recorded = run(startup=40, stepping=10, samples=samples, settings=[("machine.cores", "2")])
    assert ("TV704" in codes(recorded)) is found


@pytest.mark.parametrize(
    ("startup", "seconds", "imports", "severity"),
    [
        (40, 120, True, "info"),
        (40, 120, False, "error"),
        (60, 120, True, "error"),
        (60, 119, True, "info"),
        (60, 119, False, "error"),
    ],
)
def test_imports_are_for_information_unless_they_are_half_of_a_long_run(startup, seconds, imports, severity):
    report = run(startup=startup, stepping=seconds - startup, imports=imports)
    assert [found.severity.value for found in report.findings if found.code == "TV704"] == [severity]


@pytest.mark.parametrize(
    ("what", "seconds", "severity"),
    [
        *(("validating", 4, None), ("validating", 5, "info"), ("validating", 19, "info"), ("validating", 20, "error")),
        *(("saving", 4, None), ("saving", 5, "warning"), ("saving", 19, "warning"), ("saving", 20, "error")),
    ],
)
def test_validation_and_saving_are_findings_from_a_twentieth_of_the_run_on(what, seconds, severity):
    report = run(startup=1, stepping=100 - 1 - seconds, **{what: seconds})
    code = {"validating": "TV702", "saving": "TV703"}[what]
    assert [f.severity.value for f in report.findings if f.code == code] == ([severity] if severity else [])


def test_a_checkpoint_after_the_last_step_is_not_in_the_loop():
    frames = [(0, None, "save_checkpoint", "train.py", 88)]
    phases = [(0, 10 * S, "program", "")] + [(at * S, S, "step", "keras", {"number": at}) for at in range(8)]
    report = analyze(tables(phases=phases, stacks=[(8 * S, 2 * S, 0, 200)], stack_frames=frames))
    assert codes(report) == []
    assert [row["time_ns"] for row in report.rows("whole_run") if row["part"] == "saving"] == [2 * S]


def test_time_between_steps_is_a_finding_with_its_place():
    frames = [(0, None, "resample", "data.py", 7)]
    phases = [(0, 10 * S, "program", "")]
    phases += [(at * S, S, "step", "keras", {"number": at}) for at in (*range(4), *range(6, 10))]
    report = analyze(tables(phases=phases, stacks=[(4 * S, 2 * S, 0, 200)], stack_frames=frames))
    assert codes(report) == ["TV705"]
    assert message(report, "TV705") == (
        "The loop does neither steps, validation nor saving: 20.0 % of the run, 2.00 s, mostly resample (data.py:7)."
    )


def test_what_explains_half_of_the_time_outside_of_steps_is_said_in_its_place():
    assert codes(run(startup=1, stepping=4, saving=10)) == ["TV703"]
    assert codes(run(startup=1, stepping=4, after=10)) == ["TV701"]
    assert message(run(startup=1, stepping=4, after=10), "TV701") == (
        "Steps are 26.7 % of this run; 66.7 % is after the last step, mostly export (train.py:95)."
    )


@pytest.mark.parametrize(("after", "found"), [(19, False), (20, True)])
def test_less_than_a_fifth_of_the_run_outside_of_steps_is_no_finding_of_its_own(after, found):
    assert ("TV701" in codes(run(startup=80 - after + 10, stepping=10, after=after))) is found


def test_a_run_without_steps_is_said_by_its_two_largest_parts():
    phases = [(0, 10 * S, "program", "")]
    report = analyze(tables(phases=phases, stacks=[(0, 6 * S, 4, 600), (6 * S, 4 * S, 1, 400)], stack_frames=FRAMES))
    assert first_sentence(report) == (
        "No steps were seen in this run: 60.0 % is imports, 40.0 % is save_checkpoint (train.py:88)"
    )
    assert codes(report) == []
    assert report.section("whole_run").blocks[1].whole == "10.0 s without steps"
    alone = analyze(tables(phases=phases, stacks=[(0, 6 * S, 3, 600), (6 * S, 4 * S, 0, 400)], stack_frames=FRAMES))
    (lead,) = [candidate for candidate in alone.verdict.candidates if candidate.leads]
    assert (lead.label, lead.time_ns, lead.share) == ("train_step (train.py:20)", 6 * S, 0.6)
    assert first_sentence(alone) == (
        "No steps were seen in this run: 60.0 % is train_step (train.py:20), 40.0 % is the script train.py (line 3)"
    )


def test_time_outside_of_steps_that_is_longer_than_they_are_leads_before_a_start_up_that_is_longest():
    report = run(startup=12, stepping=3, saving=5, profiled=True)
    assert first_sentence(report) == "Steps are 15.0 % of this run; 25.0 % is save_checkpoint (train.py:88)"
    assert report.verdict.cause == "run_saving"


def test_what_the_recording_took_is_left_out_of_the_run_and_said():
    phases = [(0, 10 * S, "program", ""), (0, 8 * S, "step", "keras", {"number": 0})]
    report = analyze(tables(phases=[*phases, (8 * S, 2 * S, "recording", "torch")]))
    assert report.fact("whole_run", "run_ns") == 8 * S
    assert report.fact("whole_run", "recording_ns") == 2 * S
    prose = report.section("whole_run").blocks[-1].text
    assert prose == "Left out: 2.00 s in which the recording started, stopped and saved."


@pytest.mark.parametrize(("compiling", "words"), [(5, "53.3 % is start-up"), (9, "47.4 % is compilation")])
def test_the_larger_of_start_up_and_compilation_is_said(compiling, words):
    begin = (8 + compiling) * S
    phases = [(0, begin + 2 * S, "program", ""), (8 * S, compiling * S, "compilation", "jax.jit")]
    steps = [(begin + at * S // 10, S // 10) for at in range(20)]
    phases += [(at, lasts, "step", "jax_call", {"number": number}) for number, (at, lasts) in enumerate(steps)]
    declared = [(at, lasts, number) for number, (at, lasts) in enumerate(steps)]
    waits = [(at, lasts // 2, "data loading") for at, lasts in steps]
    work = [(at + lasts // 2, lasts // 2, "gemm") for at, lasts in steps]
    report = analyze(tables(phases=phases, steps=declared, nvtx=waits, kernels=work))
    assert words in report.verdict.sentence
    assert report.verdict.sentence.startswith("Highly input-bound")
    assert report.verdict.cause == "input"


@pytest.mark.parametrize(
    ("span", "says"),
    [
        (11, ""),
        (12, "Steady steps are 83.3 % of the captured time; 8.3 % is after them without device work."),
        (21, "Steady steps are 47.6 % of the captured time; 47.6 % is after them without device work."),
        (30, "Steady steps are 33.3 % of the captured time; 63.3 % is after them without device work."),
    ],
)
def test_of_a_capture_that_is_not_steps_alone_the_verdict_says_so(span, says):
    steps = [(at * S, S, at) for at in range(10)]
    kernels = [*((at, lasts, "gemm") for at, lasts, _ in steps), ((span - 1) * S, S, "gemm")]
    report = analyze(tables(steps=steps, kernels=kernels))
    healthy = "Healthy: the device computes in 100.0 % of steady step time."
    assert report.verdict.sentence == " ".join(filter(None, (healthy, says, "Not input-bound (0.0 %).")))
    assert report.verdict.cause == "healthy"


@pytest.mark.parametrize(
    ("call", "says"),
    [("cudaStreamCreateWithPriority", "cudaStreamCreateWithPriority (60.0 s)"), ("cudaFree", "cudaFree (60.0 s)")],
)
def test_start_up_leads_where_healthy_steps_are_less_than_a_tenth_of_the_capture(call, says):
    steps = [(100 * S + at * S, S, at) for at in range(10)]
    kernels = [(at, lasts, "gemm") for at, lasts, _ in steps]
    report = analyze(tables(steps=steps, kernels=kernels, cuda_api=[(0, 60 * S, call), (70 * S, S, "cudaMalloc")]))
    begin = f"Steady steps are 9.1 % of the captured time; 90.9 % is before them without device work, above all {says}."
    assert report.verdict.sentence.startswith(begin)
    assert report.verdict.cause == "run_startup"
    assert [round(c.share, 3) for c in report.verdict.candidates if c.leads] == [0.909]


@pytest.mark.parametrize(("lasts", "cause"), [(4, "run_between"), (2, "healthy")])
@pytest.mark.parametrize("busy", [0.2, 0.8])
def test_named_time_between_steps_leads_over_healthy_steps_from_a_fifth_of_the_capture_on(busy, lasts, cause):
    starts = [*range(5), *range(5 + lasts, 10 + lasts)]
    kernels = [*((at * S, S, "gemm") for at in starts), (5 * S, int(busy * lasts * S), "predict")]
    ranges = [(5 * S, lasts * S, "validation")]
    verdict = analyze(tables(steps=[(at * S, S, at) for at in starts], kernels=kernels, nvtx=ranges)).verdict
    says = "Steady steps are 71.4 % of the captured time; 28.6 % is between them, mostly in validation."
    assert verdict.sentence.startswith(says) == (lasts == 4)
    assert "Healthy: the device computes in 100.0 % of steady step time." in verdict.sentence
    assert verdict.cause == cause


@pytest.mark.parametrize(("lasts", "is_stated"), [(6, True), (5, False)])
def test_time_between_healthy_steps_is_stated_from_a_twentieth_of_the_capture_on(lasts, is_stated):
    """Ten steps of 10 s, and a validation of 6 s (5.7 % of 106 s) or 5 s (4.8 % of 105 s) in which the device works."""
    starts = [*range(0, 50, 10), *range(50 + lasts, 100 + lasts, 10)]
    kernels = [*((at * S, 10 * S, "gemm") for at in starts), (50 * S, lasts * S, "predict")]
    steps = [(start * S, 10 * S, number) for number, start in enumerate(starts)]
    verdict = analyze(tables(steps=steps, kernels=kernels, nvtx=[(50 * S, lasts * S, "validation")])).verdict
    says = "Steady steps are 94.3 % of the captured time; 5.7 % is between them, mostly in validation."
    assert (says in verdict.sentence) == is_stated
    assert verdict.cause == "healthy"


@pytest.mark.parametrize(("warms", "is_stated"), [(3, True), (1, False)])
def test_idle_devices_in_long_warm_up_steps_of_a_run_are_stated(warms, is_stated):
    """Steps of 1 s, the first with a launch of some seconds more, in which the device idles."""
    marks = list(enumerate(zip([0, *range(1 + warms, 10 + warms)], [(1 + warms) * S, *[S] * 9], strict=True)))
    phases = [(0, (10 + warms) * S, "program", "train.py", {"thread_id": None})]
    phases += [(at * S, long, "step", "keras", {"number": n}) for n, (at, long) in marks]
    steps = [(at * S, long, n) for n, (at, long) in marks]
    kernels = [(at * S + long - S, S, "gemm") for _, (at, long) in marks]
    report = analyze(tables(phases=phases, steps=steps, kernels=kernels, cuda_api=[(0, warms * S, "cudaLaunchKernel")]))
    says = "Steady steps are 69.2 % of the captured time; 23.1 % is before them without device work"
    assert (says in report.verdict.sentence) == is_stated


@pytest.mark.parametrize(
    ("name", "share", "where"), [("validation", "28.6 %", "between and after"), ("export", "14.3 %", "after")]
)
def test_what_recurs_between_steps_also_counts_after_the_last_one(name, share, where):
    """Ten steps of 1 s, a validation of 2 s in their middle, and the same or other work for 2 s after them."""
    starts = [*range(5), *range(7, 12)]
    kernels = [(at * S, S, "gemm") for at in range(14)]
    ranges = [(5 * S, 2 * S, "validation"), (12 * S, 2 * S, name)]
    verdict = analyze(tables(steps=[(at * S, S, at) for at in starts], kernels=kernels, nvtx=ranges)).verdict
    says = f"Steady steps are 71.4 % of the captured time; {share} is {where} them, mostly in validation."
    assert verdict.sentence.startswith(says) == (name == "validation")
    assert verdict.cause == ("run_between" if name == "validation" else "healthy")


def test_start_up_does_not_lead_over_a_cause_that_was_measured_in_the_steps():
    steps = [(100 * S + at * S, S, at) for at in range(5)]
    kernels = [(at, S // 2, "gemm") for at, _, _ in steps]
    waits = [(at + S // 2, S // 2, "cudaDeviceSynchronize") for at, _, _ in steps]
    report = analyze(tables(steps=steps, kernels=kernels, cuda_api=[(0, S, "cudaFree"), *waits]))
    says = "Steady steps are 4.8 % of the captured time; 95.2 % is before them without device work."
    assert says in report.verdict.sentence
    assert report.verdict.cause in {"synchronisation", "synchronisation-exposes-idle"}


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("Healthy: it computes.", "healthy: it computes."),
        ("Launch-bound: kernels", "launch-bound: kernels"),
        ("GIL: four threads", "GIL: four threads"),
        ("Python: 78 % of it", "Python: 78 % of it"),
        ("A device computes.", "a device computes."),
    ],
)
def test_a_sentence_after_a_colon_begins_small_unless_with_a_name(text, within):
    assert continue_sentence(text) == within


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([("run.status", "failed"), ("run.exit.code", "3")], "The program failed (exit code 3). "),
        ([("run.status", "failed"), ("run.ending.reason", "out of memory")], "The program failed (out of memory). "),
        ([("run.status", "killed"), ("run.ending.reason", "SIGKILL")], "The program was killed (SIGKILL). "),
        ([("run.status", "finished"), ("run.exit.code", "0")], ""),
        ([("run.status", "interrupted"), ("run.exit.code", "130")], ""),
    ],
)
def test_a_program_that_failed_with_exit_code_3_is_said_first(settings, says):
    report = analyze(tables(kernels=[(0, 10, "gemm")], settings=settings))
    assert report.verdict.sentence.startswith(says or "One kernel")
