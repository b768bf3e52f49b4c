"""The first sentences of a report: which cause leads them, in which words, and how long they get."""

from dataclasses import replace

import pytest

from tests.analyses.builders import tables, trace
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.headline.choice import COMPUTE, Option, choose
from traceviz.analyses.headline.judged_time import measure_judged_time
from traceviz.analyses.headline.parts import find_precise_options
from traceviz.analyses.headline.sentences import LONGEST, fit_sentences
from traceviz.analyses.headline.verdict import _name_largest_problem
from traceviz.analyses.run import _is_subsumed, analyze
from traceviz.report import Finding, Severity
from traceviz.report.findings.registry import find_record


def found(code, slug, severity, share, share_of, *, cost_ns=5):
    return Finding(code, slug, severity, "", (), (), cost_ns, share, share_of)


NO_CAUSES = host_causes(trace(kernels=[(0, 100, "gemm")]))


def option(key, share, certainty="measured", within=(), code=""):
    of, record = "steady step time", find_record(code)
    return Option(key, key, round(share * 1000), share, of, certainty, "", f"{key}.", frozenset(within), record)


def leads(*options, computes=0.0):
    choice = choose(options, computes)
    return choice.lead.key if choice.lead else None


def reasons(*options):
    return {candidate.key: candidate.reason for candidate in choose(options).candidates}


def test_the_largest_problem_is_the_first_finding_that_costs_time_and_is_not_about_the_input():
    findings = (
        found("TV101", "input-bound", Severity.ERROR, 0.5, "steps"),
        found("TV202", "cheap", Severity.INFO, 0.4, "steps"),
        found("TV403", "memory-grows", Severity.WARNING, 0.35, "steps", cost_ns=0),
        found("TV301", "allocation-in-steps", Severity.WARNING, 0.3, "steady step time"),
        found("TV302", "pageable-copies", Severity.WARNING, 0.2, "captured time"),
    )
    assert _name_largest_problem(findings) == "Largest problem: allocation in steps (30.0 % of the steady step time)."
    assert _name_largest_problem(findings[:3]) == ""
    assert (
        _name_largest_problem((found("TV901", "lost", Severity.WARNING, None, "it"),))
        == "Largest problem: lost (0.0 % of the it)."
    )


@pytest.mark.parametrize(("share", "lead"), [(0.05, "copy"), (0.0499, None)])
def test_the_largest_leads_from_a_twentieth_of_the_time_on(share, lead):
    assert leads(option("launch", 0.03), option("copy", share)) == lead


@pytest.mark.parametrize("certainty", ["at most", "suspected", "unexplained"])
def test_what_was_not_measured_leads_from_a_fifth_on(certainty):
    assert leads(option("unsure", 0.20, certainty), option("copy", 0.06)) == "unsure"
    assert leads(option("unsure", 0.199, certainty), option("copy", 0.06)) == "copy"


def test_what_is_unexplained_leads_where_it_is_twice_as_large_as_what_was_measured():
    assert leads(option("unexplained", 0.60, "unexplained"), option("copy", 0.30)) == "unexplained"
    assert leads(option("unexplained", 0.59, "unexplained"), option("copy", 0.30)) == "copy"
    assert leads(option("unexplained", 0.40, "unexplained"), computes=0.41) is None
    assert leads(option("unexplained", 0.40, "unexplained"), computes=0.40) == "unexplained"


def test_of_two_that_are_as_large_the_more_certain_leads_and_the_other_is_said():
    choice = choose((option("bound", 0.40, "at most"), option("copy", 0.361)))
    assert (choice.lead.key, [tie.key for tie in choice.ties]) == ("copy", ["bound"])
    assert choice.candidates[0].reason == "As large as the largest, and more certain."
    assert leads(option("bound", 0.40, "at most"), option("copy", 0.359)) == "bound"


