"""Ranks on the CPU of one machine: by their own clock, the late rank, its work at that time, and the report."""

import pytest

from tests.analyses.builders import tables
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import collective_skew
from traceviz.analyses.ranks.rank_grids import cautions
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.analyses.run import analyze

US = 1_000
STEP = 1_000
"""µs of a step."""


def gloo_job(ready, *, busy="aten::mm", tail=0, transfer=30, of_run=True, reduces=1, shift=0, **more):
    """Return two ranks that work until ``ready[rank](step)`` µs in each step, and then reduce on gloo's thread.

    ::

        rank 0  |--work--|gloo:all_reduce ------------|            both leave once the late one has come
        rank 1  |--work----------------|gloo:all_reduce----|       and needs ``tail`` longer for its part

    Args:
        ready: Time at which each rank is ready, by step.
        busy: The operation of the late rank.
        tail: Additional time of the second rank after the transfer.
        transfer: Duration of the transfer.
        of_run: True if one run of ``traceviz collect`` recorded both.
        reduces: Collectives in a row.
        shift: Steps by which the recording of rank 1 is later.
    """
    host_ops, steps = [], []
    for step in range(6):
        last = max(own(step) for own in ready)
        for rank, own in enumerate(ready):
            start, at = STEP * step, {"process_id": rank, "thread_id": 2 * rank}
            if rank and step < shift:
                continue
            steps.append((start * US, STEP * US, step, at))
            host_ops.append((start * US, own(step) * US, busy if rank else "aten::add", "op", at))
            end = start + last + transfer + tail * rank
            beside = {"process_id": rank, "thread_id": 2 * rank + 1}
            host_ops.append(((start + own(step)) * US, (end - start - own(step)) * US, *REDUCE, beside))
            host_ops += [((end + 5 * i) * US, 4 * US, *REDUCE, beside) for i in range(reduces - 1)]
    run = {"format": "run"} if of_run else None
    stated = [("run.duration_ns", "9000000"), ("run.status", "finished")]
    rows = [(key, value, {"process_id": None if of_run else 0}) for key, value in stated]
    processes = [(rank, "python", {"rank": rank}) for rank in (0, 1)]
    return tables(host_ops=host_ops, steps=steps, run=run, settings=rows, processes=processes, **more)


REDUCE = ("gloo:all_reduce", "annotation")


def result(job):
    return RanksAnalysis().run(TraceView(job))


def late(job):
    """Return the message and advice of the finding on late ranks."""
    (finding,) = (finding for finding in RanksAnalysis().judge(result(job)) if finding.code == "TV503")
    return finding.message, finding.advice


def always(microseconds):
    return lambda _: microseconds


def test_on_one_machine_a_rank_waits_until_the_last_has_arrived_whenever_each_of_them_leaves():
    outcome = result(gloo_job((always(100), always(700)), tail=80))
    assert outcome.skew.one_clock
    assert outcome.skew.clock_ns == {0: 0, 1: 0}
    assert [rank.wait_ns for rank in outcome.ranks] == [6 * 600 * US, 0]
    assert [(rank.last, rank.median_skew_ns) for rank in outcome.ranks] == [(0, 0), (6, 600 * US)]
    assert any("share its clock" in text for text in cautions(outcome))


def test_of_several_machines_the_clocks_are_aligned_on_the_ends():
    outcome = result(gloo_job((always(100), always(700)), tail=80, of_run=False))
    assert (outcome.skew.one_clock, outcome.skew.clock_ns) == (False, {0: 0, 1: 80 * US})
    assert outcome.ranks[0].wait_ns == 6 * 520 * US  # it leaves 80 µs before the other


def test_the_late_rank_is_last_at_every_collective_of_a_step_where_the_ends_would_hide_it():
    job = gloo_job((always(100), always(700)), reduces=4, tail=3)
    assert [rank.last for rank in result(job).ranks] == [0, 24]


def test_collectives_that_were_not_recorded_of_one_rank_are_not_compared_with_others():
    # rank 1 was recorded from the second step on: its first reduce is the second of rank 0
    skew = collective_skew(TraceView(gloo_job((always(100), always(700)), shift=1)), 0.1)
    assert (skew.clock_ns, skew.unaligned, skew.collectives) == ({0: 0, 1: 0}, (), 5)


@pytest.mark.parametrize("name", ["aten::mm", "clock_nanosleep"])
def test_what_the_late_rank_does_meanwhile_is_named_with_its_700_us_a_step(name):
    message, advice = late(gloo_job((always(100), always(700)), busy=name))
    assert "rank 1 needs most time for its own work (1.00 ms per step, the others 400 µs)" in message
    assert message.endswith(
        f"and arrives last at 6 of 6 collectives. Most of the difference is {name} (700 µs per step)."
    )
    assert advice[0] == f"Look at rank 1: {name} takes 700 µs more per step there."
    assert not any(text.startswith(("Where every rank", "Look at the rank")) for text in advice)


def test_ranks_that_are_late_in_turn_are_not_blamed_for_the_5_percent_by_which_one_works_more():
    def in_turn(rank):
        return lambda step: (100, 700)[step % 2 == rank] + 20 * rank

    message, advice = late(gloo_job((in_turn(0), in_turn(1))))
    assert message.endswith("no rank needs more time for its own work than the others: they are late in turn.")
    assert not any(text.startswith("Look at the rank") for text in advice)


def test_waiting_and_the_rest_of_collectives_stand_for_them_together_and_both_are_said():
    report = analyze(gloo_job((always(100), always(500)), transfer=380))
    assert report.verdict.cause == "host-collectives"  # 380 of each 1,000 µs; the waits are 400 of every 2,000
    assert "late collectives (20.0 % of the steady step time of a rank)" in report.verdict.sentence
    (host,) = (finding for finding in report.findings if finding.code == "TV506")
    assert not any(text.startswith(("Record all ranks", "PyTorch: on GPUs")) for text in host.advice)


SLEEP = "train.py:9 main > train.py:23 prepare > time.sleep"
WORK = "train.py:9 main > train.py:27 step"


def sampled_job(steps):
    """Return the job with profilers for the first six steps, and samples of the main threads in these ``steps``.

    There are two samples in each: of the first 600 µs, in which the late rank sleeps, and of the rest.
    """
    rows, phases = [], []
    for step in steps:
        for rank in (0, 1):
            at = {"process_id": rank, "thread_id": 2 * rank}
            phases.append((STEP * step * US, STEP * US, "step", {**at, "number": step}))
            start = STEP * step * US
            rows.append((start, 600 * US, SLEEP if rank else WORK, {**at, "samples": 1}))
            rows.append((start + 600 * US, 400 * US, WORK, {**at, "samples": 1}))
    return gloo_job((always(100), always(700)), phases=phases, **sampled(*rows))


def test_the_line_of_the_late_rank_is_that_in_which_it_is_sampled_more_than_the_others():
    message, _ = late(sampled_job(range(6)))
    assert message.endswith("Most of the difference is aten::mm in train.py:23 prepare (700 µs per step).")


@pytest.mark.parametrize(("steps", "said"), [(4, "aten::mm (700"), (5, "aten::mm in train.py:23 prepare (700")])
def test_steps_that_no_profiler_recorded_tell_the_line_from_10_samples_on(steps, said):
    message, _ = late(sampled_job(range(6, 6 + steps)))
    assert message.endswith(f"Most of the difference is {said} µs per step).")
