"""Statements from small outputs, as the tools gave them; no tool is needed."""

import json

import pytest

from benchmarks.diagnosis.other_tools.adapters import ask_gpu_idle, ask_hta, ask_nsys_ai, ask_tracelens, ask_xprof
from benchmarks.diagnosis.other_tools.adapters.protocol import CANNOT_JUDGE, Statement, reply


def leads(statements):
    return [(statement.kind, statement.share) for statement in statements]


def test_gpu_idle_answers_for_the_rank_whose_device_is_least_busy():
    busy = {"findings": [], "measurements": {"busy_pct": 91.0}}
    idle = {
        "findings": [
            {"cause": "dataloader", "confidence": 0.37, "evidence": "The GPU is busy 63% of the time.", "fix": ""},
            {"cause": "h2d_copy", "confidence": 0.3, "evidence": "12% of the step is copying.", "fix": ""},
        ],
        "measurements": {"busy_pct": 63.0},
    }

    assert leads(ask_gpu_idle.statements([busy, idle])) == [("dataloader", 0.37), ("h2d_copy", 0.3)]
    assert ask_gpu_idle.statements([busy]) == []


def test_hta_classes_are_shares_of_the_time_of_all_ranks():
    classes = [
        {"rank": 0, "idle_time_pctg": 30.0, "compute_time_pctg": 60.0, "non_compute_time_pctg": 10.0},
        {"rank": 1, "idle_time_pctg": 10.0, "compute_time_pctg": 60.0, "non_compute_time_pctg": 30.0},
    ]
    idle = [
        {"rank": 0, "stream": 7, "idle_category": "host_wait", "idle_time": 20.0},
        {"rank": 1, "stream": 7, "idle_category": "kernel_wait", "idle_time": 15.0},
        {"rank": 1, "stream": 20, "idle_category": "host_wait", "idle_time": 5.0},
    ]
    kernels = [
        {"name": "gemm", "sum (us)": 900, "kernel_type": "COMPUTATION"},
        {"name": "ncclDevKernel_AllReduce", "sum (us)": 75, "kernel_type": "COMMUNICATION"},
        {"name": "Memcpy HtoD (Pinned -> Device)", "sum (us)": 25, "kernel_type": "MEMORY"},
    ]

    # Idle (30 + 10) / 2 %; other work (10 + 30) / 2 %, by kernels 3 : 1.
    assert leads(ask_hta.statements(classes, idle, kernels)) == [
        ("idle: host_wait", pytest.approx(0.2)),
        ("communication", pytest.approx(0.15)),
        ("memory: HtoD", pytest.approx(0.05)),
    ]


GAPS = {
    "label": "GPU Idle Summary (25.0% of profile)",
    "severity": "warning",
    "headroom_ms": 500.0,
    "start_ns": 0,
    "end_ns": 2_500_000_000,
    "provenance": {"skill": "gpu_idle_gaps", "row_kind": "summary"},
}
BOUND = {
    "label": "Critical path is gpu-compute-bound",
    "severity": "info",
    "provenance": {"skill": "critical_path", "row_kind": "bound_class"},
}
KERNEL = {"label": "Top kernel dominates", "severity": "warning", "provenance": {"skill": "top_kernels"}}


def test_nsys_ai_findings_count_if_they_warn_and_have_a_time_to_recover():
    advice = "CPU is not feeding GPU fast enough. Increase DataLoader num_workers"
    pattern = {"pattern": "GPU Bubbles (Pipeline Stalls)", "recommendation": advice}

    found = ask_nsys_ai.statements({"findings": [KERNEL, GAPS, BOUND], "skipped": []}, [pattern])

    assert leads(found) == [("idle: cpu stall", 0.2), ("gpu-compute-bound", None)]
    # Words of its advice are no finding: they could name a place by chance.
    assert "DataLoader" not in found[0].text
    assert leads(ask_nsys_ai.statements({"findings": [GAPS]}, [])) == [("gpu_idle_gaps", 0.2)]


def test_nsys_ai_is_silent_below_its_own_limit_and_abstains_if_it_skips_its_analyses():
    little = {**GAPS, "severity": "info"}

    assert leads(ask_nsys_ai.statements({"findings": [little, BOUND]}, [])) == [("gpu-compute-bound", None)]
    assert leads(ask_nsys_ai.statements({"findings": [], "skipped": [{"reason": "no kernels"}]}, [])) == [
        (CANNOT_JUDGE, None)
    ]


def timeline(compute, communication, copies, idle):
    names = ("computation_time", "exposed_comm_time", "exposed_memcpy_time", "idle_time")
    return [
        {"type": name, "time ms": 1.0, "percent": share}
        for name, share in zip(names, (compute, communication, copies, idle), strict=True)
    ]


def test_tracelens_classes_are_ordered_by_share_without_computation():
    assert leads(ask_tracelens.statements([timeline(66, 12, 6, 16)], {"DtoH": 2.0, "HtoD": 5.0}, None)) == [
        ("idle_time", pytest.approx(0.16)),
        ("exposed_comm_time", pytest.approx(0.12)),
        ("exposed_memcpy_time: HtoD", pytest.approx(0.06)),
    ]


@pytest.mark.parametrize(("skew", "kind"), [(6_282.0, "exposed_comm_time: skew"), (100.0, "exposed_comm_time")])
def test_tracelens_communication_is_skew_if_ranks_wait_longer_than_they_transfer(skew, kind):
    ranks = [timeline(60, 40, 0, 0), timeline(80, 20, 0, 0)]

    assert leads(ask_tracelens.statements(ranks, {}, (skew, 333.0)))[0] == (kind, pytest.approx(0.3))


NOT_INPUT = "Your program is NOT input-bound because only 0.0% of the total step time sampled is waiting for input."
POTENTIALLY = (
    "Your program is POTENTIALLY input-bound because {}% of the total step time sampled is spent on 'All Others'"
)


@pytest.mark.parametrize(
    ("conclusion", "expected"),
    [
        (NOT_INPUT, []),
        (NOT_INPUT.replace("NOT", "HIGHLY").replace("only 0.0", "36.1"), [("input", 0.361)]),
        (POTENTIALLY.format("3.7"), []),
        (POTENTIALLY.format("58.0"), [("potentially input", 0.58)]),
    ],
)
def test_xprof_input_is_its_conclusion(conclusion, expected):
    assert leads(ask_xprof.statements({"input_conclusion": conclusion})) == [
        (kind, pytest.approx(share)) for kind, share in expected
    ]


def test_xprof_parts_count_if_it_calls_them_high():
    tables = [
        {"p": {"input_conclusion": NOT_INPUT}},
        {"p": {"device_collectives_bottleneck": "high", "device_collectives_statement": "31.5 % is spent on it."}},
        {"p": {"kernel_launch_bottleneck": "moderate", "kernel_launch_statement": "5.5 % is spent on it."}},
        {"cols": [], "rows": []},
    ]

    assert leads(ask_xprof.statements(ask_xprof.properties(tables))) == [("device_collectives", pytest.approx(0.315))]


def test_a_reply_is_statements_or_the_error_of_the_tool(capsys):
    def answer(paths):
        return [Statement("idle", 0.5, paths[0])]

    assert reply(json.dumps({"paths": ["a"]}), answer) == {"statements": [{"kind": "idle", "share": 0.5, "text": "a"}]}
    assert reply('{"paths": []}', answer) == {"error": "IndexError: list index out of range"}
    assert "IndexError" in capsys.readouterr().err
