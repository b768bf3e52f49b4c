"""Properties of changes of every kind: a side against itself, and several units of work in a step."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tests.compare.changes.sections import copy_section, input_section
from tests.compare.sections_of import STEADY, finding, kernels, run, section, side, table
from traceviz.compare.attribution import attribute
from traceviz.compare.changes.by_name import compare_api, compare_copies, compare_kernels, compare_stages
from traceviz.compare.changes.events import Status
from traceviz.compare.changes.findings import compare_findings
from traceviz.compare.effect import effect
from traceviz.report import Severity


def test_a_side_against_itself_has_no_changes():
    whole = side("a", run(3, kernels(("a", "gemm", 7, 1000), ("b", "fusion", 5, 1)), copy_section(("h2d", 1, 7, 9))))
    assert {change.status for change in compare_kernels(whole, whole).changes} == {Status.SAME}
    assert {change.difference_ns for change in compare_kernels(whole, whole).changes} == {0}
    assert {change.times.status for change in compare_copies(whole, whole).changes} == {Status.SAME}


def test_with_several_units_of_work_in_a_step_every_time_is_of_one_unit():
    classes = {"input_wait": [400] * 4, "host_compute": [600] * 4}
    sections = (
        kernels(("a", "gemm", 8, 4000)),
        copy_section(("h2d", 8, 400, 4096)),
        input_section(0.4, ("loading", "DataLoader", 1600)),
        section("cuda_api", table("", "name domain total_ns share_of_api", ("cudaFree", "runtime", 800, 1.0))),
    )
    steady = section(
        "cuda_api", *sections[3].blocks, table(STEADY, "name domain calls total_ns", ("cudaFree", "runtime", 4, 800))
    )
    costs = [finding("TV302", 800, 0.2, Severity.WARNING)]
    whole = side("whole", run(4, *sections[:3], steady, findings=costs, **classes))
    half = replace(whole, per=Fraction(2))
    changes = (
        compare_kernels(whole, half),
        compare_copies(whole, half),
        compare_stages(whole, half),
        compare_api(whole, half),
    )
    kernel, copied, stage, called = (compared.changes[0] for compared in changes)
    assert (kernel.base_calls, kernel.new_calls, kernel.base_ns, kernel.new_ns) == (2, 1, 1000, 500)
    assert (copied.base_bytes, copied.new_bytes, copied.times.base_ns, copied.times.new_ns) == (1024, 512, 100, 50)
    assert (stage.base_ns, stage.new_ns) == (400, 200)
    assert (called.steady.base_ns, called.steady.new_ns, called.base_share, called.new_share) == (200, 100, 1.0, 1.0)
    (cost,) = compare_findings(whole, half).changes
    assert (cost.base_ns, cost.new_ns, cost.base_share, cost.new_share) == (200, 100, 0.2, 0.2)
    attribution = attribute(whole, half)
    assert [(part.base_ns, part.new_ns) for part in attribution.classes] == [(400, 200), (600, 300)]
    assert (effect(whole.runs, half.runs).speedup, attribution.difference_ns) == (2, -500)
