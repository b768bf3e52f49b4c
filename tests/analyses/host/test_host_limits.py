"""Limits of a program on its host: findings from samples of stacks in the steps of the whole run."""

import pytest

from tests.analyses.builders import tables, trace
from tests.analyses.stacks import sampled
from traceviz.analyses.host.host_limits import HostLimitsAnalysis
from traceviz.analyses.host.own_function import working_function
from traceviz.analyses.host.small_operators import small_operators
from traceviz.analyses.run import analyze
from traceviz.report import Severity, Skipped

ANALYSIS = HostLimitsAnalysis()
MS = 1_000_000
STEP = 100 * MS
"""Ten samples of 10 ms each."""
MAIN = "train.py:90 main"
COMPUTES = f"{MAIN} > train.py:20 train_step > torch/nn/functional.py:9 linear > torch.nn.functional.linear"


def step(stacks, thread=0, steps=10):
    """Return the same in each step: pairs of a stack and its share of the step, in tenths."""
    rows = []
    for number in range(steps):
        start = number * STEP
        for stack, tenths, *cpu in stacks:
            length = tenths * STEP // 10
            used = round(length * (cpu[0] if cpu else 1.0))
            rows.append((start, length, stack, {"thread_id": thread, "samples": tenths, "cpu_ns": used}))
            start += length
    return rows


def recorded(*threads, steps=10, marks=None, **more):
    """Return steps of 100 ms, and what each thread does in them; the first thread is the main one."""
    rows = [row for number, stacks in enumerate(threads) for row in step(stacks, number, steps)]
    names = [(number, 0, "MainThread" if not number else f"worker-{number}") for number in range(len(threads))]
    phases = [(n * STEP, STEP, "step", "train.py", {"thread_id": 0}) for n in range(steps)]
    given = {"phases": [*phases, *more.pop("phases", [])], **sampled(*rows), "threads": names, **more}
    given |= {"steps": marks} if marks else {}
    return tables(**{"span_ns": 0, **given})


def view(*threads, **more):
    from traceviz.analyses.derived.view import TraceView

    return TraceView(recorded(*threads, **more))


def found(*threads, **more):
    result = ANALYSIS.run(view(*threads, **more))
    assert not isinstance(result, Skipped), result
    return {finding.code: finding for finding in ANALYSIS.judge(result)}


def evidence(finding):
    return {fact.key: fact.value for fact in finding.evidence}