def test_waits_of_ranks_follow_from_the_part_by_which_all_are_late():
    options = (option("sleep", 0.15), option("late-collectives", 0.25), option("copy", 0.30))
    late = choose(options, late_by="sleep")
    assert (late.lead.key, late.lead.share, late.lead.reach) == ("sleep", 0.15, 0.40)
    assert late.candidates[1].key == "copy"
    assert reasons(*options)["late-collectives"] == "Smaller."
    # As large only with the waits: what is measured alone leads.
    assert choose((*options[:2], option("copy", 0.38)), late_by="sleep").lead.key == "copy"


def test_a_finding_is_said_in_place_of_the_parts_of_which_it_explains_half():
    host, queue = option("host", 0.40), option("launch", 0.20)
    half = option("launch-bound", 0.31, within=("host", "launch"))
    assert leads(host, queue, half) == "launch-bound"
    assert reasons(host, queue, half)["host"] == "launch-bound says it more precisely (31.0 %)."
    less = option("launch-bound", 0.29, within=("host", "launch"))
    assert leads(host, queue, less) == "host"
    assert reasons(host, queue, less)["launch-bound"] == "It explains 48.3 % of host and launch, less than half."


@pytest.mark.parametrize(("waited", "lead"), [(0.20, "synchronisation-exposes-idle"), (0.19, "host")])
def test_idle_time_after_waits_leads_only_where_the_waits_are_half_of_it(waited, lead):
    parts = (option("synchronisation", waited), option("host", 0.35))
    after = option("synchronisation-exposes-idle", 0.40, within=("synchronisation",), code="TV203")
    assert leads(*parts, after) == lead
    assert leads(parts[1], after) == "host"


@pytest.mark.parametrize(("inside", "lead"), [(0.20, "synchronisation-exposes-idle"), (0.19, "host")])
def test_time_of_the_operator_that_waits_counts_with_its_waits(inside, lead):
    parts = (option("synchronisation", 0.05), option("host", 0.35))
    after = option("synchronisation-exposes-idle", 0.40, within=("synchronisation",), code="TV203")
    assert leads(*parts, replace(after, inside=inside)) == lead


