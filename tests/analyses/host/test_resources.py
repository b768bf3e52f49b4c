"""The host: figures and pictures of samples, and which findings follow from them in a report."""

import pytest

from tests.analyses.builders import tables, trace
from tests.analyses.host_literals import ANALYSIS, EIGHT, SECOND, TEN_STEPS, facts, findings, percent, recorded, series
from traceviz.analyses.host.findings import CODES
from traceviz.analyses.host.resources import format_amount
from traceviz.analyses.host.samples import all_series, judged_window, machine, mean_of_slices
from traceviz.analyses.registry import entries
from traceviz.analyses.run import analyze
from traceviz.report import Bars, Facts, Grid, Skipped, Timeline


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
            settings={"resources.cost": "0.004", "resources.start_ns": "200000000", "machine.cpu_limit": "4"},
        )
        known = facts(view)
        assert (known["cpu_mean"], known["busy_cores"], known["cores"]) == (0.5, 2.0, 4.0)
        assert (known["rss_max"], known["threads_max"], known["sampler_cost"]) == (3000, 9, 0.004)
        assert known["sampler_start_ns"] == 200_000_000
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
        assert timeline.title.startswith("Over the run; full height is the amount on the right")

    def test_pictures_of_a_run_tell_which_2_seconds_of_it_were_profiled(self):
        view = recorded(percent("program CPU", *[100] * 10), span_ns=2 * SECOND)
        (timeline,) = (b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Timeline))
        assert (timeline.start_ns, timeline.end_ns) == (0, 10 * SECOND)
        assert timeline.title == (
            "Over the run, of which profilers recorded 0 s to 2.00 s; full height is the amount on the right, · is "
            "where nothing was sampled"
        )

    def test_pictures_without_a_gap_speak_of_none(self):
        view = recorded(percent("program CPU", *[100] * 10), span_ns=10 * SECOND)
        every = series("program threads", [7] * 10)
        full = trace(samples=[(start - SECOND, *rest) for start, *rest in every], span_ns=9 * SECOND)
        titles = [
            b.title for v in (view, full) for b in ANALYSIS.describe(ANALYSIS.run(v)).blocks if isinstance(b, Timeline)
        ]
        assert ["·" in title for title in titles] == [True, False]
        assert len(titles) == 2

    def test_people_read_amounts_with_their_units_and_programs_get_numbers(self):
        view = recorded(series("program memory", [2_000_000, 4_000_000], "bytes"))
        grids = [b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Grid)]
        assert grids[0].rows == (("program memory", "", "bytes", 3e6, 3.9e6, 4e6),)
        assert grids[1].rows == (("memory", "3.00 MB", "3.90 MB", "4.00 MB"),)

    def test_samples_are_moments_however_many_metrics_were_measured_at_each(self):
        gpu = series("GPU utilisation", [5] * 9, "%", device_id=0)
        view = recorded(percent("program CPU", 1, 2), percent("core 0", 1, 2, 3), percent("SM Active", *[1] * 8), gpu)
        assert facts(view)["samples"] == 3

    def test_a_pause_of_5_seconds_between_samples_is_told_beside_the_mean(self):
        cpu = percent("program CPU", 1, 1, 1)
        known = facts(recorded([cpu[0], cpu[1], (7 * SECOND, *cpu[2][1:])]))
        assert (known["sample_interval_ns"], known["longest_interval_ns"]) == (3 * SECOND, 5 * SECOND)
        assert facts(recorded(percent("program CPU", 1)))["longest_interval_ns"] is None

    def test_people_read_percent_of_a_core_as_2_cores_and_of_a_thread_as_11_threads(self):
        view = recorded(percent("program CPU", 199), percent("program waits for a core", 1126.1))
        assert all(label.endswith("whole run") for label in self.labels(view, "busy_cores", "Metrics"))
        grids = [b for b in ANALYSIS.describe(ANALYSIS.run(view)).blocks if isinstance(b, Grid)]
        assert [row[:2] for row in grids[1].rows] == [
            ("CPU, program", "1.99 cores"),
            ("threads that wait for a core", "11.3 threads"),
        ]

    def labels(self, view, *wanted):
        blocks = ANALYSIS.describe(ANALYSIS.run(view)).blocks
        labels = [fact.label for b in blocks if isinstance(b, Facts) for fact in b.facts if fact.key in wanted]
        titles = [b.title for b in blocks if isinstance(b, Grid) and b.audience == "all" and b.title.startswith(wanted)]
        assert len(labels + titles) == len(wanted)
        return labels + titles

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
            (2.5e9, "bytes", "2.50 GB"),
            (90.0, "%", "90.0 %"),
            (1500.4, "MHz", "1,500 MHz"),
            (3.0, "count", "3"),
            (1082.3, "1/s", "1,082/s"),
        ],
    )
    def test_an_amount_has_its_unit(self, value, unit, text):
        assert format_amount(value, unit) == text

    @pytest.mark.parametrize(
        ("value", "text"), [(100.0, "1 core"), (125.0, "1.25 cores"), (0.0, "0 cores"), (104.6, "1.05 cores")]
    )
    def test_percent_of_a_core_are_hundredths_of_it(self, value, text):
        assert format_amount(value, "%", "core") == text


