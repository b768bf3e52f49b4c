"""Ranks side by side: hand-worked steps, arrivals at collectives, stragglers; healthy jobs stay silent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import collective_skew
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.analyses.ranks.stragglers import find_rounds, step_imbalance
from traceviz.analyses.run import analyze
from traceviz.report import Grid, Prose, Skipped

US = 1_000
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def job(computes, transfer=10, steps=6, clocks=None, **more):
    """Return ranks (by process) that compute for some µs of each step and then reduce together, 200 µs a step.

    ::

        rank 0   |--compute--|--wait--|transfer|
        rank 1   |------compute-------|transfer|      all collectives end with the slowest rank's compute + transfer
    """
    kernels, marks = [], []
    slowest = max(computes)
    for rank, compute in enumerate(computes):
        ahead = (clocks or [0] * len(computes))[rank] * US
        at = {"process_id": rank, "device_id": rank, "thread_id": rank}
        for step in range(steps):
            start = 200 * US * step + ahead
            marks.append((start, 200 * US, step, at))
            kernels.append((start, compute * US, "gemm", {"process_id": rank, "device_id": rank}))
            late = start + compute * US, (slowest - compute + transfer) * US
            kernels.append((*late, NCCL, {"process_id": rank, "device_id": rank}))
    processes = [(rank, "python", {"rank": rank}) for rank in range(len(computes))]
    threads = [(rank, rank, "python") for rank in range(len(computes))]
    parts = {"kernels": kernels, "steps": marks, "processes": processes, "threads": threads}
    return tables(**{**parts, **more})


def unequal(durations, numbers=None):
    """Return ranks whose steps follow each other and take so many µs; no collective holds them together."""
    marks = []
    for rank, own in enumerate(durations):
        start = 0
        for step, duration in enumerate(own):
            number = (numbers or {}).get(rank, range(len(own)))[step]
            marks.append((start, duration * US, number, {"process_id": rank, "thread_id": rank}))
            start += duration * US
    kernels = [(0, 5, "gemm", {"process_id": rank, "device_id": rank}) for rank in range(len(durations))]
    threads = [(rank, rank, "python") for rank in range(len(durations))]
    return tables(kernels=kernels, steps=marks, threads=threads)


def result(trace_tables, **thresholds):
    return RanksAnalysis(**thresholds).run(TraceView(trace_tables))


def raised(trace_tables):
    return {finding.code: finding for finding in RanksAnalysis().judge(result(trace_tables))}


def evidence(finding):
    return {fact.key: fact.value for fact in finding.evidence}


class TestArrivals:
    def test_the_slow_rank_arrives_last_and_the_others_wait_for_it(self):
        outcome = result(job([100, 100, 100, 150]))
        assert [rank.median_skew_ns for rank in outcome.ranks] == [0, 0, 0, 50 * US]
        assert [rank.last for rank in outcome.ranks] == [0, 0, 0, 6]
        assert [rank.wait_ns for rank in outcome.ranks] == [6 * 50 * US] * 3 + [0]
        assert outcome.skew.collectives == 6
        assert set(outcome.skew.arrivals["transfer_ns"]) == {10 * US}

    def test_own_time_is_the_step_without_the_wait(self):
        outcome = result(job([100, 100, 100, 150]))
        assert outcome.own_ns == (150 * US, 150 * US, 150 * US, 200 * US)

    def test_clocks_that_are_apart_by_7_us_change_nothing(self):
        even, skewed = result(job([100, 120])), result(job([100, 120], clocks=[0, 7]))
        assert skewed.skew.clock_ns == {0: 0, 1: 7 * US}
        columns = ("process_id", "skew_ns", "wait_ns", "transfer_ns", "last")
        assert skewed.skew.arrivals.select(columns).equals(even.skew.arrivals.select(columns))

    def test_a_wait_that_compute_hides_costs_nothing(self):
        hidden = [(200 * US * step + 100 * US, 60 * US, "gemm2", {"stream": 8}) for step in range(6)]
        view = job([100, 150])
        rows = view.kernels.collect().to_dicts()
        extra = tables(kernels=hidden).kernels.collect().to_dicts()
        merged = [
            (
                row["start_ns"],
                row["dur_ns"],
                row["name"],
                {key: row[key] for key in ("process_id", "device_id", "stream")},
            )
            for row in (*rows, *extra)
        ]
        assert [rank.wait_ns for rank in result(job([100, 150], kernels=merged)).ranks] == [0, 0]
        assert [rank.wait_ns for rank in result(view).ranks] == [6 * 50 * US, 0]

    def test_described_collectives_are_compared_by_group_and_name(self):
        def of(rank, group, start, end):
            return (
                start * US,
                (end - start) * US,
                "allreduce",
                {"process_id": rank, "device_id": rank, "group": group},
            )

        collectives = [
            *(of(0, "data", 10, 30), of(1, "data", 20, 30), of(0, "model", 40, 50), of(2, "model", 44, 50)),
            *(of(0, "data", 60, 70), of(1, "data", 60, 70)),
        ]
        skew = collective_skew(trace(kernels=[], collectives=collectives), 0.1)
        rows = skew.arrivals.select("group", "index", "process_id", "skew_ns", "wait_ns").rows()
        assert rows == [
            *(("data", 0, 0, 0, 10 * US), ("data", 0, 1, 10 * US, 0), ("data", 1, 0, 0, 0), ("data", 1, 1, 0, 0)),
            *(("model", 0, 0, 0, 4 * US), ("model", 0, 2, 4 * US, 0)),
        ]
        assert skew.collectives == 3

    def test_clocks_are_chained_over_groups_that_share_a_rank(self):
        def of(rank, group, end):
            return ((end - 5) * US, 5 * US, "allgather", {"process_id": rank, "device_id": rank, "group": group})

        collectives = [of(0, "a", 100), of(1, "a", 130), of(1, "b", 230), of(2, "b", 210)]
        assert collective_skew(trace(kernels=[], collectives=collectives), 0.1).clock_ns == {
            0: 0,
            1: 30 * US,
            2: 10 * US,
        }

    @pytest.mark.parametrize("clock", [0, 3])
    def test_a_first_collective_that_one_rank_lacks_shifts_nothing(self, clock):
        # Rank 1, whose clock is 3 µs fast in one case, was recorded from its second collective on.
        calls = [(200 * US * i + 7 * US * i * i, 10 * US, "allreduce", {"group": "0"}) for i in range(5)]
        late = [(start + clock * US, 8 * US, name, {**more, "process_id": 1}) for start, _, name, more in calls[1:]]
        skew = collective_skew(TraceView(tables(collectives=calls + late)), 0.1)
        assert (skew.collectives, skew.unequal, skew.unaligned) == (4, 1, ())
        assert skew.clock_ns == {0: 0, 1: (clock - 2) * US}

    def test_of_unequal_numbers_the_first_ones_are_compared_and_it_is_said(self):
        kernels = [
            (start * US, 5 * US, NCCL, {"process_id": rank, "device_id": rank})
            for rank, count in ((0, 5), (1, 3))
            for start in range(0, 1000 * count, 1000)
        ]
        skew = collective_skew(trace(kernels=kernels), 0.1)
        assert (skew.collectives, skew.unequal) == (3, 1)
        section = RanksAnalysis().describe(result(tables(kernels=kernels)))
        assert any("different numbers" in block.text for block in section.blocks if isinstance(block, Prose))

    @pytest.mark.parametrize("odd", [0, 2])
    def test_a_rank_whose_collectives_do_not_end_with_those_of_others_is_not_compared(self, odd):
        ends = {rank: [9, 27, 31, 48] if rank == odd else [10, 20, 30, 40] for rank in range(3)}
        kernels = [
            (end * 1000 * US - 5, 5, NCCL, {"process_id": rank, "device_id": rank})
            for rank, rank_ends in ends.items()
            for end in rank_ends
        ]
        skew = collective_skew(trace(kernels=kernels), 0.1)
        assert (set(skew.clock_ns), skew.unaligned) == ({0, 1, 2} - {odd}, (odd,))
        assert set(skew.arrivals["process_id"]) == {0, 1, 2} - {odd}

    def test_transfers_between_two_ranks_are_not_compared(self):
        name = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"
        kernels = [(0, 5, name, {"process_id": rank, "device_id": rank}) for rank in (0, 1)]
        skew = collective_skew(trace(kernels=kernels), 0.1)
        assert (skew.collectives, skew.point_to_point) == (0, 2)

    def test_on_the_host_a_wait_counts_while_no_operation_runs(self):
        def of(rank, step, start, end, name, category="op", thread=0):  # noqa: PLR0917
            at = {"process_id": rank, "thread_id": 2 * rank + thread}
            return ((1000 * step + start) * US, (end - start) * US, name, category, at)

        host_ops = []
        for step in range(4):
            for rank, ready in ((0, 300), (1, 700)):
                host_ops += [
                    of(rank, step, 0, 1000, f"ProfilerStep#{step}", "step"),
                    of(rank, step, 10, ready, "aten::mm"),
                    of(rank, step, ready - 100, 720, "gloo:all_reduce", "annotation", 1),
                ]
        steps = [
            (1000 * step * US, 1000 * US, step, {"process_id": rank, "thread_id": 2 * rank})
            for step in range(4)
            for rank in (0, 1)
        ]
        view = tables(host_ops=host_ops, steps=steps)
        outcome = result(view)
        assert [rank.wait_ns for rank in outcome.ranks] == [4 * 300 * US, 0]  # 200 to 600; 200 to 300 computes
        assert outcome.own_ns == (700 * US, 1000 * US)
        assert [rank.classes["communication"] for rank in outcome.ranks] == [4 * 420 * US, 4 * 20 * US]
        assert [sum(rank.classes.values()) for rank in outcome.ranks] == [4000 * US] * 2
        assert evidence(raised(view)["TV503"])["rank"] == 1

    def test_a_group_with_more_ranks_than_members_is_not_compared(self):
        collectives = [
            (0, 5, "allreduce", {"process_id": rank, "device_id": rank, "group": "tp", "group_size": 2})
            for rank in range(4)
        ]
        skew = collective_skew(trace(kernels=[], collectives=collectives), 0.1)
        assert (skew.collectives, skew.ambiguous) == (0, 1)

    @settings(max_examples=20)
    @given(st.lists(st.integers(50, 150), min_size=2, max_size=5), st.integers(0, 50))
    def test_nobody_waits_longer_than_the_slowest_is_late(self, computes, ahead):
        outcome = result(job(computes, clocks=[rank * ahead for rank in range(len(computes))], steps=4))
        for rank, compute in zip(outcome.ranks, computes, strict=True):
            assert rank.wait_ns == 4 * (max(computes) - compute) * US
            assert rank.median_skew_ns == (compute - min(computes)) * US
            assert rank.wait_ns + rank.classes["device_compute"] <= rank.judged_ns


class TestStragglers:
    def test_the_rank_that_waits_least_is_the_straggler_and_its_compute_the_cause(self):
        findings_by_code = raised(job([100, 100, 100, 150]))
        assert set(findings_by_code) == {"TV501", "TV502", "TV503"}
        finding = findings_by_code["TV501"]
        facts = evidence(finding)
        assert (facts["rank"], facts["own_ns"], facts["others_ns"]) == (3, 200 * US, 150 * US)
        assert (facts["cause"], finding.cost_ns, finding.share) == ("device compute", 6 * 50 * US, 0.25)
        assert facts["score"] == round(0.6745 * 50 / 1.5, 1)  # all others are equal: 1 % of the median is normal

    def test_a_report_names_the_straggler_and_not_the_waiting_that_it_causes(self):
        codes = [finding.code for finding in analyze(job([100, 100, 100, 150])).findings]
        assert "TV501" in codes
        assert not {"TV502", "TV503"} & set(codes)

    def test_equal_ranks_raise_nothing(self):
        assert raised(job([100, 101, 100, 99])) == {}

    @pytest.mark.parametrize(("slow", "codes"), [(109, []), (110, ["TV501"])])
    def test_a_score_counts_above_3_5(self, slow, codes):
        # Own times 191, 191, 191, 200: 0.6745 * 9 / 1.91 = 3.2. Own times 190, 190, 190, 200: 0.6745 * 10 / 1.9 = 3.55.
        assert [code for code in raised(job([100, 100, 100, slow])) if code == "TV501"] == codes

    @pytest.mark.parametrize(("share", "codes"), [(0.2, ["TV501"]), (0.21, [])])
    def test_a_straggler_costs_as_much_as_the_others_wait(self, share, codes):
        analysis = RanksAnalysis(straggler_share=share, late_share=1.0, imbalance_share=1.0)
        view = result(job([100, 100, 100, 140]))  # 40 of 200 µs
        assert [finding.code for finding in analysis.judge(view)] == codes

    def test_of_two_ranks_there_is_no_straggler_but_lateness(self):
        found = [finding for finding in analyze(job([100, 150])).findings if finding.code.startswith("TV50")]
        (finding,) = (finding for finding in found if finding.code != "TV507")  # one stream has all of this job's work
        assert (finding.code, evidence(finding)["own_ns"], evidence(finding)["others_ns"]) == (
            "TV503",
            200_000,
            150_000,
        )
        assert (finding.cost_ns, evidence(finding)["rank"], evidence(finding)["last"]) == (3 * 50 * US, 1, 6)
        assert finding.share == 0.125  # 25 % of one rank, mean of two

    @pytest.mark.parametrize(("slow", "codes"), [(119, []), (120, ["TV503"])])
    def test_lateness_counts_from_5_percent_on(self, slow, codes):
        assert [
            code for code in raised(job([100, slow])) if code == "TV503"
        ] == codes  # 20 of 200 µs on one of two ranks: 5 % in the mean

    def test_without_collectives_the_step_itself_is_the_own_time(self):
        view = unequal([[100] * 4, [100] * 4, [130] * 4])
        outcome = result(view)
        assert (outcome.own_ns, outcome.compared) == ((100 * US, 100 * US, 130 * US), False)
        assert "who waits for whom is not known" in str(RanksAnalysis().describe(outcome).blocks)
        assert raised(view)["TV501"].cost_ns == 4 * 30 * US


class TestBlame:
    """Small jobs in which one rank waits for another, and therefore looks slow, or late."""

    SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"

    @staticmethod
    def of_steps(*ranks, dur, steps=5, **more):
        """Return ranks by what they do in each step of ``dur`` µs: start and end in it, and the name of a kernel."""
        kernels, marks = [], []
        for rank, does in enumerate(ranks):
            at, on = {"process_id": rank, "thread_id": rank}, {"process_id": rank, "device_id": rank}
            length = dur[rank] if isinstance(dur, list) else dur
            marks += [(length * US * step, length * US, step, at) for step in range(steps)]
            kernels += [
                ((length * step + start) * US, (end - start) * US, name, on)
                for step in range(steps)
                for start, end, name in does
            ]
        processes = [(rank, "python", {"rank": rank}) for rank in range(len(ranks))]
        threads = [(rank, rank, "python") for rank in range(len(ranks))]
        return tables(kernels=kernels, steps=marks, processes=processes, threads=threads, **more)

    def test_a_step_that_is_long_because_it_waits_for_a_transfer_is_no_ones_fault(self):
        # rank 0 has the longest steps, with a 45 µs wait for data; rank 2 computes longest
        view = self.of_steps(
            [(0, 85, "gemm"), (85, 130, self.SEND)], [(0, 100, "gemm")], [(0, 110, "gemm")], dur=[130, 100, 110]
        )
        finding = raised(view)["TV502"]
        assert (evidence(finding)["rank"], evidence(finding)["slowest_factor"]) == (2, pytest.approx(1.1))
        assert evidence(finding)["cause"] == "device compute"
        assert "Rank 2 needs 110 µs per step for its own work (median), 10.0 % more" in finding.message

    @pytest.mark.parametrize("wait", ["transfer", "gloo", "MPI"])
    def test_who_waits_where_nothing_can_be_compared_is_no_straggler(self, wait):
        # all reduce together at 190, but ranks 1 to 3 compute until 180, and rank 0 until 60 and then waits until 180
        reduce = (180, 190, NCCL)
        first = [(0, 60, "gemm"), reduce, *([(60, 180, self.SEND)] if wait == "transfer" else [])]
        times = [((200 * step + 60) * US, 120 * US) for step in range(5)]
        on_host = {"process_id": 0, "thread_id": 0}
        gloo = {"host_ops": [(*at, "gloo:barrier", "annotation", on_host) for at in times]}
        mpi = {"nvtx": [(*at, "MPI_Wait", on_host) for at in times]}
        others = [[(0, 100, "gemm"), (100, 180, self.SEND), reduce]] * 3
        view = self.of_steps(first, *others, dur=200, **{"gloo": gloo, "MPI": mpi}.get(wait, {}))
        outcome = result(view)
        assert outcome.compared
        assert outcome.own_ns == (80 * US, 120 * US, 120 * US, 120 * US)
        assert "TV501" not in raised(view)

    def test_a_little_late_often_is_less_than_very_late_once(self):
        # in every step rank 1 is 1 µs late at four collectives, and rank 0 is 60 µs late at the fifth
        ends = (20, 40, 60, 80, 190)
        rank0 = [work for end in ends for work in ((end - 20, end - 11, "gemm"), (end - 11, end, NCCL))][:-2]
        rank1 = [work for end in ends for work in ((end - 20, end - 10, "gemm"), (end - 10, end, NCCL))][:-2]
        view = self.of_steps(
            [*rank0, (80, 180, "gemm"), (180, 190, NCCL)], [*rank1, (80, 120, "gemm"), (120, 190, NCCL)], dur=200
        )
        assert [rank.last for rank in result(view).ranks] == [5, 20]
        facts = evidence(raised(view)["TV503"])
        assert (facts["rank"], facts["last"]) == (0, 5)

    def test_who_is_late_because_it_waited_in_another_group_is_not_to_blame(self):
        def of(rank, group, start, end):
            at = {"process_id": rank, "device_id": rank, "group": group, "group_size": 2}
            return [((200 * step + start) * US, (end - start) * US, "allreduce", at) for step in range(5)]

        # Rank 0 computes until 100 and keeps rank 1 waiting, which then keeps rank 2 waiting.
        computes = [[(0, 100, "gemm")], [(0, 40, "gemm"), (110, 150, "gemm")], [(0, 60, "gemm")]]
        waits = [
            (0, "a", 100, 110),
            (1, "a", 40, 110),
            (1, "b", 150, 160),
            (2, "b", 60, 160),
            (1, "b", 165, 170),
            (2, "b", 160, 170),
        ]
        groups = [row for wait in waits for row in of(*wait)]
        kernels = [
            [*does, *((start, end, NCCL) for rank, _, start, end in waits if rank == own)]
            for own, does in enumerate(computes)
        ]
        view = self.of_steps(*kernels, dur=200, collectives=groups)
        assert [rank.last for rank in result(view).ranks] == [5, 10, 0]
        assert result(view).own_ns == (200 * US, 140 * US, 105 * US)
        assert evidence(raised(view)["TV503"])["rank"] == 0

    def test_who_takes_longer_in_most_steps_and_less_in_all_is_not_slow(self):
        assert "TV502" not in raised(unequal([[100, 100, 100, 150], [106, 106, 106, 106]]))
        assert evidence(raised(unequal([[100, 100, 100, 100], [112, 112, 112, 112]]))["TV502"])["rank"] == 1

    def test_ranks_that_are_late_in_turn_are_not_blamed(self):
        kernels, marks = [], []
        for rank in (0, 1):
            at, on = {"process_id": rank, "thread_id": rank}, {"process_id": rank, "device_id": rank}
            for step in range(6):
                start, busy = 200 * US * step, (150 if step % 2 == rank else 100) * US
                marks.append((start, 200 * US, step, at))
                kernels += [(start, busy, "gemm", on), (start + busy, 160 * US - busy, NCCL, on)]
        view = tables(kernels=kernels, steps=marks, threads=[(rank, rank, "python") for rank in (0, 1)])
        finding = raised(view)["TV503"]
        assert "rank" not in evidence(finding)
        assert finding.message.endswith(
            "no rank needs more time for its own work than the others: they are late in turn."
        )


class TestSteps:
    def test_imbalance_is_the_excess_of_the_slowest_median_over_the_median(self):
        outcome = result(unequal([[100] * 4, [100] * 4, [130] * 4]))
        assert outcome.imbalance.share == pytest.approx(0.3)
        assert outcome.imbalance.lost_ns == 4 * 20 * US  # 130 - (100 + 100 + 130) / 3
        assert [outcome.imbalance.slowest(rank) for rank in range(3)] == [0, 0, 4]

    def test_the_slowest_rank_is_named_per_step(self):
        outcome = result(unequal([[100, 120, 100], [110, 100, 101]]))
        grid = next(
            b for b in RanksAnalysis().describe(outcome).blocks if isinstance(b, Grid) and "all ranks" in b.title
        )
        assert [row[:2] for row in grid.rows] == [(0, 1), (1, 0), (2, 1)]

    def test_steps_are_aligned_by_their_numbers(self):
        outcome = result(unequal([[100, 100, 100], [100, 140, 100]], {0: [7, 8, 9], 1: [8, 9, 10]}))
        assert outcome.imbalance.steps["step"].to_list() == [8, 9]
        assert outcome.imbalance.lost_ns == 20 * US

    @pytest.mark.parametrize(("slow", "codes"), [(104, []), (105, ["TV502"])])
    def test_imbalance_counts_from_5_percent_on(self, slow, codes):
        assert list(raised(unequal([[100] * 5, [100] * 5, [100] * 5, [slow] * 5]))) == codes

    def test_inferred_steps_of_unequal_number_are_not_aligned(self):
        kernels = [
            (start * 100 + k * 30 + rank, 25, f"k{k}", {"process_id": rank, "device_id": rank})
            for rank, count in ((0, 20), (1, 17))
            for start in range(count)
            for k in range(3)
        ]
        view = trace(kernels=kernels)
        assert training_steps(view).source == "kernel_cycle"
        rounds = find_rounds(view)
        assert not rounds.are_steps  # so the 1.6 µs are compared in which both ranks run
        assert rounds.common[["start_ns", "end_ns"]].rows() == [(1, 1601)] * 2
        assert step_imbalance(rounds, {}).share == 0


class TestSection:
    def test_one_rank_has_no_section_and_no_word_of_it_unless_asked_for(self):
        single = job([100])
        assert isinstance(result(single), Skipped)
        assert "ranks" not in {part.slug for part in (*analyze(single).skipped, *analyze(single).sections)}
        report = analyze(single, sections=["ranks"])
        assert [(skip.slug, skip.reason) for skip in report.skipped] == [("ranks", "the capture is of a single rank")]

    def test_ranks_of_a_larger_job_are_said_to_be_some_of_it(self):
        report = analyze(job([100, 100], settings=[("distributedInfo.world_size", "128", {"process_id": None})]))
        assert report.fact("ranks", "world_size") == 128
        assert report.fact("capture", "ranks") == "2 of 128 (0, 1)"
        assert "2 of 128 ranks were captured" in str(report.section("ranks").blocks)

    def test_2_of_2_ranks_are_all_of_them(self):
        report = analyze(job([100, 100], settings=[("distributedInfo.world_size", "2", {"process_id": None})]))
        assert report.fact("ranks", "world_size") == 2
        assert "ranks were captured" not in str(report.section("ranks").blocks)

    def test_traces_of_different_jobs_are_not_taken_for_one(self):
        sizes = [("distributedInfo.world_size", str(2 + 6 * rank), {"process_id": rank}) for rank in (0, 1)]
        report = analyze(job([100, 100], settings=sizes))
        assert "different numbers of ranks (2, 8)" in str(report.section("ranks").blocks)

    def test_figures_are_listed_by_rank_and_not_by_process(self):
        ranks = [(0, "python", {"rank": 9}), (1, "python", {"rank": 4})]
        rows = analyze(job([100, 120], processes=ranks)).rows("ranks")
        assert [(row["rank"], row["steps"], row["own_ns"]) for row in rows] == [(4, 6, 200 * US), (9, 6, 180 * US)]
        assert [row["kernels"] for row in rows] == [12, 12]

    def test_the_overhead_of_one_rank_is_not_that_of_another(self):
        overhead = [(0, 1_200 * US, "flush", {"process_id": 1, "thread_id": None})]
        kernels = [(0, 10 * US, "k"), (1_190 * US, 10 * US, "k"), (0, 10 * US, "k", {"process_id": 1, "device_id": 1})]
        findings_by_code = {
            finding.code: finding for finding in analyze(tables(kernels=kernels, overhead=overhead)).findings
        }
        assert "TV902" not in findings_by_code  # 10 of 1,210 µs: rank 1 was held up for all of its 10 µs

    def test_devices_of_the_same_number_are_told_apart_by_their_rank(self):
        devices = [(number, "H100", {"ordinal": 0}) for number in (0, 1)]
        names = [row["device"] for row in analyze(job([100, 100], devices=devices)).rows("device_use")]
        assert names == ["rank 0 GPU 0 H100", "rank 1 GPU 0 H100"]


def test_steps_of_epochs_are_compared_with_their_like_where_only_one_rank_warms_up():
    # Rank 0 needs 900 µs for its first step, which is warm-up; in the second epoch a step takes 20 µs and not 10.
    epochs, numbers = [*[10] * 12, *[20] * 12], [*range(12)] * 2
    view = TraceView(unequal([[900, *epochs[1:]], epochs], {0: numbers, 1: numbers}))
    assert training_steps(view).frame.filter("warmup").height == 1
    imbalance = step_imbalance(find_rounds(view), {})
    assert (imbalance.steps.height, imbalance.lost_ns) == (23, 0)


def test_a_rank_without_judged_time_does_not_lessen_the_time_of_the_job():
    marks = [(100 * i, 100, i, {"process_id": p, "thread_id": p}) for p in range(3) for i in range(4)]
    kernels = [(0, 400, "gemm", {"process_id": p, "device_id": p}) for p in range(4)]
    outcome = result(tables(steps=marks, kernels=kernels))
    assert [rank.judged_ns for rank in outcome.ranks] == [400, 400, 400, 0]
    assert outcome.judged_ns == 400


def test_processes_that_state_the_same_rank_are_told_apart_by_their_own_numbers():
    kernels = [(0, 10, "gemm", {"process_id": p, "device_id": p}) for p in range(2)]
    outcome = result(tables(kernels=kernels, processes=[(0, "a", {"rank": 3}), (1, "b", {"rank": 3})]))
    assert [rank.rank for rank in outcome.ranks] == [0, 1]


def test_processes_without_devices_are_ranks_only_where_the_trace_says_so():
    host = [(0, 100 - 10 * p, "work", "runtime", {"process_id": p, "thread_id": p}) for p in range(2)]
    assert isinstance(result(tables(host_ops=host)), Skipped)
    stated = result(tables(host_ops=host, processes=[(p, "python", {"rank": p + 4}) for p in range(2)]))
    assert [rank.rank for rank in stated.ranks] == [4, 5]


def test_a_launcher_is_no_rank():
    """torchrun with two ranks on the CPU, as nsys sees it: system calls of all three, steps of two."""
    processes = [(0, "python", {"rank": 0}), (1, "python", {"rank": 1}), (2, "torchrun", {"rank": None})]
    threads = [(number, number, "main") for number in range(3)]
    calls = [(0, 900 * US, "poll", {"process_id": number, "thread_id": number}) for number in range(3)]
    steps = [
        (step * 100 * US, 100 * US, step, {"process_id": rank, "thread_id": rank})
        for rank in (0, 1)
        for step in range(9)
    ]
    parts = {"processes": processes, "threads": threads, "os_calls": calls, "steps": steps}
    assert [rank.rank for rank in result(tables(**parts)).ranks] == [0, 1]
    assert TraceView(tables(**parts)).traced == (0, 1, 2)
    unnamed = [(number, name) for number, name, _ in processes]
    assert TraceView(tables(**{**parts, "processes": unnamed})).ranks == (0, 1, 2)
