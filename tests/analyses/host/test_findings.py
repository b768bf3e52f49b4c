"""Findings about the host: few busy cores, oversubscription, settings of threads, growing memory."""

from dataclasses import replace

import pytest

from tests.analyses.builders import tables, trace
from tests.analyses.host_literals import (
    ANALYSIS,
    EIGHT,
    SECOND,
    TEN_STEPS,
    evidence,
    finding_codes,
    findings,
    percent,
    recorded,
    series,
)
from traceviz.analyses.host.findings import host_findings
from traceviz.analyses.host.resources import HostResourcesAnalysis
from traceviz.analyses.host.samples import Machine
from traceviz.analyses.run import analyze
from traceviz.report import Severity

MIB = 1 << 20


class TestFewCores:
    def test_one_core_of_four_costs_three_quarters_of_the_host_compute(self):
        (finding,) = findings(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS))
        assert (finding.code, finding.cost_ns, finding.severity) == ("TV601", 7_500_000_000, Severity.ERROR)
        assert evidence(finding)["busy_cores"] == 1.0
        assert finding.message == ("The host computes the steps, and the program keeps about one core of 4 busy.")
        assert not any("num_workers" in advice for advice in finding.advice)

    @pytest.mark.parametrize(
        ("busy", "codes"),
        [(79, ["TV602"]), (80, ["TV601"]), (130, ["TV601"]), (131, ["TV602"]), (299, ["TV602"]), (300, [])],
    )
    def test_thresholds_of_busy_cores(self, busy, codes):
        assert finding_codes(recorded(percent("program CPU", *[busy] * 10), steps=TEN_STEPS)) == codes

    def test_less_than_a_core_waits_for_something_else_than_the_cpu(self):
        (finding,) = findings(recorded(percent("program CPU", *[20] * 10), steps=TEN_STEPS))
        assert "does not wait for the CPU" in finding.message

    def test_with_a_device_the_time_is_counted_by_other_findings(self):
        kernels = [(number * SECOND, SECOND // 2, "gemm") for number in range(10)]
        (finding,) = findings(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS, kernels=kernels))
        assert (finding.code, finding.cost_ns, evidence(finding)["host_share"]) == ("TV601", 0, 0.5)
        assert finding.message.startswith("Steps wait for the host in 50.0 % of their time, and")

    def test_steps_that_wait_for_input_are_told_to_prepare_it_on_other_cores(self):
        waits = [(number * SECOND, SECOND // 20, "DataLoader.__next__", "input") for number in range(10)]
        (finding,) = findings(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS, host_ops=waits))
        assert "num_workers" in finding.advice[0]
        assert evidence(finding)["input_share"] == 0.05

    @pytest.mark.parametrize(
        ("share", "begins", "advice"),
        [
            (0.51, "Steps wait for input in 51.0 % of their time, and", "More workers for the input"),
            (0.5, "The host computes the steps, and", "More workers for the input"),
            (0.0, "The host computes the steps, and", "The host computes the steps: as many threads"),
        ],
    )
    def test_of_input_and_host_compute_the_larger_is_what_the_steps_wait_for(self, share, begins, advice):
        waits = [(number * SECOND, int(share * SECOND), "DataLoader.__next__", "input") for number in range(10)]
        cpu = percent("program CPU", *[30] * 10)
        (finding,) = findings(recorded(cpu, steps=TEN_STEPS, host_ops=waits if share else []))
        assert finding.message.startswith(begins)
        assert finding.advice[0].startswith(advice)
        assert (len(finding.advice) == 1) == (share > 0.5)

    def test_a_busy_device_makes_idle_cores_fine(self):
        kernels = [(number * SECOND, int(0.81 * SECOND), "gemm") for number in range(10)]
        assert finding_codes(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS, kernels=kernels)) == []

    @pytest.mark.parametrize(("utilisation", "codes"), [(49, ["TV601"]), (50, []), (0, [])])
    def test_without_steps_a_gpu_that_is_used_must_idle(self, utilisation, codes):
        gpu = series("GPU utilisation", [utilisation] * 10, "%", device_id=0)
        assert finding_codes(recorded(percent("program CPU", *[100] * 10), gpu)) == codes

    def test_only_samples_of_the_steps_count(self):
        cpu = percent("program CPU", *[100] * 20, *[400] * 10)
        steps = [(number, 1) for number in range(20, 30)]
        assert finding_codes(recorded(cpu, steps=steps)) == []

    def test_a_profile_of_80_ms_is_judged_by_the_5_samples_nearest_to_it(self):
        cpu = percent("program CPU", 100, 100, 100, 350, 350, 350, 350, 350, 100, 100)
        steps = [(6 + 0.01 * number, 0.01) for number in range(8)]
        assert finding_codes(recorded(cpu, steps=steps)) == []
        assert ANALYSIS.run(recorded(cpu, steps=steps)).load.samples == 5

    def test_samples_far_from_the_steps_say_nothing_of_them(self):
        cpu = percent("program CPU", *[100] * 10)
        view = recorded(cpu, steps=[(20 + number, 1) for number in range(10)])
        assert (finding_codes(view), ANALYSIS.run(view).load.busy_cores) == ([], None)

    @pytest.mark.parametrize(("machine_busy", "codes"), [(699, ["TV601"]), (700, [])])
    def test_cores_that_other_programs_use_are_not_idle(self, machine_busy, codes):
        cpu, everybody = percent("program CPU", *[100] * 10), percent("machine CPU", *[machine_busy] * 10)
        assert finding_codes(recorded(cpu, everybody, steps=TEN_STEPS)) == codes

    def test_half_of_the_time_is_at_stake_where_one_core_more_is_idle(self):
        cpu, everybody = percent("program CPU", *[100] * 10), percent("machine CPU", *[650] * 10)
        (finding,) = findings(recorded(cpu, everybody, steps=TEN_STEPS))
        assert (finding.cost_ns, evidence(finding)["idle_cores"]) == (6_000_000_000, 1.5)

    def test_on_one_core_nothing_is_idle(self):
        single = {"machine.cores": "1", "machine.physical_cores": "1"}
        assert finding_codes(recorded(percent("program CPU", *[20] * 10), steps=TEN_STEPS, settings=single)) == []

    def test_a_machine_that_is_not_known_gives_rise_to_nothing(self):
        assert findings(trace(samples=percent("program CPU", *[100] * 10))) == ()


class TestOversubscription:
    def queued(self, runnable, queued, others=0, steps=TEN_STEPS, **more):
        return recorded(
            percent("program CPU", *[800] * 10),
            series("program runnable threads", [runnable] * 10),
            percent("program waits for a core", *[queued] * 10),
            series("machine runnable threads", [runnable + others] * 10),
            steps=steps,
            **more,
        )

    @pytest.mark.parametrize(("runnable", "codes"), [(15.9, []), (16, ["TV603"])])
    def test_begins_with_two_threads_for_each_core(self, runnable, codes):
        assert finding_codes(self.queued(runnable, 800)) == codes

    @pytest.mark.parametrize(("queued", "codes"), [(319, []), (320, ["TV603"])])
    def test_needs_threads_that_wait_a_fifth_of_their_time(self, queued, codes):
        assert finding_codes(self.queued(16, queued)) == codes

    @pytest.mark.parametrize("others", [1, 14, 77])
    def test_is_none_of_a_program_whose_two_threads_wait_for_those_of_others(self, others):
        view = recorded(
            percent("program CPU", *[100] * 10),
            series("program runnable threads", [2] * 10),
            series("machine runnable threads", [2 + others] * 10),
            percent("program waits for a core", *[180] * 10),
            steps=TEN_STEPS,
        )
        assert "TV603" not in finding_codes(view)

    def test_is_none_of_20_threads_that_would_rest_if_others_left_them_the_cores(self):
        """Of 19 threads that wait, a fifth waits for the program's own: it wants 1 + 19 / 5 of 8 cores."""
        view = self.queued(20, 1900, others=80)
        assert ANALYSIS.run(view).load.wanted == pytest.approx(4.8)
        assert "TV603" not in finding_codes(view)

    def test_of_40_threads_is_found_beside_two_busy_loops_of_others(self):
        (finding,) = findings(self.queued(40, 3200, others=2))
        assert (finding.code, evidence(finding)["runnable"]) == ("TV603", pytest.approx(40 - 32 * 2 / 42))

    def test_threads_of_others_on_56_other_cores_of_the_machine_wait_for_nobody(self):
        eight_of_64 = {"machine.cores": "64", "machine.usable_cores": "8"}
        view = self.queued(16, 800, others=40, settings=eight_of_64)
        assert ANALYSIS.run(view).load.wanted == 16

    def test_that_was_counted_at_moments_leaves_out_what_others_may_have_caused(self):
        """Without queues: of 8 cores, 16 threads get 8 * 16 / 32, others have 16, and half of the other 12 wait."""
        view = recorded(
            series("program runnable threads", [16] * 10),
            series("machine runnable threads", [32] * 10),
            steps=TEN_STEPS,
        )
        assert ANALYSIS.run(view).load.wanted == pytest.approx(16 - 12 / 2)

    @pytest.mark.parametrize(("seconds", "codes"), [(9.5, []), (10, ["TV603"])])
    def test_needs_ten_samples_in_the_steady_steps(self, seconds, codes):
        steps = [(number * seconds / 10, seconds / 10) for number in range(10)]
        assert finding_codes(self.queued(16, 800, steps=steps)) == codes

    def test_of_a_run_without_steps_is_not_judged(self):
        assert findings(self.queued(160, 8000, steps=())) == ()

    @pytest.mark.parametrize(("queued", "codes"), [(19, []), (20, ["TV603"])])
    def test_needs_a_fifth_of_a_core_that_is_waited_for(self, queued, codes):
        limits = HostResourcesAnalysis(oversubscribed=0.0, waiting_share=0.0)
        result = limits.run(self.queued(0.05 + queued / 100, queued))
        assert [f.code for f in host_findings(replace(result.load, machine=Machine(usable=0.1)), limits)] == codes

    def test_threads_of_others_are_counted_in_the_time_of_which_the_program_was_asked(self):
        """The program is sampled every four seconds: 16 threads in the last two of them are 8 on average."""
        view = recorded(
            series("program runnable threads", [0, 8, 0, 0, 0, 0, 8], every_ns=4 * SECOND),
            series("machine runnable threads", [*[3] * 26, 19, 19]),
            steps=[(10 + number * 1.8, 1.8) for number in range(10)],
        )
        assert ANALYSIS.run(view).load.others_runnable == pytest.approx(3.0)

    def test_says_of_which_time_its_mean_of_16_threads_is(self):
        (finding,) = findings(self.queued(16, 800))
        assert finding.message == (
            "In the steady steps, 16 threads of the program want one of 8 cores on average: they wait for each other "
            "in 50.0 % of the time in which they could run."
        )
        assert finding.evidence[0].label == "threads that want a core, steady steps"

    def test_costs_half_of_the_host_time_where_threads_wait_half_of_theirs(self):
        (finding,) = findings(self.queued(16, 900))
        assert (finding.cost_ns, evidence(finding)["waiting_share"], evidence(finding)["samples"]) == (
            5_000_000_000,
            0.5,
            10,
        )


class TestBusyMachine:
    def beside(self, used, waits, samples=10, **more):
        return recorded(
            percent("program CPU", *[100] * samples),
            percent("profiler CPU", *[10] * samples),
            percent("machine CPU", *[110 + used] * samples),
            series("program runnable threads", [1 + waits] * samples),
            series("machine runnable threads", [11 + waits] * samples),
            percent("program waits for a core", *[100 * waits] * samples),
            **more,
        )

    def notes(self, view):
        return ANALYSIS.notes(ANALYSIS.run(view))

    def test_is_a_note_and_no_finding(self):
        view = self.beside(690, 1, steps=TEN_STEPS)
        (note,) = self.notes(view)
        assert (note.code, note.severity) == ("busy-machine", Severity.WARNING)
        assert note.message == (
            "Other programs used 6.9 of 8 cores in the steady steps (10 of their threads wanted one): times of the "
            "host are inflated; the program waited for a core in 50.0 % of the time in which it could run."
        )
        assert finding_codes(view) == []

    @pytest.mark.parametrize(("used", "notes"), [(159, 0), (160, 1)])
    def test_begins_with_a_fifth_of_the_cores(self, used, notes):
        assert len(self.notes(self.beside(used, 1, steps=TEN_STEPS))) == notes

    @pytest.mark.parametrize(("waits", "notes"), [(0.1, 0), (0.12, 1)])
    def test_needs_a_program_that_waits_for_a_tenth_of_its_time(self, waits, notes):
        assert len(self.notes(self.beside(600, waits, steps=TEN_STEPS))) == notes

    def test_is_told_of_the_whole_run_where_fewer_than_ten_samples_lie_in_the_steps(self):
        (note,) = self.notes(self.beside(690, 1, samples=30, steps=[(3, 1), (4, 1), (5, 1)]))
        assert "6.9 of 8 cores in the whole run" in note.message

    def test_of_a_machine_that_was_not_sampled_is_not_known(self):
        assert self.notes(recorded(percent("program CPU", *[100] * 10), steps=TEN_STEPS)) == ()

    def test_reaches_the_report_before_what_the_reader_noted(self):
        report = analyze(self.beside(690, 1, steps=TEN_STEPS).tables)
        assert [note.code for note in report.notes] == ["busy-machine"]
        assert not any(finding.code == "TV603" for finding in report.findings)


class TestSettings:
    def with_settings(self, busy=790, **settings):
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
        assert finding_codes(self.with_settings(**{key: value})) == codes

    def test_one_thread_where_the_host_computes_the_steps_is_too_few(self):
        findings_by_code = {f.code: f for f in findings(self.with_settings(busy=100, env__OMP_NUM_THREADS="1"))}
        assert set(findings_by_code) == {"TV601", "TV604"}
        assert findings_by_code["TV604"].message == "OMP_NUM_THREADS is 1 on 4 cores, and the host limits the steps."

    def test_a_framework_is_named_with_its_12_threads(self):
        (finding,) = findings(self.with_settings(collector__torch__threads__intra_op="12"))
        assert finding.message == "PyTorch's intra-op thread number is 12, and the program may use 8 cores."

    def test_the_same_number_of_a_collector_without_a_framework_is_stated_once(self):
        stated = {f"collector__{name}__threads__intra_op": "12" for name in ("nvtx", "torch")}
        (finding,) = findings(self.with_settings(**stated))
        assert finding.message == "PyTorch's intra-op thread number is 12, and the program may use 8 cores."

    def test_16_threads_that_want_the_cores_are_too_many_though_others_use_them(self):
        view = recorded(
            percent("program CPU", *[100] * 10),
            series("program runnable threads", [12] * 10),
            settings={"env.OMP_NUM_THREADS": "16"},
            steps=TEN_STEPS,
        )
        assert "TV604" in finding_codes(view)

    def test_a_framework_that_is_not_known_is_not_named_after_the_collector(self):
        (finding,) = findings(self.with_settings(collector__nvtx__threads__intra_op="12"))
        assert finding.message.startswith("The framework's intra-op thread number is 12")

    @pytest.mark.parametrize(
        ("settings", "first", "others"),
        [
            ({"collector__torch__threads__intra_op": "12"}, "Throughput: ", 2),
            ({"env__TF_ENABLE_ONEDNN_OPTS": "0"}, "TF_ENABLE_ONEDNN_OPTS=1", 3),
        ],
    )
    def test_advice_on_one_variable_is_given_where_that_does_not_fit(self, settings, first, others):
        (finding,) = findings(self.with_settings(**settings))
        assert finding.advice[0].startswith(first)
        assert len(finding.advice) == 1 + others
        assert not any("KMP_BLOCKTIME" in line for line in finding.advice)

    def test_a_pytorch_program_with_12_threads_is_told_of_torch_only(self):
        settings = {"collector.torch.threads.intra_op": "12"}
        steps = [(number * SECOND, SECOND, number) for number in range(10)]
        view = tables(
            samples=percent("program CPU", *[790] * 10),
            settings=list({**EIGHT, **settings}.items()),
            steps=steps,
            run={"framework": "PyTorch"},
        )
        (finding,) = (finding for finding in analyze(view).findings if finding.code == "TV604")
        assert "torch.set_num_threads" in finding.advice[0]
        assert not any("TensorFlow" in line for line in finding.advice)

    def test_one_thread_is_enough_where_the_steps_wait_for_input_in_81_percent(self):
        waits = [(number * SECOND, int(0.81 * SECOND), "DataLoader.__next__", "input") for number in range(10)]
        settings = {"env.OMP_NUM_THREADS": "1"}
        view = recorded(percent("program CPU", *[100] * 10), settings=settings, steps=TEN_STEPS, host_ops=waits)
        assert finding_codes(view) == ["TV601"]

    def test_one_thread_is_enough_where_other_programs_use_the_7_other_cores(self):
        cpu, everybody = percent("program CPU", *[100] * 10), percent("machine CPU", *[800] * 10)
        assert finding_codes(recorded(cpu, everybody, settings={"env.OMP_NUM_THREADS": "1"}, steps=TEN_STEPS)) == []

    @pytest.mark.parametrize(("threads", "codes"), [(8, ["TV604"]), (7, [])])
    def test_a_setting_of_8_threads_that_nobody_heeds_is_fine(self, threads, codes):
        view = recorded(
            percent("program CPU", *[190] * 10),
            series("program threads", [threads] * 10),
            settings={"env.OMP_NUM_THREADS": "8", "machine.cores": "2", "machine.physical_cores": "2"},
        )
        assert finding_codes(view) == codes

    def test_more_threads_than_cores_are_fine_while_they_rest(self):
        assert "TV604" not in finding_codes(self.with_settings(busy=100, env__OMP_NUM_THREADS="64"))

    @pytest.mark.parametrize(
        ("value", "codes"), [("200", ["TV604"]), ("infinite", ["TV604"]), ("Infinite", ["TV604"]), ("1", []), ("0", [])]
    )
    def test_threads_that_spin_while_the_input_waits(self, value, codes):
        waits = [(number * SECOND, SECOND // 2, "DataLoader.__next__", "input") for number in range(10)]
        view = recorded(
            percent("program CPU", *[790] * 10), steps=TEN_STEPS, settings={"env.KMP_BLOCKTIME": value}, host_ops=waits
        )
        assert finding_codes(view) == codes

    @pytest.mark.parametrize(("throttled", "codes"), [(9, []), (10, ["TV604"])])
    def test_a_limit_that_holds_threads_back(self, throttled, codes):
        view = recorded(
            percent("program CPU", *[200] * 10),
            percent("CPU limit throttles", *[throttled] * 10),
            settings={"machine.cpu_limit": "2"},
            steps=TEN_STEPS,
        )
        assert finding_codes(view) == codes


class TestGrowth:
    def grows(self, mib, **more):
        return recorded(series("program memory", [m * MIB for m in mib], "bytes"), **more)

    def test_of_8_mebibytes_with_every_step_is_found(self):
        (finding,) = findings(self.grows([500 + 8 * number for number in range(100)], span_ns=100 * SECOND))
        assert (finding.code, finding.cost_ns) == ("TV605", 0)
        # A quarter is left out: 25.75 s to 100 s, whose first tenth starts with the sample of 26 s, the last of 93 s.
        assert evidence(finding)["growth_bytes"] == 67 * 8 * MIB
        assert evidence(finding)["growth_rate"] == pytest.approx(67 * 8 * MIB / (0.9 * 74.25))

    def test_with_steps_is_told_per_step(self):
        memory = [500 + 8 * number for number in range(1, 101)]
        steps = [(number, 1) for number in range(100)]
        finding = {f.code: f for f in findings(self.grows(memory, steps=steps))}["TV605"]
        assert evidence(finding)["growth_per_step"] == pytest.approx(8 * MIB, rel=0.02)
        assert "8.30 MB with every step" in finding.message

    def test_is_found_though_the_program_returned_its_memory_in_the_last_5_seconds(self):
        memory = [*(500 + 8 * number for number in range(95)), *[400, 300, 200, 100, 5]]
        (finding,) = findings(self.grows(memory, span_ns=100 * SECOND))
        assert (finding.code, evidence(finding)["memory_bytes"] > 1100 * MIB) == ("TV605", True)

    def test_that_ends_in_the_first_half_is_none(self):
        assert findings(self.grows([*range(500, 1000, 10), *[1000] * 50], span_ns=100 * SECOND)) == ()

    @pytest.mark.parametrize(("early", "middle", "codes"), [(64, 16, ["TV605"]), (68, 12, [])])
    def test_needs_a_third_of_it_from_the_fifth_of_ten_parts_on(self, early, middle, codes):
        # A quarter is left out: parts start at 25.75 s + 7.425 s each, with the samples of 26 s, ..., 56 s (the fifth),
        # 63 s, ... and 93 s. Of 100 rises, ``early`` are before the fifth, ``middle`` in it and 20 after it.
        rises = [0] * 26 + [early / 30] * 30 + [middle / 7] * 7 + [20 / 30] * 38
        memory = [500 + 4 * sum(rises[: second + 1]) for second in range(1, 101)]
        assert finding_codes(self.grows(memory, span_ns=100 * SECOND)) == codes

    @pytest.mark.parametrize(("step", "codes"), [(0.95, []), (0.96, ["TV605"])])
    def test_by_less_than_64_mebibytes_is_none(self, step, codes):
        memory = [500 + step * number for number in range(100)]
        assert finding_codes(self.grows(memory, span_ns=100 * SECOND)) == codes

    @pytest.mark.parametrize(("seconds", "codes"), [(19.9, []), (20, ["TV605"])])
    def test_is_judged_on_10_seconds_after_the_first_10(self, seconds, codes):
        samples = round(10 * seconds) + 1
        memory = series("program memory", [(500 + number) * MIB for number in range(samples)], "bytes", SECOND // 10)
        assert finding_codes(recorded(memory)) == codes

    def test_that_a_step_returns_is_none(self):
        assert findings(self.grows([500 + 300 * (number % 5) for number in range(100)], span_ns=100 * SECOND)) == ()

    def test_by_processes_that_were_started_is_none(self):
        memory = series("program memory", [(500 + 8 * number) * MIB for number in range(100)], "bytes")
        processes = series("program processes", [1 + number // 20 for number in range(100)])
        assert findings(recorded(memory, processes, span_ns=100 * SECOND)) == ()
