"""Calls by name: annotations that last."""

from tests.analyses.builders import trace
from traceviz.analyses.derived.calls.host_calls import annotated_calls


def test_an_annotation_of_0_ns_is_a_mark_and_no_call():
    view = trace(
        host_ops=[
            (0, 10, "load 1", "annotation"),
            (20, 0, "load 2", "annotation"),
            (30, 1, "load 3"),
            (40, 5, "load 4", "python"),
            (50, None, "load 5", "annotation"),
            (60, 5, "train", "annotation"),
        ]
    )
    assert annotated_calls(view, "load").select("name", "end_ns").rows() == [("load 1", 10), ("load 3", 31)]
    assert annotated_calls(view, "nothing").rows() == []
