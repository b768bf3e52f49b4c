"""The function that takes the time while steps wait for input, in any thread."""

from typing import Any

import pytest

from tests.analyses.builders import tables, trace
from tests.analyses.input.test_dataloader import MULTI, SINGLE, TORCH, loop
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.stacks.functions import functions, placed, wilson
from traceviz.analyses.derived.stacks.sampled import time_by_stack
from traceviz.analyses.input.input_lines import InputLines, input_lines
from traceviz.analyses.run import analyze
from traceviz.core.arrays.intervals import IntervalSet

NEXT = "train.py:90 main > torch/utils/data/dataloader.py:733 __next__"
DECODE = f"{NEXT} > data.py:41 decode_jpeg > PIL/Image.py:3000 open"
STEP = "train.py:92 main > torch/nn/modules/linear.py:114 forward"
WORKER = {"process_id": 1, "thread_id": 7}
LOOP = "torch/utils/data/_utils/worker.py:349 _worker_loop"


def steps(stacks: list[tuple[Any, ...]], waits: int = 800, name: str = SINGLE) -> dict[str, Any]:
    """Return five steps of 1,000 ns that wait for 800, and ``stacks`` in each of them, by their start in it."""
    rows = [(begin * 1000 + start, *rest) for begin in range(5) for start, *rest in stacks]
    literals: dict[str, Any] = loop([waits] * 5, name)  # type: ignore[no-untyped-call]
    return literals | sampled(*rows)


def test_the_main_threads_own_function_is_named_with_its_share_of_the_wait() -> None:
    view = trace(**steps([(0, 600, DECODE), (600, 200, f"{NEXT} > data.py:50 collate"), (800, 200, STEP)]))
    lines = input_lines(view)
    assert lines is not None
    assert [(f.location, f.time_ns, f.samples) for f in lines.functions] == [
        ("data.py:41 decode_jpeg", 5 * 600, 5 * 60.0),
        ("data.py:50 collate", 5 * 200, 5 * 20.0),
    ]
    assert lines.words == "75.0 % of that in decode_jpeg (data.py:41)"


def test_findings_and_the_section_name_the_function_of_the_loader() -> None:
    report = analyze(tables(**steps([(0, 600, DECODE), (600, 200, f"{NEXT} > data.py:50 collate"), (800, 200, STEP)])))
    messages = {finding.code: finding.message for finding in report.findings}
    assert (
        "single-process DataLoader (num_workers=0) (5 calls, 4.00 µs): 75.0 % of that in decode_jpeg"
        in messages["TV101"]
    )
    assert "800 ns each in the median, mostly in decode_jpeg (data.py:41)" in messages["TV108"]
    section = next(section for section in report.sections if section.slug == "input_pipeline")
    (grid,) = (block for block in section.blocks if getattr(block, "title", "") == "What takes the time of the wait")
    assert [row[:4] for row in grid.rows] == [  # type: ignore[union-attr]
        ("decode_jpeg (data.py:41)", 3000, 0.75, 300),
        ("collate (data.py:50)", 1000, 0.25, 100),
    ]


def test_where_the_main_thread_waits_its_workers_say_what_for() -> None:
    """A worker also waits until its batches are taken: steps do not wait for that."""
    wait = f"{NEXT} > multiprocessing/queues.py:103 get > threading.py:327 wait"
    worker = [
        (0, 700, f"{LOOP} > data.py:20 distort", WORKER),
        (700, 300, f"{LOOP} > multiprocessing/queues.py:90 put > threading.py:327 wait", WORKER),
    ]
    literals = steps([(0, 800, wait), (800, 200, STEP), *worker], name=MULTI)
    lines = input_lines(trace(**literals))
    assert lines is not None
    assert (lines.who, lines.processes) == ("workers", 1)
    assert lines.words == "meanwhile 1 worker is in distort (data.py:20) (100.0 %)"
    report = analyze(tables(**literals))
    assert "multi-process DataLoader: meanwhile 1 worker is in distort" in report.verdict.sentence
    first = "Make distort (data.py:20) cheaper, which takes 100.0 % of the workers' time: do less in it, or do it once."
    advice = {finding.code: finding.advice[0] for finding in report.findings}
    assert (advice["TV101"], advice["TV109"]) == (first, "Slow loader workers: see the advice of TV101.")


def test_a_function_with_little_of_the_workers_time_is_no_advice() -> None:
    work = [(n * 200, 200, f"{LOOP} > data.py:{n} part_{n}", WORKER) for n in range(5)]
    wait = f"{NEXT} > multiprocessing/queues.py:103 get > threading.py:327 wait"
    report = analyze(tables(**steps([(0, 800, wait), (800, 200, STEP), *work], name=MULTI)))
    assert "raise num_workers" in report.findings[0].advice[0]


def test_where_the_main_thread_waits_another_thread_may_do_the_work() -> None:
    literals = steps([(0, 800, f"{NEXT} > it.get_next"), (0, 900, "gen.py:7 images > math.sin", {"thread_id": 3})])
    lines = input_lines(trace(**literals))
    assert lines is not None
    assert (lines.who, lines.functions[0].location) == ("threads", "gen.py:7 images")


@pytest.mark.parametrize(("samples", "named"), [(1, False), (2, True)])
def test_fewer_than_10_samples_in_the_wait_name_nothing(samples: int, named: bool) -> None:  # noqa: FBT001
    lines = input_lines(trace(**steps([(0, 800, DECODE, {"samples": samples})])))
    assert (lines is not None) == named
    assert lines is None or lines.words == "about 100.0 % of that in decode_jpeg (data.py:41)"


def test_without_ranges_samples_see_the_wait_for_input() -> None:
    """
    steps     |-- next_batch 600 --|-- compute 400 --|
    """
    literals = steps([(0, 600, "train.py:90 main > train.py:41 next_batch > time.sleep"), (600, 400, STEP)], waits=600)
    literals = {**literals, "host_ops": [], "run": TORCH}
    report = analyze(tables(**literals))
    assert report.verdict.code == "highly-input-bound"
    assert "60.0 % of steady step time waits for input, 100.0 % of that in next_batch (train.py:41)" in (
        report.verdict.sentence
    )


def test_a_share_of_samples_has_an_interval() -> None:
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    view = trace(**sampled((0, 300, "a.py:1 f"), (300, 100, "a.py:2 f > time.sleep"), (400, 600, "a.py:9 g")))
    first, second = functions(time_by_stack(view, IntervalSet.span(0, 1000), 0))
    assert (first.location, first.share, first.of_samples) == ("a.py:9 g", 0.6, 100)
    assert (second.location, second.time_ns) == ("a.py:1 f", 400)
    assert first.interval == pytest.approx((0.502, 0.691), abs=1e-3)


def test_lines_in_words() -> None:
    assert placed("src/train.py:41 Images.decode_jpeg") == "decode_jpeg (train.py:41)"
    assert placed("train.py:3 <module>") == "train.py:3"
    assert placed("os.fsync") == "os.fsync"


def test_a_function_without_a_name_has_that_of_the_one_around_it() -> None:
    view = trace(**sampled((0, 10, "a.py:3 load > a.py:4 <listcomp>"), (10, 10, "a.py:3 load > b.py:4 <lambda>")))
    rows = time_by_stack(view, IntervalSet.span(0, 20), 0)
    assert sorted(rows["location"]) == ["a.py:4 load", "b.py:4 <lambda>"]
    assert InputLines("main", tuple(functions(rows))).words == "about 50.0 % of that in load (a.py:4)"