@pytest.mark.parametrize(("ends", "cause"), [(850, "synchronisation-exposes-idle"), (655, "host")])
def test_reads_of_results_lead_with_the_work_of_their_operator(ends, cause):
    """
    device   |##### 600 #####|..................400..................|##
    host          |--wait: 340--50|--item or mul: 200--|-add: 150----|
    """
    operations, calls, kernels = [], [], []
    for at in range(0, 6000, 1000):
        kernels.append((at, 600, "gemm", {"correlation_id": at}))
        operations += [(at + 300, ends - 300, "aten::item", "op"), (at + 850, 150, "aten::add", "op")]
        operations += [(at + 655, 195, "aten::mul", "op")] if ends < 850 else []
        calls.append((at + 310, 340, "cudaStreamSynchronize", {"correlation_id": at + 1}))
        calls.append((at + 940, 50, "cudaLaunchKernel", {"correlation_id": at + 1000}))
    steps = [(at, 1000, at // 1000) for at in range(0, 6000, 1000)]
    run = {"framework": "PyTorch", "format": "kineto"}
    report = analyze(tables(steps=steps, kernels=kernels, host_ops=sorted(operations), cuda_api=calls, run=run))
    parts = {part.key: round(part.share, 2) for part in report.verdict.parts}
    assert (parts["device_compute"], parts["synchronisation"], parts["host"]) == (0.6, 0.05, 0.29)
    assert report.verdict.cause == cause


def test_operators_that_launch_work_after_a_wait_have_no_cause_of_their_own():
    """
    device   |##### 600 #####|..................400..................|##
    host          |--wait: 340--50|--mul: 335 in all, the launch 50 of it--|
    """
    kernels, calls, operations = [], [], []
    for at in range(0, 6000, 1000):
        kernels.append((at, 600, "gemm", {"correlation_id": at}))
        operations += [(at + 300, 355, "aten::item", "op"), (at + 655, 335, "aten::mul", "op")]
        calls.append((at + 310, 340, "cudaStreamSynchronize", {"correlation_id": at + 1}))
        calls.append((at + 940, 50, "cudaLaunchKernel", {"correlation_id": at + 1000}))
    steps = [(at, 1000, at // 1000) for at in range(0, 6000, 1000)]
    run = {"framework": "PyTorch", "format": "kineto"}
    verdict = analyze(tables(steps=steps, kernels=kernels, host_ops=operations, cuda_api=calls, run=run)).verdict
    assert {part.key: round(part.share, 2) for part in verdict.parts if part.key in {"synchronisation", "host"}} == {
        "synchronisation": 0.05,
        "host": 0.29,
    }
    assert verdict.cause == "synchronisation-exposes-idle"
    assert "the device then idles: 34.0 % of the steady step time. Not" in verdict.sentence


@pytest.mark.parametrize(("waits", "cause"), [(3, "waits-for-work"), (2, "host")])
def test_recurring_waits_for_requests_limit_what_a_longer_cause_can_gain(waits, cause):
    """
    device   |##400##|                 |##400##|
    host     |--------schedule--700|get 300|          four times; the last pauses are of the scheduler alone
    """
    kernels = [(at, 400, "gemm", {"correlation_id": at}) for at in range(0, 5000, 1000)]
    begins, last = range(0, 4000, 1000), waits * 1000
    frames = [(at, 700 if at < last else 995, "sched.py(160): schedule", "python") for at in begins]
    frames += [(at + 700, 295, "queue.py(154): get", "python") for at in begins if at < last]
    calls = [(at + 996, 4, "cudaLaunchKernel", {"correlation_id": at + 1000}) for at in begins]
    run = {"framework": "PyTorch", "format": "kineto"}
    verdict = analyze(tables(kernels=kernels, host_ops=sorted(frames), cuda_api=calls, run=run)).verdict
    assert verdict.cause == cause
    says = "in 20.1 % of the time from first to last device work the device idles"  # 885 of 4,400
    assert (says in verdict.sentence) == (waits == 3)
    assert ("(3 times, get (queue.py:154))" in verdict.sentence) == (waits == 3)


@pytest.mark.parametrize(("share", "lead"), [(0.05, "waits-for-work"), (0.049, "host")])
def test_waits_for_work_lead_from_a_twentieth_of_the_time_on(share, lead):
    assert leads(option("host", 0.40), option("waits-for-work", share, within=(COMPUTE,))) == lead


def test_of_two_findings_on_the_same_time_the_smaller_stands_back():
    copies = option("copies", 0.20)
    said = reasons(copies, option("synchronous", 0.21, within=("copies",)), option("pageable", 0.2, within=("copies",)))
    assert said["pageable"] == "The same time as copies."
    assert said["synchronous"] == "The only one that is large and certain enough."


def test_a_finding_about_the_input_does_not_stand_for_it():
    assert leads(option("input", 0.37), option("pageable-copies", 0.37, within=("input", "copy_h2d"))) == "input"


def test_a_bound_on_computing_competes_with_the_parts():
    assert leads(option("copy", 0.10), option("precision", 0.40, "at most", (COMPUTE,))) == "precision"


def test_others_of_a_fifth_of_the_time_or_half_as_large_are_said_beside():
    options = (option("a", 0.42), option("b", 0.2), option("c", 0.19))
    assert [o.key for o in choose(options).beside] == ["b"]
    assert [o.key for o in choose((option("a", 0.2), option("b", 0.1), option("c", 0.09))).beside] == ["b"]


def test_candidates_are_in_the_order_of_their_shares_behind_the_one_that_leads():
    choice = choose((option("small", 0.01), option("bound", 0.3, "at most"), option("copy", 0.29)))
    assert [(c.key, c.leads) for c in choice.candidates] == [("copy", True), ("bound", False), ("small", False)]
    assert choice.candidates[1].reason == "As large as the one that leads: said beside it."


def test_a_line_that_is_too_long_loses_what_matters_least():
    sentences = [(0, "a" * 200), (2, "b" * 100), (1, "c" * 100), (2, "d" * 10), (0, "")]
    assert fit_sentences(sentences) == f"{'a' * 200} {'c' * 100}"
    assert fit_sentences([(0, "a" * 300), (0, "b" * (LONGEST - 301))]) == f"{'a' * 300} {'b' * 49}"
    assert len(fit_sentences([(0, "a" * 400), (1, "b")])) == 400


def stepped(**more):
    """Return three steps of 1000 ns; a kernel runs for 500 ns in each."""
    steps = [(i * 1000, 1000, i) for i in range(3)]
    kernels = [(i * 1000 + at, 250, name) for i in range(3) for at, name in ((500, "k"), (750, "m"))]
    return tables(steps=steps, kernels=more.pop("kernels", kernels), **more)


def test_a_device_that_waits_for_operators_is_said_to_be_host_bound():
    ops = [(i * 1000, 500, "aten::linear", "op") for i in range(3)]
    calls = [(i * 1000 + 490, 5, "cudaLaunchKernel") for i in range(3)]
    verdict = analyze(stepped(host_ops=ops, cuda_api=calls, run={"framework": "PyTorch"})).verdict
    assert verdict.cause == "host"
    assert (
        "Host-bound: in 49.5 % of steady step time the device waits for the host, mostly operators, above all "
        "aten::linear." in verdict.sentence
    )


def test_the_parts_of_a_verdict_are_the_judged_time_with_the_shares_of_its_candidates():
    ops = [(i * 1000, 500, "aten::linear", "op") for i in range(3)]
    calls = [(i * 1000 + 490, 5, "cudaLaunchKernel") for i in range(3)]
    verdict = analyze(stepped(host_ops=ops, cuda_api=calls, run={"framework": "PyTorch"})).verdict
    parts = {part.key: part for part in verdict.parts}
    shares = {key: round(part.share, 3) for key, part in parts.items()}
    assert shares == {"device_compute": 0.5, "kernel_launch": 0.005, "host": 0.495, "other": 0.0}
    assert sum(part.time_ns for part in verdict.parts) == 3000
    assert {c.key: c.share for c in verdict.candidates} == {key: parts[key].share for key in ("host", "kernel_launch")}
    assert analyze(tables(host_ops=ops)).verdict.parts == ()


@pytest.mark.parametrize(("rest", "said"), [(160, True), (150, False)])
def test_a_good_verdict_on_steps_states_their_share_if_devices_idle_in_a_twentieth_besides(rest, said):
    kernels = [(i * 1000 + at, 400, name) for i in range(3) for at, name in ((200, "k"), (600, "m"))]
    kernels = [*kernels, (3000 + rest, 5, "k")]
    calls = [(i * 1000, 195, "cudaMalloc") for i in range(3)]  # 19.5 %: no blame
    sentence = analyze(stepped(kernels=kernels, cuda_api=calls, nvtx=[(0, 2, "data loading")])).verdict.sentence
    assert "Not input-bound (0.1 %)" in sentence
    assert ("Steady steps are 9" in sentence) is said


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        ("<built-in method poll of zmq.Poller object at 0x7f>", "waiting"),
        ("<built-in function sleep>", "waiting"),
        ("threading.py(320): wait", "waiting"),
        ("<built-in function collect>", "host"),
        ("train.py(20): wait_and_see", "host"),
    ],
)
def test_a_python_function_that_waits_is_no_work_of_the_host(function, cause):
    frames = [(i * 1000, 500, function, "python") for i in range(3)]
    calls = [(i * 1000 + 490, 5, "cudaLaunchKernel") for i in range(3)]
    verdict = analyze(stepped(host_ops=frames, cuda_api=calls, nvtx=[(0, 2, "data loading")])).verdict
    assert verdict.cause == cause


def test_a_function_with_a_name_is_not_suspected_to_be_input():
    frames = [(i * 1000, 500, "<built-in function sleep>", "python") for i in range(3)]
    calls = [(i * 1000 + 490, 5, "cudaLaunchKernel") for i in range(3)]
    verdict = analyze(stepped(host_ops=frames, cuda_api=calls)).verdict
    assert (verdict.code, verdict.cause) == ("cannot-judge", "waiting")
    assert "Possibly" not in verdict.sentence


def test_what_the_host_does_is_not_said_where_nothing_of_it_was_recorded():
    verdict = analyze(stepped()).verdict
    assert verdict.cause == "unexplained"
    assert (
        "Mostly idle: in 50.0 % of steady step time the device idles, and what the host did meanwhile was not recorded."
        in verdict.sentence
    )
    assert "host compute" not in verdict.sentence


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ((), ", mostly in one gap of 860 ns after fit_batch and before log_scalars."),
        (
            [(400, 40, "read", "op", {"thread_id": 5})],
            ", mostly in one gap of 540 ns after fit_batch and before log_scalars.",
        ),
        (((300, 10, "a"), (500, 10, "b"), (700, 10, "c")), "."),
    ],
    ids=["one", "an event of another thread ends it", "no gap has most of it"],
)
def test_the_gap_with_most_of_unexplained_time_is_named_by_its_neighbours(between, said):
    host = [(0, 120, "fit_batch"), (5, 50, "MatMul"), *between, (980, 15, "log_scalars"), (996, 3, "flush")]
    kernels = [(0, 100, "k"), (985, 10, "k")]
    view = tables(kernels=kernels, host_ops=host, cuda_api=[], steps=[(0, 1000, 0)], span_ns=1000)
    sentence = analyze(view).verdict.sentence
    assert f"the device idles, and nothing recorded says what the host does{said}" in sentence