class TestPictures:
    def series_of(self, *pairs):
        times, values = zip(*pairs, strict=True)
        view = trace(samples=[(t, "program CPU", float(v), {"device_id": None}) for t, v in zip(times, values)])  # noqa: B905
        (series,) = all_series(view)
        return series

    def test_a_slice_has_the_mean_of_its_samples(self):
        assert mean_of_slices(self.series_of((1, 10), (2, 20), (7, 40)), 10, 2) == (15.0, 40.0)

    def test_a_slice_between_two_samples_has_the_later_one(self):
        assert mean_of_slices(self.series_of((0, 1), (4, 2), (8, 3)), 10, 5) == (1.0, 2.0, 2.0, 3.0, 3.0)

    def test_a_pause_of_the_sampler_stays_empty(self):
        values = mean_of_slices(self.series_of(*((t, 5) for t in (0, 1, 2, 3, 4, 96, 97, 98, 99))), 100, 10)
        assert values == (5.0, *[None] * 8, 5.0)

    def test_an_empty_capture_has_no_slice(self):
        assert mean_of_slices(self.series_of((0, 1)), 0, 3) == (None, None, None)


class TestMachine:
    def test_what_may_be_used_is_the_least_of_affinity_limit_and_cores(self):
        view = recorded(settings={"machine.usable_cores": "6", "machine.cpu_limit": "2.5"})
        host = machine(view)
        assert (host.cores, host.usable, host.physical, host.full_speed) == (8, 2.5, 4, 2.5)

    def test_strange_settings_are_not_known(self):
        view = trace(samples=[], settings=[("machine.cores", "many"), ("machine.memory_bytes", "nan")])
        assert (machine(view).usable, machine(view).memory_bytes) == (None, None)

    def test_judged_is_from_the_first_to_the_last_steady_step(self):
        view = recorded(steps=[(number, 1) for number in range(2, 12)], span_ns=20 * SECOND)
        assert judged_window(view) == (2 * SECOND, 12 * SECOND)
        assert judged_window(trace(span_ns=7)) == (0, 7)


class TestReport:
    def test_a_trace_without_samples_of_the_host_is_skipped_with_the_reason(self):
        view = trace(samples=[(0, "SMs Active", 5.0), (1, "SM clock", 9.0)])
        assert ANALYSIS.run(view) == Skipped("host", "no resources of the host were sampled")

    def test_only_a_recorded_run_is_expected_to_have_them(self):
        (entry,) = entries(["host"])
        expected = [entry.is_expected({"format": name}) for name in ("run", "resources", "nsys")]
        assert expected == [True, True, False]

    def test_one_busy_core_takes_the_place_of_idle_cores(self):
        view = tables(
            samples=percent("program CPU", *[100] * 10),
            settings=list(EIGHT.items()),
            steps=[(number * SECOND, SECOND, number) for number in range(10)],
        )
        assert [finding.code for finding in analyze(view).findings if finding.code in CODES] == ["TV601"]

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
