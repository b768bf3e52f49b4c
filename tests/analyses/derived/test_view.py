"""One trace as analyses see it: what several of them need is computed once."""

from tests.analyses.builders import trace
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.view import TraceView, once_per_trace


def test_a_result_is_computed_once_for_each_trace_and_key():
    calls = []

    def count(view: TraceView, key: int) -> int:
        calls.append(key)
        return view.span_ns + key

    view, other = trace(span_ns=100), trace(span_ns=200)
    assert [view.once(count, 1), view.once(count, 1), view.once(count, 2), other.once(count, 1)] == [101, 101, 102, 201]
    assert calls == [1, 2, 1]


def test_a_marked_function_shares_its_result_and_keeps_its_name():
    calls = []

    @once_per_trace
    def length(view: TraceView) -> list[int]:
        calls.append(view)
        return [view.span_ns]

    view = trace(span_ns=100)
    assert length(view) is length(view)
    assert (length(view), len(calls), length.__name__) == ([100], 1, "length")


def test_results_that_are_none_are_kept_too():
    calls = []
    view = trace(span_ns=100)
    assert [view.once(calls.append), view.once(calls.append)] == [None, None]
    assert calls == [view]


def test_of_three_operations_the_two_with_one_name_and_category_have_the_same_row_of_the_two_names():
    view = trace(host_ops=[(0, 1, "multiply", "op"), (1, 1, "add", "op"), (2, 1, "multiply", "op")])
    assert view.host_names.rows() == [("add", "op"), ("multiply", "op")]
    assert view.host_name_rows.tolist() == [1, 0, 1]


def test_ranks_work_while_their_devices_do_and_alone_on_a_device_that_several_share():
    apart = [(0, 10, "k", {"device_id": 0, "process_id": 0}), (5, 10, "k", {"device_id": 1, "process_id": 1})]
    copies = [(12, 8, "h2d", "pinned", "device", 8, {"device_id": 0, "process_id": 0})]
    view = trace(kernels=apart, memcpy=copies)
    assert view.owners == ((0, 0), (1, 1))
    assert busy(view.device_busy) == busy(view.rank_busy) == {0: [(0, 10), (12, 20)], 1: [(5, 15)]}
    together = [(0, 10, "k", {"process_id": 0}), (5, 10, "k", {"process_id": 1})]
    view = trace(kernels=together)
    assert view.owners == ((0, 0), (1, 0))
    assert busy(view.device_busy) == {0: [(0, 15)]}
    assert busy(view.rank_busy) == {0: [(0, 10)], 1: [(5, 15)]}


def busy(sets):
    return {key: list(zip(own.starts.tolist(), own.ends.tolist(), strict=True)) for key, own in sets.items()}


class TestProcessesWithoutDevices:
    """A program without steps, and a process that it starts and waits for."""

    def ran(self, *lives):
        phases = [(start, end - start, "program", "program", {"process_id": n}) for n, (start, end) in enumerate(lives)]
        calls = [(start, end - start, "work", "op", {"process_id": n}) for n, (start, end) in enumerate(lives)]
        threads = [(n, n, "MainThread") for n in range(len(lives))]
        return trace(span_ns=1000, phases=phases, host_ops=calls, threads=threads)

    def test_a_helper_is_no_rank_and_the_captured_time_counts_once(self):
        view = self.ran((0, 1000), (100, 900), (200, 300))
        assert view.ranks == (0,)
        assert (judged_time(view, 0).total, judged_words(view)) == (1000, "captured time")

    def test_two_programs_one_after_the_other_have_1000_ns_together(self):
        view = self.ran((0, 400), (400, 1000))
        assert view.ranks == (0, 1)
        assert [judged_time(view, rank).total for rank in view.ranks] == [400, 600]
        assert judged_words(view) == "captured time of 2 processes"