@pytest.mark.parametrize(
    ("waits", "said"),
    [(44, "Not input-bound (4.4 %)"), (45, "Hardly input-bound (4.5 %)"), (50, "Moderately input-bound: 5.0 %")],
)
def test_a_small_wait_for_input_does_not_read_as_the_opposite_of_a_slightly_larger_one(waits, said):
    kernels = [(i * 1000 + waits, 1000 - waits, "k") for i in range(3)]
    ranges = [(i * 1000, waits, "data loading") for i in range(3)]
    assert said in analyze(stepped(kernels=kernels, nvtx=ranges)).verdict.sentence


def test_a_healthy_trace_is_said_to_be_healthy():
    kernels = [(i * 1000 + at, 490, name) for i in range(3) for at, name in ((0, "k"), (500, "m"))]
    verdict = analyze(stepped(kernels=kernels, nvtx=[(0, 2, "data loading")])).verdict
    assert (verdict.code, verdict.cause) == ("not-input-bound", "healthy")
    assert verdict.sentence == "Healthy: the device computes in 98.0 % of steady step time. Not input-bound (0.0 %)."


@pytest.mark.parametrize(
    ("computes", "begin"),
    [
        (
            401,
            "The device computes in 80.2 % of steady step time; the largest other part: waits of the program (19.8 %).",
        ),
        (
            400,
            "Waiting: in 20.0 % of steady step time the device idles while the program waits (<built-in function sle",
        ),
        (399, "Waiting: in 20.2 % of steady step time"),
    ],
)
def test_a_cause_of_less_than_a_fifth_beside_computing_is_said_mildly(computes, begin):
    kernels = [(i * 1000 + at, computes, name) for i in range(3) for at, name in ((0, "k"), (500, "m"))]
    frames = [(0, 3000, "<built-in function sleep>", "python")]
    report = analyze(stepped(kernels=kernels, host_ops=frames, nvtx=[(0, 2, "data loading")]))
    assert report.verdict.sentence.startswith(begin)


