"""Figures of several sides next to each other: shares of the CUDA API, and the host resources of each."""

import pytest

from tests.compare.sections_of import facts, run, section, side, table
from traceviz.compare.compare import compare
from traceviz.compare.report.by_side import api_by_side, host_by_side
from traceviz.compare.report.document import document
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import Grid


def calls(label, **total_ns):
    rows = [(name, "runtime", 1, total) for name, total in total_ns.items()]
    return side(label, run(9, section("cuda_api", table("", "name domain calls total_ns", *rows))))


TORCH = calls("torch", cudaLaunchKernel=900, cudaFree=95, cudaMalloc=5)
TENSORFLOW = calls("tensorflow", cuLaunchKernel=600, cudaFree=400)
JAX = calls("jax", cuLaunchKernel=1000)
UNSEEN = side("numpy", run(9))


def document_of(*sides):
    return document(compare(sides))


def rows_of(grid):
    return [dict(zip((column.name for column in grid.columns), row, strict=True)) for row in grid.rows]


def test_functions_of_1_percent_on_any_of_3_sides_are_beside_each_other_largest_first():
    beside, every = api_by_side((TORCH, TENSORFLOW, JAX, UNSEEN))
    assert [column.label for column in beside.columns] == ["Function", "torch", "tensorflow", "jax"]
    assert beside.rows == (
        ("cuLaunchKernel", 0.0, 0.6, 1.0),
        ("cudaLaunchKernel", 0.9, 0.0, 0.0),
        ("cudaFree", 0.095, 0.4, 0.0),
    )
    assert every.audience == "machine"
    assert [(row["side"], row["name"], row["share_of_api"]) for row in rows_of(every)] == [
        ("torch", "cudaLaunchKernel", 0.9),
        ("torch", "cudaFree", 0.095),
        ("torch", "cudaMalloc", 0.005),
        ("tensorflow", "cuLaunchKernel", 0.6),
        ("tensorflow", "cudaFree", 0.4),
        ("jax", "cuLaunchKernel", 1.0),
    ]


def test_one_side_with_an_api_is_no_figure():
    assert api_by_side((TORCH, UNSEEN, UNSEEN)) == []
    assert host_by_side((TORCH, UNSEEN)) == []


@pytest.mark.parametrize("shown", [JAX, UNSEEN])
def test_the_figure_begins_the_section_of_4_sides_whatever_the_pair_that_is_told_recorded(shown):
    others = [facts_of_pair for facts_of_pair in (UNSEEN, JAX) if facts_of_pair is not shown]
    text = renderer("terminal").render(
        document_of(TORCH, TENSORFLOW, *others, shown), RenderOptions(80, sections=("cuda_api",))
    )
    lines = [line.rstrip() for line in text.splitlines()]
    start = lines.index("  share of CUDA API time on each side, over the whole captures")
    order = ("torch", "tensorflow", "jax")
    assert lines[start + 1].split() == ["Function", *order]
    drawn = ("0.0", "%", "60.0", "%", "████▊", "100.0", "%", "████████")  # a bar for each share
    assert lines[start + 2].split() == ["cuLaunchKernel", *drawn]
    assert "did not record CUDA API calls" not in text  # the pair shown is that of the fastest side


def test_2_sides_have_their_pair_and_no_figure_besides():
    grids = [block for block in document_of(TORCH, TENSORFLOW).section("cuda_api").blocks if isinstance(block, Grid)]
    assert [grid.columns[1].name for grid in grids] == ["domain", "domain"]


def test_names_of_12_sides_stay_whole_and_apart_in_80_columns():
    names = [f"framework_with_a_long_name_{number:02}" for number in range(12)]
    sides = [calls(name, cudaLaunchKernel=900 + number, cudaFree=100) for number, name in enumerate(names)]
    text = renderer("terminal").render(document_of(*sides), RenderOptions(80, sections=("cuda_api",)))
    assert max(map(len, text.splitlines())) <= 80
    figure = text.partition("share of CUDA API time on each side")[2].rpartition("framework_with_a_long_name_00 →")[0]
    assert figure.count("  cudaFree ") == 4  # three sides in each table
    assert sum(figure.count(f"name_{number:02}") for number in range(12)) == 12


def machine(label, **figures):
    return side(label, run(9, section("host", facts(**figures))), run(9, section("host", facts(**figures))))


def test_the_host_of_3_sides_is_a_row_each_and_what_was_not_measured_stays_unknown():
    a, b = machine("a", cpu_mean=0.5, rss_max=2_000_000_000, threads_max=8), machine("b", cpu_mean=0.25, threads_max=4)
    (grid,) = host_by_side((a, b, UNSEEN))
    assert [(row["side"], row["cpu_mean"], row["rss_max"], row["threads_max"]) for row in rows_of(grid)] == [
        ("a", 0.5, 2e9, 8.0),
        ("b", 0.25, None, 4.0),
        ("numpy", None, None, None),
    ]
    text = renderer("terminal").render(document_of(a, b, UNSEEN), RenderOptions(80, sections=("host",)))
    assert "  a      50.0 %  2.00 GB        8" in text
    assert "  numpy     -       -           -" in text


def test_blocks_of_3_pairs_say_in_facts_which_sides_they_are_of():
    blocks = document_of(TORCH, TENSORFLOW, JAX).section("cuda_api").blocks
    named = [{fact.key: fact.value for fact in block.facts} for block in blocks if not isinstance(block, Grid)]
    pairs = [
        (facts_of_pair["pair_base"], facts_of_pair["pair_new"])
        for facts_of_pair in named
        if "pair_base" in facts_of_pair
    ]
    assert pairs == [("torch", "tensorflow"), ("torch", "jax")]
    assert {
        block.audience for block in blocks if not isinstance(block, Grid) and block.facts[0].key == "pair_base"
    } == {"machine"}