class TestParts:
    def test_fsync_in_half_of_each_step_is_named_with_its_line(self):
        saves = (f"{MAIN} > train.py:88 save_checkpoint > os.fsync", 5, 0.0)
        (finding,) = found([(COMPUTES, 5), saves]).values()
        assert (finding.code, finding.share, finding.severity) == ("TV610", pytest.approx(0.5), Severity.ERROR)
        assert finding.message == "Saving: 50.0 % of the steps of the run is os.fsync in save_checkpoint (train.py:88)."
        assert (evidence(finding)["samples"], evidence(finding)["low"]) == (50, pytest.approx(0.404, abs=0.001))

    def test_a_share_of_50_percent_in_two_calls_is_said_of_neither_alone(self):
        writes = (f"{MAIN} > train.py:87 save_checkpoint > file.write", 2, 0.0)
        forces = (f"{MAIN} > train.py:88 save_checkpoint > os.fsync", 2, 0.0)
        renames = (f"{MAIN} > train.py:89 save_checkpoint > os.replace", 1, 0.0)
        (finding,) = found([(COMPUTES, 5), writes, forces, renames]).values()
        assert finding.message == (
            "Saving: 50.0 % of the steps of the run is spent in save_checkpoint (train.py:87): "
            "file.write (20.0 %) and os.fsync (20.0 %)."
        )

    @pytest.mark.parametrize(
        ("renames", "listed"), [(2, ""), (5, ": os.replace (5.0 %)")], ids=["4 % of it", "10 % of it"]
    )
    def test_a_call_with_less_than_a_tenth_of_a_save_is_not_listed(self, renames, listed):
        state = f"{MAIN} > train.py:88 keep_state > torch/serialization.py:900 save"
        rename = f"{MAIN} > train.py:88 keep_state > os.replace"
        last = step([(COMPUTES, 5), (state, 5 - renames, 0.0), (rename, renames, 0.0)], steps=1)
        rows = [*step([(COMPUTES, 5), (state, 5, 0.0)], steps=9), *((at + 9 * STEP, *rest) for at, *rest in last)]
        (finding,) = found(phases=[], **sampled(*(row for row in rows if row[1]))).values()
        said = f"spent in keep_state (train.py:88){listed}."
        assert finding.message == f"Saving: 50.0 % of the steps of the run is {said}"

    @pytest.mark.parametrize(
        ("stack", "code", "says"),
        [
            (
                "train.py:50 export > os.write",
                "TV610",
                "Input and output: 40.0 % of the steps of the run is os.write in export",
            ),
            (
                "train.py:50 log_all > logging/__init__.py:1100 emit",
                "TV614",
                "Logging: 40.0 % of the steps of the run is spent",
            ),
            (
                "train.py:50 distance",
                "TV611",
                "Python: 40.0 % of the steps of the run is Python itself, mostly in distance",
            ),
            (
                "train.py:50 encode > json/encoder.py:250 iterencode",
                "TV611",
                "Serialization: in 40.0 % of the steps of the run",
            ),
            (
                "train.py:50 add > lock.acquire",
                "TV613",
                "Locks: in 40.0 % of the steps of the run the main thread waits for a lock in add",
            ),
            (
                "train.py:50 nap > time.sleep",
                "TV613",
                "Sleep: in 40.0 % of the steps of the run the main thread sleeps in nap",
            ),
        ],
    )
    def test_of_40_percent_is_said_in_words_of_its_own(self, stack, code, says):
        waits = 0.0 if code in {"TV610", "TV613"} else 1.0
        (finding,) = found([(COMPUTES, 6), (f"{MAIN} > {stack}", 4, waits)]).values()
        assert finding.code == code
        assert finding.message.startswith(says)
        assert "train.py:50" in finding.message

    @pytest.mark.parametrize(("steps", "codes"), [(2, {"TV617"}), (3, {"TV614"})])
    def test_needs_three_samples(self, steps, codes):
        logs = (f"{MAIN} > train.py:50 log_all > logging/__init__.py:1100 emit", 1)
        assert found([(COMPUTES, 9), logs], steps=steps).keys() == codes

    def test_fewer_than_ten_samples_of_steps_say_nothing(self):
        rows = step([(f"{MAIN} > train.py:88 save_checkpoint > os.fsync", 9)], 0, 1)
        phases = [(0, STEP, "step", "train.py", {"thread_id": 0})]
        result = ANALYSIS.run(trace(span_ns=0, phases=phases, **sampled(*rows)))
        assert isinstance(result, Skipped)
        assert result.reason == "fewer than 10 samples of stacks lie in steps"

    def test_of_20_samples_is_said_with_about(self):
        saves = (f"{MAIN} > train.py:88 save_checkpoint > os.fsync", 5, 0.0)
        (finding,) = found([(COMPUTES, 5), saves], steps=2).values()
        assert finding.message.startswith("Saving: about 50.0 %")

    def test_a_program_that_computes_in_90_percent_is_bound_by_that_and_healthy(self):
        (finding,) = found([(COMPUTES, 9), (f"{MAIN} > train.py:91 main", 1)]).values()
        assert (finding.code, finding.severity, finding.cost_ns) == ("TV617", Severity.INFO, 0)
        assert "90.0 % of the steps of the run, mostly in train_step (train.py:20)" in finding.message

    def test_reading_for_the_input_is_told_by_the_input_and_not_as_0_findings_more(self):
        loads = (f"{MAIN} > torch/utils/data/dataloader.py:1 __next__ > data.py:9 load_image > io.open", 7, 0.0)
        assert found([(COMPUTES, 3), loads]) == {}

    def test_time_outside_of_the_10_steps_does_not_count(self):
        late = [
            (10 * STEP, 50 * STEP, f"{MAIN} > train.py:88 save_checkpoint > os.fsync", {"samples": 500, "cpu_ns": 0})
        ]
        rows = [*step([(COMPUTES, 10)]), *late]
        phases = [(n * STEP, STEP, "step", "train.py", {"thread_id": 0}) for n in range(10)]
        result = ANALYSIS.run(trace(span_ns=0, phases=phases, **sampled(*rows)))
        assert [finding.code for finding in ANALYSIS.judge(result)] == ["TV617"]


