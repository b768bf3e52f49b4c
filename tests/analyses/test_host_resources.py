"""The host: figures and pictures of samples, and the findings that follow from them."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.host_findings import CODES
from traceviz.analyses.host_resources import HostResourcesAnalysis, amount
from traceviz.analyses.host_samples import Series, Shown, all_series, judged_window, machine, sliced
from traceviz.analyses.run import analyze
from traceviz.report import Bars, Facts, Grid, Severity, Skipped, Timeline

SECOND = 10**9
MIB = 1 << 20
ANALYSIS = HostResourcesAnalysis()
EIGHT = {"machine.cores": "8", "machine.physical_cores": "4", "machine.memory_bytes": str(16 << 30)}


def series(metric, values, unit="count", every_ns=SECOND, **extra):
    """Samples of one metric, the first after one interval."""
    more = {"unit": unit, "device_id": None, **extra}
    return [(number * every_ns, metric, float(value), more) for number, value in enumerate(values, 1)]


def percent(metric, *values):
    return series(metric, values, "%")


def recorded(*samples, settings=None, steps=(), **literals):
    """A trace of samples, with steps of which each literal is ``start, duration`` in seconds."""
    rows = [(round(begin * SECOND), round(length * SECOND), number) for number, (begin, length) in enumerate(steps)]
    more = {"steps": rows} if rows else {}
    return trace(
        samples=[row for part in samples for row in part],
        settings=list({**EIGHT, **(settings or {})}.items()),
        **more,
        **literals,
    )


TEN_STEPS = tuple((number, 1) for number in range(10))


def findings(view):
    return ANALYSIS.judge(ANALYSIS.run(view))


def found_codes(view):
    return [found.code for found in findings(view)]


def evidence(found):
    return {fact.key: fact.value for fact in found.evidence}


def facts(view):
    blocks = ANALYSIS.describe(ANALYSIS.run(view)).blocks
    return {fact.key: fact.value for block in blocks if isinstance(block, Facts) for fact in block.facts}


class TestFigures:
    def test_mean_and_95th_percentile_and_maximum_of_a_metric(self):
        result = ANALYSIS.run(recorded(percent("program CPU", *range(100, 201, 5))))
        cpu = result.of("program CPU")
        assert (cpu.mean, cpu.p95, cpu.highest, cpu.unit) == (150.0, 195.0, 200.0, "%")

    def test_facts_are_shares_of_the_usable_cores_and_maxima(self):
        view = recorded(
            percent("program CPU", 100, 300),
            series("program memory", [1000, 3000], "bytes"),
            series("program threads", [4, 9]),
            settings={"resources.cost": "0.004", "machine.cpu_limit": "4"},
        )
        known = facts(view)
        assert (known["cpu_mean"], known["busy_cores"], known["cores"]) == (0.5, 2.0, 4.0)
        assert (known["rss_max"], known["threads_max"], known["sampler_cost"]) == (3000, 9, 0.004)
        assert known["gpu_mean"] is None

    def test_pictures_are_shares_of_cores_of_the_device_memory_and_of_the_maximum(self):
        gpu = {"device_id": 0}
        view = recorded(
            percent("program CPU", 400, 800),
            series("program threads", [5, 10]),
            series("GPU memory used", [250, 500], "bytes", **gpu),
            devices=[(0, "H200", {"memory_bytes": 1000, "ordinal": 0})],
        )
        (timeline,) = (b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Timeline))
        last = {lane.label: (lane.values[-1], lane.whole) for lane in timeline.lanes}
        assert last == {"CPU, program": (1.0, "8 cores"), "threads": (1.0, "10"), "GPU 0 memory": (0.5, "1.00 kB")}
        assert timeline.title == "Over the run; full height is the amount on the right"

    def test_pictures_of_a_run_tell_which_2_seconds_of_it_were_profiled(self):
        view = recorded(percent("program CPU", *[100] * 10), span_ns=2 * SECOND)
        (timeline,) = (b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Timeline))
        assert (timeline.start_ns, timeline.end_ns) == (0, 10 * SECOND)
        assert "(2.00 s from 0 s on profiled)" in timeline.title

    def test_people_read_amounts_with_their_units_and_programs_get_numbers(self):
        view = recorded(series("program memory", [2_000_000, 4_000_000], "bytes"))
        grids = [b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Grid)]
        assert grids[0].rows == (("program memory", "", "bytes", 3e6, 3.9e6, 4e6),)
        assert grids[1].rows == (("memory", "3.00 MB", "3.90 MB", "4.00 MB"),)

    def test_a_metric_that_was_zero_all_the_time_is_for_programs_only(self):
        view = recorded(series("program read", [0, 0], "bytes/s"), percent("program CPU", 10))
        grids = [b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Grid)]
        assert ([row[0] for row in grids[0].rows], len(grids[1].rows)) == (["program CPU", "program read"], 1)

    def test_processes_are_listed_with_the_busiest_first(self):
        view = recorded(
            percent("program CPU", 90),
            series("process CPU", [10, 30], "%", process_id=0),
            series("process CPU", [80], "%", process_id=1),
            series("process memory", [100, 70], "bytes", process_id=1),
            processes=[(0, "python", {"pid": 7}), (1, "worker", {"pid": 8})],
        )
        listed = [(p.name, p.pid, p.busy_cores, p.memory_bytes) for p in ANALYSIS.run(view).processes]
        assert listed == [("worker", 8, 0.8, 100), ("python", 7, 0.2, None)]

    @pytest.mark.parametrize(("rest", "shown"), [(69, 2), (71, 0)])
    def test_cores_are_drawn_where_one_works_30_percent_more_than_another(self, rest, shown):
        view = recorded(percent("program CPU", 90), percent("core 1", 100), percent("core 0", rest))
        bars = [b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Bars)]
        assert [len(block.bars) for block in bars] == [shown] * bool(shown)

    def test_of_64_cores_the_8_busiest_are_drawn(self):
        view = recorded(percent("program CPU", 90), *(percent(f"core {number}", number) for number in range(64)))
        (bars,) = (b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Bars))
        assert [bar.label for bar in bars.bars] == [f"core {number}" for number in range(63, 55, -1)]
        assert bars.title.endswith("the busiest 8")

    def test_cores_are_averaged_one_by_one(self):
        view = recorded(percent("program CPU", 90), percent("core 1", 50, 100), percent("core 0", 20))
        assert ANALYSIS.run(view).cores == ((0, 0.2), (1, 0.75))

    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [
            (1234.0, "bytes/s", "1.23 kB/s"),
            (12.34, "%", "12.3 %"),
            (90.0, "%", "90.0 %"),
            (1500.4, "MHz", "1,500 MHz"),
            (3.0, "count", "3"),
        ],
    )
    def test_an_amount_has_its_unit(self, value, unit, text):
        assert amount(value, unit) == text


class TestPictures:
    def one(self, *pairs):
        times, values = zip(*pairs, strict=True)
        view = trace(samples=[(t, "program CPU", float(v), {"device_id": None}) for t, v in zip(times, values)])  # noqa: B905
        (found,) = all_series(view)
        return found

    def test_a_slice_has_the_mean_of_its_samples(self):
        assert sliced(self.one((1, 10), (2, 20), (7, 40)), 10, 2) == (15.0, 40.0)

    def test_a_slice_between_two_samples_has_the_later_one(self):
        assert sliced(self.one((0, 1), (4, 2), (8, 3)), 10, 5) == (1.0, 2.0, 2.0, 3.0, 3.0)

    def test_a_pause_of_the_sampler_stays_empty(self):
        values = sliced(self.one(*((t, 5) for t in (0, 1, 2, 3, 4, 96, 97, 98, 99))), 100, 10)
        assert values == (5.0, *[None] * 8, 5.0)

    def test_an_empty_capture_has_no_slice(self):
        assert sliced(self.one((0, 1)), 0, 3) == (None, None, None)

    def test_series_know_their_place(self):
        assert isinstance(self.one((0, 1)), Series)
        assert self.one((0, 1)).shown == Shown("program CPU", "CPU, program", "cores")


class TestMachine:
    def test_what_may_be_used_is_the_least_of_affinity_limit_and_cores(self):
        view = recorded(settings={"machine.usable_cores": "6", "machine.cpu_limit": "2.5"})
        found = machine(view)
        assert (found.cores, found.usable, found.physical, found.full_speed) == (8, 2.5, 4, 2.5)

    def test_strange_settings_are_not_known(self):
        view = trace(samples=[], settings=[("machine.cores", "many"), ("machine.memory_bytes", "nan")])
        assert (machine(view).usable, machine(view).memory_bytes) == (None, None)

    def test_judged_is_from_the_first_to_the_last_steady_step(self):
        view = recorded(steps=[(number, 1) for number in range(2, 12)], span_ns=20 * SECOND)
        assert judged_window(view) == (2 * SECOND, 12 * SECOND)
        assert judged_window(trace(span_ns=7)) == (0, 7)


class TestFewCores:
    def test_one_core_of_four_costs_three_quarters_of_the_host_compute(self):
        (found,) = findings(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS))
        assert (found.code, found.cost_ns, found.severity) == ("TV601", 7_500_000_000, Severity.ERROR)
        assert evidence(found)["busy_cores"] == 1.0
        assert found.message == ("The host computes the steps, and the program keeps about one core of 4 busy.")
        assert not any("num_workers" in advice for advice in found.advice)

    @pytest.mark.parametrize(
        ("busy", "codes"),
        [(79, ["TV602"]), (80, ["TV601"]), (130, ["TV601"]), (131, ["TV602"]), (299, ["TV602"]), (300, [])],
    )
    def test_thresholds_of_busy_cores(self, busy, codes):
        assert found_codes(recorded(percent("program CPU", *[busy] * 10), steps=TEN_STEPS)) == codes

    def test_less_than_a_core_waits_for_something_else_than_the_cpu(self):
        (found,) = findings(recorded(percent("program CPU", *[20] * 10), steps=TEN_STEPS))
        assert "does not wait for the CPU" in found.message

    def test_with_a_device_the_time_is_counted_by_other_findings(self):
        kernels = [(number * SECOND, SECOND // 2, "gemm") for number in range(10)]
        (found,) = findings(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS, kernels=kernels))
        assert (found.code, found.cost_ns, evidence(found)["host_share"]) == ("TV601", 0, 0.5)
        assert found.message.startswith("Steps wait for the host in 50.0 % of their time, and")

    def test_steps_that_wait_for_input_are_told_to_prepare_it_on_other_cores(self):
        waits = [(number * SECOND, SECOND // 20, "DataLoader.__next__", "input") for number in range(10)]
        (found,) = findings(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS, host_ops=waits))
        assert "num_workers" in found.advice[0]
        assert evidence(found)["input_share"] == 0.05

    def test_a_busy_device_makes_idle_cores_fine(self):
        kernels = [(number * SECOND, int(0.81 * SECOND), "gemm") for number in range(10)]
        assert found_codes(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS, kernels=kernels)) == []

    @pytest.mark.parametrize(("utilisation", "codes"), [(49, ["TV601"]), (50, []), (0, [])])
    def test_without_steps_a_gpu_that_is_used_must_idle(self, utilisation, codes):
        gpu = series("GPU utilisation", [utilisation] * 10, "%", device_id=0)
        assert found_codes(recorded(percent("program CPU", *[100] * 10), gpu)) == codes

    def test_only_samples_of_the_steps_count(self):
        cpu = percent("program CPU", *[100] * 20, *[400] * 10)
        steps = [(number, 1) for number in range(20, 30)]
        assert found_codes(recorded(cpu, steps=steps)) == []

    def test_a_profile_of_80_ms_is_judged_by_the_5_samples_nearest_to_it(self):
        cpu = percent("program CPU", 100, 100, 100, 350, 350, 350, 350, 350, 100, 100)
        steps = [(6 + 0.01 * number, 0.01) for number in range(8)]
        assert found_codes(recorded(cpu, steps=steps)) == []
        assert ANALYSIS.run(recorded(cpu, steps=steps)).load.samples == 5

    def test_samples_far_from_the_steps_say_nothing_of_them(self):
        cpu = percent("program CPU", *[100] * 10)
        view = recorded(cpu, steps=[(20 + number, 1) for number in range(10)])
        assert (found_codes(view), ANALYSIS.run(view).load.busy_cores) == ([], None)

    @pytest.mark.parametrize(("machine_busy", "codes"), [(699, ["TV601"]), (700, [])])
    def test_cores_that_other_programs_use_are_not_idle(self, machine_busy, codes):
        cpu, everybody = percent("program CPU", *[100] * 10), percent("machine CPU", *[machine_busy] * 10)
        assert found_codes(recorded(cpu, everybody, steps=TEN_STEPS)) == codes

    def test_half_of_the_time_is_at_stake_where_one_core_more_is_idle(self):
        cpu, everybody = percent("program CPU", *[100] * 10), percent("machine CPU", *[650] * 10)
        (found,) = findings(recorded(cpu, everybody, steps=TEN_STEPS))
        assert (found.cost_ns, evidence(found)["idle_cores"]) == (6_000_000_000, 1.5)

    def test_on_one_core_nothing_is_idle(self):
        one = {"machine.cores": "1", "machine.physical_cores": "1"}
        assert found_codes(recorded(percent("program CPU", *[20] * 10), steps=TEN_STEPS, settings=one)) == []

    def test_a_machine_that_is_not_known_gives_rise_to_nothing(self):
        assert findings(trace(samples=percent("program CPU", *[100] * 10))) == ()


class TestOversubscription:
    def queued(self, runnable, queued, **more):
        return recorded(
            percent("program CPU", *[800] * 10),
            series("program runnable threads", [runnable] * 10),
            percent("program waits for a core", *[queued] * 10),
            series("machine runnable threads", [runnable + 3] * 10),
            steps=TEN_STEPS,
            **more,
        )

    @pytest.mark.parametrize(("runnable", "codes"), [(15.9, []), (16, ["TV603"])])
    def test_begins_with_two_threads_for_each_core(self, runnable, codes):
        assert found_codes(self.queued(runnable, 800)) == codes

    @pytest.mark.parametrize(("queued", "codes"), [(319, []), (320, ["TV603"])])
    def test_needs_threads_that_wait_a_fifth_of_their_time(self, queued, codes):
        assert found_codes(self.queued(16, queued)) == codes

    @pytest.mark.parametrize(("others", "codes"), [(14, ["TV603"]), (13.9, [])])
    def test_by_other_programs_is_told(self, others, codes):
        view = recorded(
            percent("program CPU", *[100] * 10),
            percent("machine CPU", *[800] * 10),
            series("program runnable threads", [2] * 10),
            series("machine runnable threads", [2 + others] * 10),
            percent("program waits for a core", *[100] * 10),
            steps=TEN_STEPS,
        )
        assert found_codes(view) == codes
        assert all("16 threads of this and other programs" in found.message for found in findings(view))

    @pytest.mark.parametrize(("queued", "codes"), [(19, []), (20, ["TV603"])])
    def test_of_the_machine_is_none_of_a_program_of_which_hardly_a_thread_waits(self, queued, codes):
        view = recorded(
            percent("program CPU", *[5] * 10),
            series("program runnable threads", [0.05 + queued / 100] * 10),
            series("machine runnable threads", [20] * 10),
            percent("program waits for a core", *[queued] * 10),
        )
        assert found_codes(view) == codes

    def test_threads_of_others_are_counted_in_the_time_of_which_the_program_was_asked(self):
        """The program is asked every four seconds: 16 threads in the last two of them are 8 on average."""
        view = recorded(
            series("program runnable threads", [0, 8, 0, 0, 0, 0, 8], every_ns=4 * SECOND),
            series("machine runnable threads", [*[3] * 26, 19, 19]),
            steps=[(10 + number * 1.8, 1.8) for number in range(10)],
        )
        assert ANALYSIS.run(view).load.others_runnable == pytest.approx(3.0)

    def test_costs_half_of_the_host_time_where_threads_wait_half_of_theirs(self):
        (found,) = findings(self.queued(16, 800))
        assert (found.cost_ns, evidence(found)["waiting_share"], evidence(found)["others_runnable"]) == (
            5_000_000_000,
            0.5,
            3.0,
        )


class TestSettings:
    def told(self, busy=790, **settings):
        named = {key.replace("__", "."): value for key, value in settings.items()}
        return recorded(percent("program CPU", *[busy] * 10), steps=TEN_STEPS, settings=named)

    @pytest.mark.parametrize(
        ("key", "value", "codes"),
        [
            ("env__OMP_NUM_THREADS", "9", ["TV604"]),
            ("env__OMP_NUM_THREADS", "8", []),
            ("env__OMP_NUM_THREADS", "16,2", ["TV604"]),
            ("env__OMP_NUM_THREADS", "0", []),
            ("env__TF_NUM_INTRAOP_THREADS", "32", ["TV604"]),
            ("env__TF_NUM_INTEROP_THREADS", "32", ["TV604"]),
            ("collector__torch__threads__intra_op", "12", ["TV604"]),
            ("collector__torch__threads__inter_op", "12", []),
            ("collector__tensorflow__threads__intra_op", "12", ["TV604"]),
            ("collector__tensorflow__threads__inter_op", "12", ["TV604"]),
            ("collector__tensorflow__threads__inter_op", "0", []),
            ("env__OMP_PLACES", "64", []),
            ("env__TF_ENABLE_ONEDNN_OPTS", "0", ["TV604"]),
            ("env__TF_ENABLE_ONEDNN_OPTS", "1", []),
        ],
    )
    def test_settings_against_eight_cores(self, key, value, codes):
        assert found_codes(self.told(**{key: value})) == codes

    def test_one_thread_where_the_host_computes_the_steps_is_too_few(self):
        found = {f.code: f for f in findings(self.told(busy=100, env__OMP_NUM_THREADS="1"))}
        assert set(found) == {"TV601", "TV604"}
        assert found["TV604"].message == "OMP_NUM_THREADS is 1 on 4 cores, and the host limits the steps."

    def test_a_framework_is_named_with_its_12_threads(self):
        (found,) = findings(self.told(collector__torch__threads__intra_op="12"))
        assert found.message == "PyTorch's intra-op thread number is 12, and the program may use 8 cores."

    def test_16_threads_that_want_the_cores_are_too_many_though_others_use_them(self):
        view = recorded(
            percent("program CPU", *[100] * 10),
            series("program runnable threads", [12] * 10),
            settings={"env.OMP_NUM_THREADS": "16"},
            steps=TEN_STEPS,
        )
        assert "TV604" in found_codes(view)

    def test_one_thread_is_enough_where_the_steps_wait_for_input_in_81_percent(self):
        waits = [(number * SECOND, int(0.81 * SECOND), "DataLoader.__next__", "input") for number in range(10)]
        settings = {"env.OMP_NUM_THREADS": "1"}
        view = recorded(percent("program CPU", *[100] * 10), settings=settings, steps=TEN_STEPS, host_ops=waits)
        assert found_codes(view) == ["TV601"]

    def test_one_thread_is_enough_where_other_programs_use_the_7_other_cores(self):
        cpu, everybody = percent("program CPU", *[100] * 10), percent("machine CPU", *[800] * 10)
        assert found_codes(recorded(cpu, everybody, settings={"env.OMP_NUM_THREADS": "1"}, steps=TEN_STEPS)) == []

    def test_more_threads_than_cores_are_fine_while_they_rest(self):
        assert "TV604" not in found_codes(self.told(busy=100, env__OMP_NUM_THREADS="64"))

    @pytest.mark.parametrize(("value", "codes"), [("200", ["TV604"]), ("infinite", ["TV604"]), ("1", []), ("0", [])])
    def test_threads_that_spin_while_the_input_waits(self, value, codes):
        waits = [(number * SECOND, SECOND // 2, "DataLoader.__next__", "input") for number in range(10)]
        view = recorded(
            percent("program CPU", *[790] * 10),
            steps=TEN_STEPS,
            settings={"env.KMP_BLOCKTIME": value},
            host_ops=waits,
        )
        assert found_codes(view) == codes

    @pytest.mark.parametrize(("throttled", "codes"), [(9, []), (10, ["TV604"])])
    def test_a_limit_that_holds_threads_back(self, throttled, codes):
        view = recorded(
            percent("program CPU", *[200] * 10),
            percent("CPU limit throttles", *[throttled] * 10),
            settings={"machine.cpu_limit": "2"},
            steps=TEN_STEPS,
        )
        assert found_codes(view) == codes


class TestGrowth:
    def grows(self, mib, **more):
        return recorded(series("program memory", [m * MIB for m in mib], "bytes"), **more)

    def test_of_8_mebibytes_with_every_step_is_found(self):
        (found,) = findings(self.grows([500 + 8 * number for number in range(100)], span_ns=100 * SECOND))
        assert (found.code, found.cost_ns) == ("TV605", 0)
        # A quarter is left out: 25.75 s to 100 s, whose first tenth begins with the sample of 26 s, the last of 93 s.
        assert evidence(found)["growth_bytes"] == 67 * 8 * MIB
        assert evidence(found)["growth_rate"] == pytest.approx(67 * 8 * MIB / (0.9 * 74.25))

    def test_with_steps_is_told_per_step(self):
        memory = [500 + 8 * number for number in range(1, 101)]
        steps = [(number, 1) for number in range(100)]
        found = {f.code: f for f in findings(self.grows(memory, steps=steps))}["TV605"]
        assert evidence(found)["growth_per_step"] == pytest.approx(8 * MIB, rel=0.02)
        assert "8.30 MB with every step" in found.message

    def test_is_found_though_the_program_returned_its_memory_in_the_last_5_seconds(self):
        memory = [*(500 + 8 * number for number in range(95)), *[400, 300, 200, 100, 5]]
        (found,) = findings(self.grows(memory, span_ns=100 * SECOND))
        assert (found.code, evidence(found)["memory_bytes"] > 1100 * MIB) == ("TV605", True)

    def test_that_ends_in_the_first_half_is_none(self):
        assert findings(self.grows([*range(500, 1000, 10), *[1000] * 50], span_ns=100 * SECOND)) == ()

    @pytest.mark.parametrize(("step", "codes"), [(0.95, []), (0.96, ["TV605"])])
    def test_by_less_than_64_mebibytes_is_none(self, step, codes):
        memory = [500 + step * number for number in range(100)]
        assert found_codes(self.grows(memory, span_ns=100 * SECOND)) == codes

    @pytest.mark.parametrize(("seconds", "codes"), [(19.9, []), (20, ["TV605"])])
    def test_is_judged_on_10_seconds_after_the_first_10(self, seconds, codes):
        samples = round(10 * seconds) + 1
        memory = series("program memory", [(500 + number) * MIB for number in range(samples)], "bytes", SECOND // 10)
        assert found_codes(recorded(memory)) == codes

    def test_that_a_step_returns_is_none(self):
        assert findings(self.grows([500 + 300 * (number % 5) for number in range(100)], span_ns=100 * SECOND)) == ()

    def test_by_processes_that_were_started_is_none(self):
        memory = series("program memory", [(500 + 8 * number) * MIB for number in range(100)], "bytes")
        processes = series("program processes", [1 + number // 20 for number in range(100)])
        assert findings(recorded(memory, processes, span_ns=100 * SECOND)) == ()


class TestReport:
    def test_a_trace_without_samples_of_the_host_is_skipped_with_the_reason(self):
        view = trace(samples=[(0, "SMs Active", 5.0), (1, "SM clock", 9.0)])
        assert ANALYSIS.run(view) == Skipped("host", "no resources of the host were sampled")

    def test_only_a_recorded_run_is_expected_to_have_them(self):
        expected = [ANALYSIS.is_expected(trace(run={"format": name})) for name in ("run", "resources", "nsys")]
        assert expected == [True, True, False]

    def test_one_busy_core_takes_the_place_of_idle_cores(self):
        view = tables(
            samples=percent("program CPU", *[100] * 10),
            settings=list(EIGHT.items()),
            steps=[(number * SECOND, SECOND, number) for number in range(10)],
        )
        assert [found.code for found in analyze(view).findings if found.code in CODES] == ["TV601"]

    def test_a_healthy_host_is_silent(self):
        view = recorded(
            percent("program CPU", *[390] * 10),
            series("program memory", [2 << 30] * 10, "bytes"),
            series("program runnable threads", [4] * 10),
            percent("program waits for a core", *[5] * 10),
            settings={"env.OMP_NUM_THREADS": "4", "env.KMP_BLOCKTIME": "1"},
            steps=TEN_STEPS,
        )
        assert findings(view) == ()
