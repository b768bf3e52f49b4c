"""One trace as analyses see it: what several of them need is computed once."""

from tests.analyses.builders import trace
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
