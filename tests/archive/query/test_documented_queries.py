"""Every query of docs/queries.md returns what its text states, on numbers that are added up by hand."""

import re

import pytest

from scripts.generate_docs import DOCS
from tests.analyses.builders import tables
from tests.archive.small_archives import GEMM, add_trace, documented, finding, new_archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.population.population import at_stake, with_times
from traceviz.archive.query.engine import Engine
from traceviz.archive.query.shards import engine_over_parts
from traceviz.archive.runners.local import SerialRunner

PAGE = (DOCS / "queries.md").read_text(encoding="utf-8")
QUERIES = dict(
    re.findall(r"^### (.+?)\n.*?```sql\n(.+?)```", PAGE.split("## Ten queries")[1], re.MULTILINE | re.DOTALL)
)
A1, A2, B1 = "a000000000000001", "a000000000000002", "b000000000000001"

ANSWERS = {
    # streams: 6 × 30; launches: 2 × 10 and 60; one cudaFree of 20
    "CUDA API time by framework": [
        {"framework": "pytorch", "name": "cudaStreamCreateWithFlags", "calls": 1, "total_ns": 15, "api_share": 15 / 20},
        {"framework": "pytorch", "name": "cudaLaunchKernel", "calls": 1, "total_ns": 5, "api_share": 5 / 20},
        {
            "framework": "tensorflow",
            "name": "cudaStreamCreateWithFlags",
            "calls": 6,
            "total_ns": 180,
            "api_share": 180 / 280,
        },
        {"framework": "tensorflow", "name": "cudaLaunchKernel", "calls": 3, "total_ns": 80, "api_share": 80 / 280},
        {"framework": "tensorflow", "name": "cudaFree", "calls": 1, "total_ns": 20, "api_share": 20 / 280},
    ],
    # gemm: 100 and 100, then 150 and 170; relu: 50, then 51, which is within 5 %
    "Kernels that got slower between two tags": [
        {
            "name": GEMM,
            "gpu": "A100",
            "calls": 2,
            "old_ns": 100.0,
            "new_ns": 160.0,
            "slowdown": 1.6,
            "lost_ns": 120.0,
        }
    ],
    # all kernels lie within the time that the steps take: so do all calls
    "Streams created in every step": [
        {"trace_id": A1, "source": "trace", "steps": 3, "calls": 6, "calls_per_step": 2.0, "total_ns": 180},
        {"trace_id": B1, "source": "trace", "steps": 10, "calls": 1, "calls_per_step": 0.1, "total_ns": 15},
    ],
    "Input-bound runs, worst first": [
        {
            "trace_id": A1,
            "rank": None,
            "source": "trace",
            "verdict": "highly input-bound",
            "input_share": 0.5,
            "step_median": 1000,
            "waited_ns": 0.5 * 1100 * 3,
        },
        {
            "trace_id": B1,
            "rank": 1,
            "source": "trace",
            "verdict": None,
            "input_share": 0.2,
            "step_median": 700,
            "waited_ns": 0.2 * 700 * 5,
        },
        {
            "trace_id": A2,
            "rank": None,
            "source": "trace",
            "verdict": "not input-bound",
            "input_share": 0.01,
            "step_median": 3000,
            "waited_ns": 0.01 * 3000 * 4,
        },
    ],
    "GPU time by family of kernels": [
        {"family": "matrix product", "traces": 2, "kernels": 4, "total_ns": 520, "gpu_share": 520 / 671},
        {"family": "elementwise", "traces": 2, "kernels": 2, "total_ns": 101, "gpu_share": 101 / 671},
        {"family": "communication", "traces": 1, "kernels": 2, "total_ns": 50, "gpu_share": 50 / 671},
    ],
    "Copies from pageable and from pinned memory": [
        {
            "kind": "h2d",
            "host_memory": "pageable",
            "copies": 2,
            "bytes": 10_000,
            "total_ns": 100,
            "bytes_per_second": 1e11,
        },
        {
            "kind": "d2h",
            "host_memory": "pinned",
            "copies": 1,
            "bytes": 1000,
            "total_ns": 20,
            "bytes_per_second": 5e10,
        },
        {
            "kind": "h2d",
            "host_memory": "pinned",
            "copies": 1,
            "bytes": 4000,
            "total_ns": 10,
            "bytes_per_second": 4e11,
        },
    ],
    "Time in collectives by rank": [
        {"job": "job42", "rank": 0, "calls": 2, "total_ns": 100, "median_ns": 50.0},
        {"job": "job42", "rank": 1, "calls": 1, "total_ns": 10, "median_ns": 10.0},
    ],
    # recorded: 10,000 and 20,000 and two ranks of 30,000
    "Findings by time at stake": [
        {
            "code": "TV101",
            "name": "input-bound",
            "traces": 1,
            "stake_ns": 1500,
            "recorded_share": 1500 / 90_000,
            "largest_share": 0.5,
        },
        {
            "code": "TV203",
            "name": "pageable-copies",
            "traces": 2,
            "stake_ns": 1200,
            "recorded_share": 1200 / 90_000,
            "largest_share": 0.2,
        },
    ],
    # cores at 20 %, 90 %, and 100 %, which is in the last quarter
    "Processors of the host against the wait for input": [
        {"from_cpu_share": 0.0, "runs": 1, "median_input_share": 0.01, "largest_input_share": 0.01},
        {"from_cpu_share": 0.75, "runs": 2, "median_input_share": 0.35, "largest_input_share": 0.5},
    ],
    "Runs of every month, and their median step": [
        {"month": "2026-05", "traces": 2, "median_step_ns": 2000.0},
        {"month": "2026-06", "traces": 1, "median_step_ns": 600.0},
    ],
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with Engine(documented(tmp_path_factory.mktemp("documented") / "archive")) as opened:
        yield opened


def test_there_are_ten_queries_and_each_has_an_answer_here() -> None:
    assert len(QUERIES) == 10
    assert list(QUERIES) == list(ANSWERS)


@pytest.mark.parametrize("title", ANSWERS)
def test_a_documented_query_gives_the_answer_that_its_numbers_add_up_to(engine, title) -> None:
    answer = engine.sql(QUERIES[title]).to_pylist()
    assert [list(row) for row in answer] == [list(row) for row in ANSWERS[title]]
    for row, expected in zip(answer, ANSWERS[title], strict=True):
        assert row == pytest.approx(expected)


def test_streams_of_the_start_do_not_count_and_those_of_every_step_do(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    steps = {"steps": 6, "step_median": 1000}  # of two processes: 3 each, from 7,000 to 10,000
    kernels = [(9_900, 100, GEMM), (9_000, 100, GEMM, {"process_id": 1})]
    started = [(start, 30, "cudaStreamCreateWithFlags") for start in (0, 100, 6_999)]
    again = [(start, 20, "cudaStreamCreateWithFlags") for start in (7_000, 7_100, 8_000, 8_100, 9_000, 9_100)]
    add_trace(store, "1a", tables(kernels=kernels, cuda_api=started), **steps)
    add_trace(store, "2a", tables(kernels=kernels, cuda_api=started + again), **steps)
    add_trace(store, "3a", tables(kernels=kernels, cuda_api=started + again))  # no steps were found
    with Engine(store) as engine:
        answer = engine.sql(QUERIES["Streams created in every step"]).to_pylist()
    assert answer == [
        {"trace_id": "2a", "source": "trace", "steps": 6, "calls": 6, "calls_per_step": 1.0, "total_ns": 120}
    ]


def test_what_the_page_divides_is_what_1_query_gives(engine, tmp_path_factory) -> None:
    section = PAGE.split("## Workers")[1].split("## Ten queries")[0]
    per_part, second = re.findall(r'"(SELECT.*?)"', section, re.DOTALL)
    whole = """
        SELECT framework, name, count(*) AS calls, sum(dur_ns) AS total_ns, avg(dur_ns) AS mean_ns,
               max(dur_ns) AS longest_ns, sum(dur_ns) / sum(sum(dur_ns)) OVER (PARTITION BY framework) AS api_share
        FROM cuda_api JOIN traces USING (trace_id) GROUP BY framework, name ORDER BY total_ns DESC, framework, name"""
    store = documented(tmp_path_factory.mktemp("divided") / "archive")
    with engine_over_parts(store, per_part, SerialRunner(), size=1) as divided:
        answer = divided.sql(second).to_pylist()
    assert answer == engine.sql(whole).to_pylist()
    assert len(answer) == 5


def test_what_is_at_stake_is_at_most_the_share_of_what_was_recorded(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    several = [finding("TV101", "input-bound", 0.25, 9000), finding("TV999", "other", None, 9000)]
    add_trace(store, "1a", tables(), span_ns=4000, findings=several)
    with Engine(store) as engine:
        answer = engine.sql(QUERIES["Findings by time at stake"]).to_pylist()
    assert {row["code"]: row["stake_ns"] for row in answer} == {"TV101": 1000, "TV999": 4000}
    shown = at_stake(with_times(catalogue.read(store)))
    assert dict(shown.select("code", "stake_ns").iter_rows()) == {"TV101": 1000, "TV999": 4000}


def test_views_of_the_catalogue_have_the_columns_that_the_page_names(engine) -> None:
    rows = dict(re.findall(r"^\| `(findings|tags)` \| (.*?) \|$", PAGE, re.MULTILINE))
    named = {name: re.findall(r"`(\w+)`", cells) for name, cells in rows.items()}
    assert named == {name: engine.sql(f"FROM {name}").column_names for name in ("findings", "tags")}