class TestLocks:
    WAITS = (f"{MAIN} > train.py:30 train > queue.py:171 get > threading.py:327 wait > lock.acquire", 8, 0.0)

    def test_a_queue_names_what_its_filler_does_meanwhile(self):
        fills = ("threading.py:982 run > train.py:12 read_shard > time.sleep", 10, 0.0)
        (finding,) = found([(COMPUTES, 2), self.WAITS], [fills]).values()
        assert finding.message == (
            "Starved: in 80.0 % of the steps of the run the main thread waits for a queue in train (train.py:30); "
            "meanwhile worker-1 sleeps in read_shard (train.py:12)."
        )

    def test_a_wait_of_80_percent_for_a_thread_that_computes_is_no_starvation(self):
        computes = (
            "threading.py:982 run > train.py:12 forward > torch/nn/functional.py:9 linear > torch.nn.linear",
            10,
        )
        assert found([(COMPUTES, 2), self.WAITS], [computes]) == {}

    def test_a_sleep_of_4_tenths_is_not_advised_to_look_at_another_thread(self):
        (finding,) = found([(COMPUTES, 6), (f"{MAIN} > train.py:30 train > time.sleep", 4, 0.0)]).values()
        assert [line.split()[0] for line in finding.advice] == ["Sleep"]

    @pytest.mark.parametrize(
        ("frames", "says"),
        [
            (
                "threading.py:327 wait > lock.acquire",
                "Locks: in 40.0 % of the steps of the run the main thread waits for a lock",
            ),
            (
                "subprocess.py:9 wait > os.waitpid",
                "Waiting: in 40.0 % of the steps of the run the main thread waits for another process in wait ",
            ),
            (
                "concurrent/futures/_base.py:4 result > lock.acquire",
                "Waiting: in 40.0 % of the steps of the run the main thread waits for another thread",
            ),
            (
                "multiprocessing/queues.py:4 get > lock.acquire",
                "Starved: in 40.0 % of the steps of the run the main thread waits for a queue",
            ),
        ],
    )
    def test_files_of_the_stack_say_what_40_percent_wait_for(self, frames, says):
        (finding,) = found([(COMPUTES, 6), (f"{MAIN} > train.py:30 train > {frames}", 4, 0.0)]).values()
        assert says in finding.message


class TestInterpreterLock:
    PYTHON = ("threading.py:982 run > train.py:16 count_words", 10, 0.2)

    def test_four_threads_that_want_it_beside_the_main_thread_cost_80_percent(self):
        own = (f"{MAIN} > train.py:20 train_step > torch/nn/functional.py:9 linear", 10, 0.2)
        codes = found([own], *[[self.PYTHON]] * 4)
        assert set(codes) == {"TV612"}
        assert codes["TV612"].share == pytest.approx(0.8)
        assert codes["TV612"].message == (
            "GIL: 5 threads want Python's interpreter lock at once, among them worker-1 in count_words (train.py:16): "
            "the steps wait for it in 80.0 % of their time."
        )

    def test_a_main_thread_that_waits_for_four_that_take_turns_waits_for_the_lock(self):
        joins = (f"{MAIN} > train.py:30 train > concurrent/futures/_base.py:451 result > lock.acquire", 10, 0.0)
        codes = found([joins], *[[self.PYTHON]] * 4)
        assert codes["TV612"].share == pytest.approx(0.75)

    def test_a_main_thread_that_computes_beside_4_of_them_and_uses_its_core_loses_nothing(self):
        assert "TV612" not in found([(COMPUTES, 10, 1.0)], *[[self.PYTHON]] * 4)

    def test_other_threads_that_wait_in_4_locks_want_nothing(self):
        own = (f"{MAIN} > train.py:20 train_step > torch/nn/functional.py:9 linear", 10, 0.2)
        rests = ("threading.py:982 run > train.py:16 count_words > lock.acquire", 10, 0.0)
        assert "TV612" not in found([own], *[[rests]] * 4)

    def test_a_thread_that_never_uses_1_percent_of_a_core_is_blocked_in_its_line(self):
        own = (f"{MAIN} > train.py:20 train_step > torch/nn/functional.py:9 linear", 10, 0.2)
        blocked = ("threading.py:982 run > train.py:16 count_words", 10, 0.005)
        assert "TV612" not in found([own], *[[blocked]] * 4)

    def test_alone_on_a_busy_machine_the_program_does_not_wait_for_0_other_threads(self):
        assert found([(COMPUTES, 10, 0.1)]).keys() == {"TV617"}