def test_devices_of_a_process_that_take_turns_are_said_to():
    kernels = [(at, 100, "k" if at % 200 else "m", {"device_id": at // 100 % 2}) for at in range(0, 1000, 100)]
    verdict = analyze(tables(kernels=kernels)).verdict
    (turns,) = (candidate for candidate in verdict.candidates if candidate.leads)
    assert (turns.key, turns.share) == ("devices_in_turn", 0.5)
    assert "in 50.0 % of the time from first to last device work the average device idles" in verdict.sentence


def test_a_device_that_is_hardly_used_takes_no_turns():
    kernels = [(0, 960, "k"), (960, 40, "m", {"device_id": 1})]
    assert analyze(tables(kernels=kernels)).verdict.cause == "healthy"


def test_work_that_was_launched_and_has_not_begun_is_no_launching():
    calls = [(100 * i, 5, "cudaLaunchKernel", {"correlation_id": i}) for i in range(10)]
    kernels = [(100 * i + 60, 40, "ab"[i % 2], {"correlation_id": i}) for i in range(10)]
    verdict = analyze(tables(cuda_api=calls, kernels=kernels)).verdict
    assert verdict.cause == "launch_queue"
    assert "the device idles while work that was launched has not begun" in verdict.sentence


def test_calls_whose_work_was_lost_are_not_blamed():
    verdict = analyze(tables(cuda_api=[(0, 900, "cudaLaunchKernel")], kernels=[], os_calls=[(950, 50, "poll")])).verdict
    assert (verdict.cause, verdict.candidates) == ("", ())
    assert "the work of 1 launch call was not recorded" in verdict.sentence


@pytest.mark.parametrize(
    ("drawing", "copying", "said"),
    [
        (
            790,
            190,
            "Of the 1.98 s captured, 79.8 % were spent in aten::normal_, and 19.2 % waiting in cudaMemcpyAsync.",
        ),
        (900, 50, "Of the 1.98 s captured, 90.9 % were spent in aten::normal_."),
        (300, 680, "Of the 1.98 s captured, 68.7 % were spent in cudaMemcpyAsync."),
    ],
)
def test_what_the_host_did_is_said_if_the_work_that_it_launched_was_not_recorded(drawing, copying, said):
    ms = 10**6
    begins = [0, 990 * ms]
    ops = [(begin, drawing * ms, "aten::normal_", "op") for begin in begins]
    copies = [(begin + drawing * ms, copying * ms, "cudaMemcpyAsync") for begin in begins]
    calls = [*copies, *((begin + 985 * ms, 10_000, "cudaLaunchKernel") for begin in begins)]
    run = {"framework": "PyTorch", "format": "kineto"}
    steps = [(begin, 990 * ms, n, {"thread_id": 0}) for n, begin in enumerate(begins)]
    report = analyze(tables(kernels=[], memcpy=[], host_ops=ops, cuda_api=calls, steps=steps, run=run))
    opening = "No device work was captured: the work of 2 launch calls was not recorded. "
    assert report.verdict.sentence.startswith(opening + said)


def test_what_a_program_without_a_device_computes_is_said():
    ops = [(i * 1000, 900, "aten::mkldnn_convolution", "op") for i in range(3)]
    run = {"framework": "PyTorch", "format": "kineto"}
    sentence = analyze(stepped(kernels=[], host_ops=ops, run=run)).verdict.sentence
    assert "The program computes in 90.0 % of steady step time, mostly convolution (90.0 %)" in sentence


@pytest.mark.parametrize(
    ("computes", "said"),
    [
        (890, ("The program computes in 89.0 %", "Also: unexplained (11.0 %).")),
        (400, ("Unexplained: in 60.0 % of steady step time nothing was recorded", "The program computes in 40.0 %")),
    ],
)
def test_what_nothing_explains_of_a_program_without_a_device_is_said(computes, said):
    ops = [(i * 1000, computes, "aten::mkldnn_convolution", "op") for i in range(3)]
    run = {"framework": "PyTorch", "format": "kineto"}
    sentence = analyze(tables(steps=[(i * 1000, 1000, i) for i in range(3)], host_ops=ops, run=run)).verdict.sentence
    places = [sentence.find(part) for part in said]
    assert -1 < places[0] < places[1]
    assert "with_stack=True" in sentence


def test_a_capture_that_is_mostly_start_up_begins_with_that():
    calls = [(0, 700, "cudaFree"), (850, 100, "cudaMalloc")]
    verdict = analyze(tables(kernels=[(805, 45, "k"), (950, 50, "m")], cuda_api=calls)).verdict
    before, brief = (
        verdict.sentence.find("The first device work starts 805 ns"),
        verdict.sentence.find("From first to last device work"),
    )
    assert 0 <= before < brief
    assert "mostly allocation (51.3 %: cudaMalloc)" in verdict.sentence
    assert verdict.cause == "run_startup"


def test_a_cause_that_lasts_for_a_fifth_of_the_capture_comes_before_its_start_up():
    calls = [(0, 700, "cudaFree"), (850, 100, "cudaMalloc")]
    verdict = analyze(tables(kernels=[(800, 50, "k"), (950, 50, "m")], cuda_api=calls)).verdict
    cause, before = (
        verdict.sentence.find("Allocation: in 50.0 %"),
        verdict.sentence.find("The first device work starts"),
    )
    assert 0 <= cause < before
    assert verdict.cause == "allocation"


def test_a_capture_that_is_mostly_tear_down_begins_with_that():
    calls = [(10, 5, "cudaLaunchKernel"), (210, 700, "cuModuleUnload")]
    verdict = analyze(tables(kernels=[(20, 180, "k")], cuda_api=calls, span_ns=1_000)).verdict
    after, brief = (
        verdict.sentence.find("The last device work ends 800 ns"),
        verdict.sentence.find("Healthy from first"),
    )
    assert 0 <= after < brief
    assert verdict.cause == "run_after"


@pytest.mark.parametrize(("stake", "said"), [(50, True), (49, False)])
def test_host_bound_is_left_to_launch_bound_kernels_that_have_half_of_its_stake(stake, said):
    host = found("TV205", "host-bound", Severity.ERROR, 0.5, "steps", cost_ns=100)
    assert _is_subsumed(host, {"TV205": 100, "TV202": stake}) == said
    assert not _is_subsumed(host, {"TV205": 100})
    idle = found("TV201", "device-mostly-idle", Severity.ERROR, 0.5, "steps", cost_ns=100)
    assert _is_subsumed(idle, {"TV201": 100, "TV205": 1})


def test_a_program_without_a_device_computes_before_a_cause_that_is_small_beside_it():
    """Of 100 ns each step copies 10 and computes 60: computing comes first, then the copies."""
    operations = [(n * 100, 60, "aten::mm", "op") for n in range(6)]
    copies = [(n * 100 + 60, 10, "TransferToDevice", "transfer") for n in range(6)]
    report = analyze(
        tables(
            steps=[(n * 100, 100, n) for n in range(6)], host_ops=sorted(operations + copies), run={"format": "xplane"}
        )
    )
    assert (
        "The program computes in 60.0 % of steady step time, mostly matrix products (60.0 %)" in report.verdict.sentence
    )
    assert "Beside it: copies to the device (10.0 %)." in report.verdict.sentence


def test_load_of_the_machine_leads_no_sentence():
    """Other programs of a machine use its cores, too: what samples show is a finding, and no cause."""
    load = found("TV603", "thread-oversubscription", Severity.ERROR, 0.7, "steady step time")
    time = measure_judged_time(trace(kernels=[(0, 100, "gemm")]))
    assert list(find_precise_options((load,), time, NO_CAUSES)) == []
    churn = found("TV301", "churn", Severity.ERROR, 0.7, "it")
    assert [option.code for option in find_precise_options((churn,), time, NO_CAUSES)] == ["TV301"]


def test_a_sampled_cause_leads_with_the_function_and_the_line_that_ran():
    """Saving in 40 of 100 ns of each step, in two lines of one function; the rest computes."""
    save = "train.py:90 main > train.py:{} save_checkpoint > os.fsync"
    rows = []
    for begin in range(0, 500, 100):
        rows += [(begin, 30, save.format(88)), (begin + 30, 10, save.format(86)), (begin + 40, 60, "train.py:92 main")]
    literals = {
        "steps": [(begin, 100, number, {"thread_id": 0}) for number, begin in enumerate(range(0, 500, 100))],
        "host_ops": [(begin + 40, 60, "aten::mm", "op") for begin in range(0, 500, 100)],
        "run": {"framework": "PyTorch"},
    }
    verdict = analyze(tables(**literals, **sampled(*rows))).verdict
    assert verdict.cause == "blocking-io"
    assert (
        "Saving: about 40.0 % of steady step time is os.fsync in save_checkpoint (train.py:88)."
    ) in verdict.sentence
