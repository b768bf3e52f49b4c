"""A figure over the numbers of a tag: the best, values indistinguishable from it, and runs that ended before."""

import pytest

from tests.compare.tables.studies import run, study
from traceviz.compare.report.document import document
from traceviz.core.errors import UsageError
from traceviz.report import Grid, Prose

CRASHED = ("failed", "out of memory")
PER_SAMPLE = {8: (500, 510, 490), 32: (200, 204, 196), 64: (190, 210, 186), 128: (300, 303, 297)}
"""Microseconds a sample of three runs, by batch: 64 takes 195 on average, which scatters; 32 takes 200."""


def batches(**tags):
    """Return batches 8 to 128 with steps of so many samples, and one that does not fit."""
    runs = [
        run(batch * us / 1000, batch=batch, repeat=n, **tags)
        for batch, of in PER_SAMPLE.items()
        for n, us in enumerate(of)
    ]
    return [*runs, run(batch=512, ending=CRASHED, **tags)]


def curve(comparison, slug="curve"):
    blocks = list(document(comparison).blocks(slug))
    grid = next(block for block in blocks if isinstance(block, Grid))
    names = [column.name for column in grid.columns]
    rows = [dict(zip(names, row, strict=True)) for row in grid.rows]
    return rows, [block.text for block in blocks if isinstance(block, Prose)]


def test_the_curve_over_batch_sizes_is_of_one_sample_and_so_is_the_verdict():
    comparison = study(batches(), [], curve="batch")
    rows, _ = curve(comparison)
    assert comparison.options.per == "batch"
    assert [row["tag.batch"] for row in rows] == [8, 32, 64, 128, 512]
    assert [row["value"] for row in rows[:2]] == pytest.approx([500e3, 200e3], rel=1e-3)


def test_of_5_batches_64_is_best_32_cannot_be_told_from_it_and_512_crashed():
    rows, texts = curve(study(batches(), [], curve="batch"))
    verdicts = {row["tag.batch"]: row["verdict"] for row in rows}
    assert verdicts == {
        8: "2.56× slower",
        32: "as good",
        64: "best",
        128: "1.54× slower",
        512: "crashed: out of memory",
    }
    assert texts[0].startswith(
        "Best is batch=64: time per sample 195 µs (95 % interval 166 to 229 µs), 2.56× as fast as batch=8; 32 "
    )


def test_throughput_is_shown_where_runs_state_it_and_more_of_it_is_better():
    rates = {1: (100, 102, 98), 4: (300, 303, 297), 8: (250, 253, 247)}
    runs = [
        run(n, threads=n, repeat=repeat, measures={"samples_per_second": rate})
        for n, of in rates.items()
        for repeat, rate in enumerate(of)
    ]
    rows, _ = curve(study(runs, [], curve="threads", measures=("samples-per-second",)))
    assert [row["verdict"] for row in rows] == ["3.00× slower", "best", "1.20× slower"]
    assert [row["speedup"] for row in rows] == pytest.approx([1, 3, 2.5], rel=1e-3)
    assert [row["efficiency"] for row in rows] == pytest.approx([1, 0.75, 0.3125], rel=1e-3)


def test_further_figures_stand_beside_the_first():
    runs = [run(9, batch=n, measures={"total_ns": 8e9 / n}, learned={"accuracy": 1 - n / 100}) for n in (1, 2, 4)]
    comparison = study(runs, [], curve="batch", measures=("total", "accuracy"))
    rows, texts = curve(comparison)
    assert [row["value"] for row in rows] == [8e9, 4e9, 2e9]
    assert [row["measure.accuracy"] for row in rows] == [0.99, 0.98, 0.96]
    assert texts[0].startswith("Best is batch=4: total time 2.00 s, 4.00× as fast as batch=1. Each is of one run: ")


def test_other_tags_make_a_curve_each_with_a_best_of_its_own():
    runs = [
        run(step, cache=cache, workers=n)
        for cache, of in (("off", (8, 4)), ("on", (1, 2)))
        for n, step in enumerate(of, 1)
    ]
    rows, texts = curve(study(runs, ["cache"], curve="workers"))
    assert [row["tag.workers"] for row in rows if row["verdict"] == "best"] == [2, 1]
    assert [text.partition(":")[0] for text in texts] == ["cache=off", "cache=on"]


def test_words_are_left_out_of_a_curve_and_named_and_two_numbers_are_needed():
    runs = [run(step, threads=threads) for threads, step in (("default", 5), ("1", 9), ("2", 6))]
    rows, texts = curve(study(runs, [], curve="threads"))
    assert [row["tag.threads"] for row in rows] == [1, 2]
    assert texts[-1] == "1 side left out, whose threads is no number: default."
    with pytest.raises(UsageError, match=r"fewer than two of its values are numbers"):
        document(study(runs[:2], [], curve="threads"))


def test_of_2_single_runs_that_differ_by_5_percent_none_is_said_to_be_worse():
    runs = [
        run(9, batch=n, measures={"total_ns": total}, learned={"loss": 2.0 * n}) for n, total in ((1, 4e9), (2, 4.2e9))
    ]
    by_time, _ = curve(study(runs, [], curve="batch", measures=("total",)))
    by_loss, _ = curve(study(runs, [], curve="batch", measures=("loss",)))
    assert [row["verdict"] for row in by_time] == ["best", "unclear"]
    assert [(row["verdict"], row["speedup"]) for row in by_loss] == [("best", None), ("worse", None)]


def test_2_runs_that_differ_300_fold_make_an_interval_that_ends_at_10_to_the_13():
    runs = [run(1, threads=1), run(300, threads=1), run(10, threads=2), run(10.1, threads=4)]
    rows, _ = curve(study(runs, [], curve="threads"))
    assert [row["verdict"] for row in rows] == ["as good", "best", "1.01× slower"]
    assert [row["speedup_high"] for row in rows] == [1.0, *[pytest.approx(1.07e13, rel=0.01)] * 2]