class TestGarbage:
    def collected(self, tenths):
        calls = (f"{MAIN} > train.py:12 free_memory > gc.collect", tenths)
        phases = [
            (n * STEP + (10 - tenths) * STEP // 10, tenths * STEP // 10, "collection", "2", {"thread_id": 0})
            for n in range(10)
        ]
        return found([(COMPUTES, 10 - tenths), calls], phases=phases)

    def test_in_7_tenths_of_each_step_is_named_with_who_calls_it(self):
        (finding,) = self.collected(7).values()
        assert (finding.code, finding.share) == ("TV615", pytest.approx(0.7))
        assert finding.message == (
            "Garbage collection: in 70.0 % of the steps of the run Python collects garbage (10 collections, mostly in "
            "free_memory (train.py:12))."
        )
        assert finding.advice[0] == "Do not call gc.collect() in steps."

    def test_in_7_tenths_of_each_step_that_python_begins_itself_advises_no_calls_less(self):
        works = (f"{MAIN} > train.py:12 parse > json/decoder.py:9 decode", 7)
        phases = [(n * STEP + 3 * STEP // 10, 7 * STEP // 10, "collection", "2", {"thread_id": 0}) for n in range(10)]
        finding = found([(COMPUTES, 3), works], phases=phases)["TV615"]
        assert "mostly in parse (train.py:12)" in finding.message
        assert not any("gc.collect() in steps" in line for line in finding.advice)


def operators(count, each_ns, gap_ns, steps=10):
    """Return operators of one step after another, on a program without a device."""
    rows, marks, moment = [], [], 0
    for number in range(steps):
        begin = moment
        for _ in range(count):
            rows.append((moment, each_ns, "aten::mm", "op"))
            moment += each_ns + gap_ns
        marks.append((begin, moment - begin, number))
    return tables(host_ops=rows, steps=marks, run={"framework": "PyTorch"})


class TestSmallOperators:
    @pytest.mark.parametrize(
        ("count", "each_us", "codes"), [(99, 10, set()), (100, 10, {"TV611"}), (100, 100, {"TV611"}), (100, 101, set())]
    )
    def test_are_100_a_step_of_at_most_100_microseconds(self, count, each_us, codes):
        report = analyze(operators(count, each_us * 1000, 2000))
        assert {finding.code for finding in report.findings} & {"TV611", "TV616"} == codes

    @pytest.mark.parametrize(("steps", "codes"), [(2, set()), (3, {"TV611"})])
    def test_need_three_steps(self, steps, codes):
        report = analyze(operators(200, 10_000, 2000, steps))
        assert {finding.code for finding in report.findings} & {"TV611", "TV616"} == codes

    @pytest.mark.parametrize(("batch", "code"), [(8, "TV616"), (9, "TV611")])
    def test_of_a_batch_of_8_are_a_small_batch(self, batch, code):
        made = operators(200, 10_000, 2000)
        shapes = [(number, "Input Dims", {"text": f"[[{batch}, 64], [64, 64]]"}) for number in range(2000)]
        report = analyze(made.replace({"op_args": tables(op_args=shapes).arrow("op_args")}))
        assert {finding.code for finding in report.findings} & {"TV611", "TV616"} == {code}

    def test_lead_the_first_sentence_with_their_number_and_time(self):
        report = analyze(operators(900, 10_000, 2000))
        assert "Small operators: 900 operator calls a step, 10.0 µs each in the median" in report.verdict.sentence
        assert report.verdict.cause == "python-in-loop"

    @pytest.mark.parametrize(("stalled_us", "share"), [(20, 0.818), (20_000, 0.0045)])
    def test_count_a_stalled_call_for_two_medians_of_its_operator(self, stalled_us, share):
        rows, marks, moment = [], [], 0
        for number in range(5):
            begin = moment
            for place in range(100):
                each = stalled_us * 1000 if place % 10 == 0 else 10_000
                rows.append((moment, each, "aten::add", "op"))
                moment += each
            rows.append((moment, 2 * (moment - begin) // 9, "train", "annotation"))
            moment += 2 * (moment - begin) // 9
            marks.append((begin, moment - begin, number))
        view = trace(host_ops=rows, steps=marks, run={"framework": "PyTorch"})
        found = small_operators(view)
        assert (found.share, found.median_ns) == (pytest.approx(share, abs=0.0005), 10_000)

    def test_of_a_function_with_60_percent_of_the_steps_are_said_by_that_function(self):
        refresh = (f"{MAIN} > ema.py:8 refresh > torch/functional.py:9 norm", 6)
        learns = (f"{MAIN} > torch/_tensor.py:5 backward", 4)
        calls = [(n * STEP + k * MS // 4, MS // 5, "aten::mul", "op") for n in range(10) for k in range(400)]
        calls = [(start, dur // 2, name, kind) for start, dur, name, kind in calls]
        marks = [(n * STEP, STEP, n) for n in range(10)]
        given = {"span_ns": 10 * STEP, "marks": marks, "host_ops": calls, "run": {"framework": "PyTorch"}}
        finding = {f.code: f for f in analyze(recorded([refresh, learns], **given)).findings}["TV611"]
        assert finding.message.startswith(
            "The function refresh (ema.py:8) takes 60.0 % of the steps, in small operators: 400 operator calls a step"
        )
        rest = (f"{MAIN} > ema.py:8 refresh > torch/functional.py:9 norm", 2)
        finding = {f.code: f for f in analyze(recorded([rest, (learns[0], 8)], **given)).findings}["TV611"]
        assert finding.message.startswith("Small operators: 400 operator calls a step")


class TestStalledPool:
    """Steps of 100 calls that use one thread, and 20 that use two and may stall."""

    def stepping(self, pool_us, *, plain_us=10, threads="2", busy=None, shapes=False, steps=5):
        """``plain_us`` is the time of every other plain call; the rest take 10 µs."""
        rows, marks, dims, moment = [], [], [], 0
        for number in range(steps):
            begin = moment
            for place in range(120):
                is_pool = place % 6 == 5
                usual, other = (20, pool_us) if is_pool else (10, plain_us)
                each = (other if place // 6 % 2 else usual) * 1000
                rows.append((moment, each, "aten::mm" if is_pool else "aten::view", "op"))
                dims.append((len(rows) - 1, "Input Dims", {"text": f"[[{8 if each == 20_000 else 9000}]]"}))
                moment += each
            marks.append((begin, moment - begin, number))
        settings = [("machine.cores", "2"), ("machine.usable_cores", "2")]
        settings += [("collector.torch.threads.intra_op", threads)] if threads else []
        given = {"op_args": dims} if shapes else {}
        if busy is not None:
            amounts = {"program CPU": 100.0, "machine CPU": 100.0 + 100 * busy}
            given["samples"] = [
                (moment * n // 20, name, value, {"unit": "%", "device_id": None})
                for n in range(1, 21)
                for name, value in amounts.items()
            ]
        return tables(host_ops=rows, steps=marks, run={"framework": "PyTorch"}, settings=settings, **given)

    def found(self, *given, **more):
        return {finding.code: finding for finding in analyze(self.stepping(*given, **more)).findings}.get("TV621")

    def test_of_two_threads_on_the_one_core_that_others_leave_is_said_with_operator_and_times(self):
        finding = self.found(2_000, busy=1.0)
        assert finding.share == pytest.approx(0.92, abs=0.02)
        assert finding.message.startswith("Threads wait for cores: operators stall in 9")
        assert "aten::mm (usually 20.0 µs, on average 1.01 ms)" in finding.message
        assert "PyTorch divides each among 2 threads, and other programs leave 1 of 2 cores." in finding.message
        assert "OMP_NUM_THREADS=1" in finding.advice[0]

    def test_leads_the_first_sentence(self):
        report = analyze(self.stepping(2_000, busy=1.0))
        assert " Threads wait for cores: operators stall in 91.5 % of steady step time" in report.verdict.sentence
        assert report.verdict.cause == "stalled-thread-pool"

    def test_of_32_threads_on_2_cores_needs_no_other_program(self):
        assert "among 32 threads, and the program may use 2 cores." in self.found(2_000, threads="32").message

    @pytest.mark.parametrize(
        "more",
        [
            {"busy": 0.0},  # all cores are free
            {"threads": "1", "busy": 1.0},  # there is no pool
            {"threads": "", "busy": 1.0},  # nor is one known
            {"busy": 1.0, "shapes": True},  # large inputs take long, and do not stall
        ],
    )
    def test_is_no_finding_of_0_threads_that_wait(self, more):
        assert self.found(2_000, **more) is None

    @pytest.mark.parametrize(("plain_us", "is_found"), [(10, True), (1_000, False)])
    def test_is_none_if_the_other_100_calls_are_slowed_as_much_by_a_busy_machine(self, plain_us, is_found):
        assert (self.found(2_000, busy=1.0, plain_us=plain_us) is not None) is is_found


class TestOwnFunction:
    TRAINS = (f"{MAIN} > train.py:20 train_step > torch/_tensor.py:500 backward > run_backward", 3)
    PLOT = f"{MAIN} > train.py:41 plot"

    def plotting(self, *more):
        drawn = (f"{self.PLOT} > matplotlib/figure.py:9 draw", 3)
        solved = (f"{self.PLOT} > numpy/linalg.py:3 lstsq > np.dot", 2)
        written = (f"{self.PLOT} > matplotlib/figure.py:12 savefig > file.write", 2, 0.0)
        return found([self.TRAINS, drawn, solved, written, *more])

    def test_of_three_kinds_is_one_statement_with_its_inclusive_share(self):
        (finding,) = self.plotting().values()
        assert (finding.code, finding.share) == ("TV622", pytest.approx(0.7))
        assert finding.message == (
            "The function plot (train.py:41) takes 70.0 % of the steps of the run: Python (30.0 %), library code "
            "(20.0 %) and input and output (20.0 %)."
        )

    def test_leads_the_first_sentence_and_its_kinds_are_not_repeated(self):
        rows = [self.TRAINS, (f"{self.PLOT} > pandas/a.py:9 agg", 3), (f"{self.PLOT} > os.fsync", 4, 0.0)]
        steps = [(n * STEP, STEP, n) for n in range(10)]
        report = analyze(recorded(rows, span_ns=10 * STEP, marks=steps))
        assert report.verdict.sentence.startswith("The function plot (train.py:41) takes 70.0 % of steady step time:")
        assert report.verdict.cause == "function-in-steps"
        assert "Also" not in report.verdict.sentence

    @pytest.mark.parametrize(
        "stacks",
        [
            # it trains
            [(f"{MAIN} > train.py:20 step > torch/_tensor.py:5 backward", 4), (f"{MAIN} > train.py:20 step", 6)],
            # it computes with the framework: a loss, or the model
            [(f"{MAIN} > train.py:8 loss > torch/functional.py:9 norm", 6), TRAINS, (f"{MAIN} > train.py:91 main", 1)],
            # it holds the loop
            [(f"{MAIN} > numpy/a.py:1 sort", 4), (f"{MAIN} > train.py:91 log > print", 0), (f"{MAIN}", 6)],
            # below a fifth of the steps
            [(f"{MAIN} > train.py:8 plot > pandas/a.py:1 agg", 1), (f"{MAIN} > train.py:20 step > torch.mm", 9)],
        ],
    )
    def test_is_reported_of_0_functions_that_train_hold_the_loop_or_take_little(self, stacks):
        assert "TV622" not in found([stack for stack in stacks if stack[1]])

    @pytest.mark.parametrize(("recorded_ms", "is_named"), [(0, True), (86, True), (84, False)])
    def test_that_computes_is_named_unless_operators_take_15_percent_less_than_samples_say(self, recorded_ms, is_named):
        computes = (f"{MAIN} > train.py:8 update_ema > torch/functional.py:9 norm", 6)
        steps = [(n * STEP, STEP, n) for n in range(10)]
        calls = [(n * STEP, recorded_ms * MS, "aten::mul", "op") for n in range(10)] if recorded_ms else []
        stacks = [self.TRAINS, computes, (f"{MAIN} > torch/_tensor.py:5 backward", 1)]
        report = analyze(recorded(stacks, span_ns=10 * STEP, marks=steps, host_ops=calls, run={"framework": "PyTorch"}))
        assert (", 60.0 % in update_ema (train.py:8), mostly" in report.verdict.sentence) is is_named

    def test_that_the_model_calls_in_60_percent_is_part_of_the_model(self):
        forward = (f"{MAIN} > torch/nn/modules/module.py:9 _call_impl > train.py:8 forward > torch/a.py:9 norm", 6)
        view_of = view([self.TRAINS, forward, (f"{MAIN} > torch/_tensor.py:5 backward", 1)])
        assert working_function(view_of) is None

    @pytest.mark.parametrize("outer", ["train.py:41 score", "report.py:7 Meter.update", "log.py:3 show"])
    def test_of_one_kind_leads_if_its_lines_are_in_several_functions_that_it_calls(self, outer):
        calls = [(f"{MAIN} > {outer} > metrics.py:{line} part_{line}", tenths) for line, tenths in ((3, 3), (9, 2))]
        found_now = found([self.TRAINS, *calls, (f"{MAIN} > train.py:91 main", 2)])
        place, _, function = outer.rpartition("/")[2].partition(" ")
        assert found_now["TV622"].message.startswith(
            f"The function {function.rpartition('.')[2]} ({place}) takes 50.0 %"
        )
        assert found_now.keys() == {"TV622"}

    def test_that_reads_in_two_functions_has_the_advice_on_reading(self):
        reads = [(f"{MAIN} > train.py:41 fetch > io.py:{line} read_{line} > os.read", 3, 0.0) for line in (3, 9)]
        finding = found([self.TRAINS, *reads, (f"{MAIN} > train.py:91 main", 1)])["TV610"]
        assert finding.message.startswith(
            "The function fetch (train.py:41) takes 60.0 % of the steps of the run: input"
        )

    def test_whose_time_another_one_has_in_80_percent_names_it(self):
        handles, ranks = f"{MAIN} > serve.py:41 do_post", f"{MAIN} > serve.py:42 do_post > serve.py:7 rank"
        rest = [self.TRAINS, (f"{MAIN} > train.py:91 main", 2)]
        (whole, part) = (found([(ranks, most), (handles, 5 - most), *rest])["TV622"].message for most in (4, 3))
        assert whole.endswith("takes 50.0 % of the steps of the run, mostly in rank (serve.py:7): Python (50.0 %).")
        assert part.endswith("takes 50.0 % of the steps of the run: Python (50.0 %).")

    def test_that_computes_for_longer_than_the_cause_takes_is_named_beside_it(self):
        acts = (f"{MAIN} > train.py:8 act > torch/functional.py:9 norm", 4)
        moves = (f"{MAIN} > train.py:12 move > numpy/a.py:3 sort", 3)
        steps = [(n * STEP, STEP, n) for n in range(10)]
        report = analyze(recorded([self.TRAINS, acts, moves], span_ns=10 * STEP, marks=steps))
        assert report.verdict.sentence.startswith(
            "The function move (train.py:12) takes 30.0 % of steady step time: library code (30.0 %). Longer still "
            "computes act (train.py:8): 40.0 %."
        )

    def test_of_one_kind_is_said_by_the_finding_of_that_kind(self):
        saves = (f"{MAIN} > train.py:88 export > os.fsync", 5, 0.0)
        assert found([self.TRAINS, saves, (f"{MAIN} > train.py:91 main", 2)]).keys() == {"TV610", "TV611"}

    def test_that_averages_with_the_framework_is_said_if_its_python_is_a_fifth_of_the_steps(self):
        computes, python = f"{MAIN} > ema.py:8 refresh > torch/functional.py:9 norm", f"{MAIN} > ema.py:9 refresh"
        rest = (f"{MAIN} > train.py:91 main", 1)
        assert found([self.TRAINS, (computes, 4), (python, 2), rest])["TV622"].share == pytest.approx(0.6)
        assert "TV622" not in found([self.TRAINS, (computes, 5), (python, 1), rest])

    def test_called_for_the_input_in_60_percent_is_the_inputs(self):
        load = f"{MAIN} > torch/utils/data/dataloader.py:9 __next__ > train.py:23 pad"
        stacks = [self.TRAINS, (load, 3), (f"{load} > numpy/a.py:1 stack", 3), (f"{MAIN} > train.py:91 main", 1)]
        assert "TV622" not in found(stacks)


class TestBesideOthers:
    SAVES = (f"{MAIN} > train.py:88 save_checkpoint > os.fsync", 5, 0.0)
    MARKS = tuple((n * STEP, STEP, n) for n in range(10))

    def test_what_no_event_covers_is_explained_by_samples_of_half_of_it(self):
        report = analyze(recorded([(COMPUTES, 5), self.SAVES], span_ns=10 * STEP, marks=self.MARKS))
        assert "nexplained" not in report.verdict.sentence

    def test_one_busy_core_of_two_is_no_surprise_while_the_program_saves(self):
        samples = [(n * STEP, "program CPU", 100.0, {"unit": "%", "device_id": None}) for n in range(1, 11)]
        machine = {"samples": samples, "settings": [("machine.cores", "2")]}
        saving = recorded([(COMPUTES, 5), self.SAVES], span_ns=10 * STEP, marks=self.MARKS, **machine)
        computing = recorded([(COMPUTES, 10)], span_ns=10 * STEP, marks=self.MARKS, **machine)
        assert "TV601" not in {finding.code for finding in analyze(saving).findings}
        assert "TV601" in {finding.code for finding in analyze(computing).findings}

    def test_a_program_that_waits_for_input_in_90_percent_is_not_said_to_be_bound_by_computing(self):
        waits = [(n * STEP, 9 * STEP // 10, "DataLoader.__next__", "input") for n in range(10)]
        report = analyze(recorded([(COMPUTES, 10)], span_ns=10 * STEP, marks=self.MARKS, host_ops=waits))
        assert {"TV101", "TV617"} & {finding.code for finding in report.findings} == {"TV101"}


def test_half_of_the_steps_in_fsync_lead_the_first_sentence():
    saves = (f"{MAIN} > train.py:88 save_checkpoint > os.fsync", 5, 0.0)
    steps = [(n * STEP, STEP, n) for n in range(10)]
    report = analyze(recorded([(COMPUTES, 5), saves], span_ns=10 * STEP, marks=steps))
    assert (report.findings[0].code, report.verdict.cause) == ("TV610", "blocking-io")
    assert "50.0 % of steady step time is os.fsync in save_checkpoint (train.py:88)" in report.verdict.sentence
