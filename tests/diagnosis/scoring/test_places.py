import gzip

import pytest

from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span, ThreadFacts, Work
from benchmarks.diagnosis.scoring.places import find_slow_rank, place_words, score_places, word_of
from traceviz.report import Report, Verdict
from traceviz.report.verdicts import VerdictCode


def record(*spans, kernels=(), ranks=2):
    device = tuple(DeviceSpan(rank, 7, work, "kernel", 0, ns, correlation=1) for rank, work, ns in kernels)
    threads = tuple(ThreadFacts(rank, 1, "python", 0) for rank in range(ranks))
    return Record(tuple(spans), device, threads, ranks, 1_000)


def report(sentence):
    return Report((), Verdict(VerdictCode.CANNOT_JUDGE, sentence))


AUGMENT = Span(1, 1, Kind.PYTHON, "augment.py(77): augment", 0, 400)
COMPILE = Span(0, 1, Kind.RANGE, "_compile.compile_inner (dynamo_timed)", 0, 400)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("torch/serialization.py(944): save", "save"),
        ("<built-in function sleep>", "sleep"),
        ("<built-in method acquire of _thread.lock object at 0x7f21c5d0>", "acquire"),
        ("_compile.compile_inner (dynamo_timed)", "compile_inner"),
        ("void cudnn::ops::nchwToNhwcKernel<__half, float>(__half const*)", "nchwToNhwcKernel"),
        ("$compile_fx.py:1150 compile_fx", "compile_fx"),
        ("<unknown>", ""),
    ],
)
def test_the_word_of_a_name_is_its_function(name, word):
    assert word_of(name) == word


def test_words_are_those_of_names_that_only_the_record_with_the_cause_holds():
    other = Span(0, 1, Kind.OPERATOR, "aten::add", 0, 100)

    assert place_words(record(AUGMENT, other), record(other)) == {"augment"}
    assert place_words(record(COMPILE), record()) == {"compile_inner", "XlaCompile"}
    assert place_words(record(other), record(other)) == set()


def test_a_place_counts_only_if_the_capture_holds_it(tmp_path):
    holds, lacks = tmp_path / "a.json.gz", tmp_path / "b.json"
    holds.write_bytes(gzip.compress(b'{"name": "augment"}'))
    lacks.write_text("{}")
    with_cause = record(AUGMENT, ranks=1)

    assert score_places(with_cause, record(ranks=1), report("Mostly augment."), [holds]) == {"function": True}
    assert score_places(with_cause, record(ranks=1), report("Host-bound."), [holds]) == {"function": False}
    assert score_places(with_cause, record(ranks=1), report("Mostly augment."), [lacks]) == {}


@pytest.mark.parametrize(
    ("added", "rank"),
    [
        ([(1, Work.KERNEL, 200)], 1),
        ([(0, Work.KERNEL, 25), (1, Work.KERNEL, 75)], 1),
        ([(0, Work.KERNEL, 26), (1, Work.KERNEL, 74)], None),
        ([(1, Work.COLLECTIVE, 200)], None),  # the rank waits for others
        ([(1, Work.KERNEL, 19)], None),  # below 2 % of the time
        ([], None),
    ],
)
def test_the_slow_rank_does_three_quarters_of_the_added_work(added, rank):
    healthy = [(0, Work.KERNEL, 100), (1, Work.KERNEL, 100)]

    assert find_slow_rank(record(kernels=healthy + added), record(kernels=healthy)) == rank


def test_the_slow_rank_is_named_by_its_number(tmp_path):
    slow, healthy = record(kernels=[(1, Work.KERNEL, 200)]), record(kernels=[(1, Work.KERNEL, 100)])

    assert score_places(slow, healthy, report("Straggler: rank 1 needs more."), []) == {"rank": True}
    assert score_places(slow, healthy, report("Straggler: rank 10 needs more."), []) == {"rank": False}
