"""Files of PyTorch's profiler and of Nsight Systems in which each engine left its steps."""

from tests.parsers.kineto import files as k
from tests.parsers.nsys.database import build, call, kernel, nvtx_range
from traceviz import api

VLLM = "execute_5_context_1(sq888sk888sqsq788544sqsk788544)_generation_2(sq2sk300sqsq2sqsk300)"


def report_on(tmp_path, events, **header):
    path = tmp_path / "engine.pt.trace.json"
    path.write_bytes(k.trace(events, header))
    return api.report_on(path)


def phases(report):
    return [(row["phase"], row["steps"], row["requests"], row["tokens"]) for row in report.rows("serving")]


def test_vllm_in_a_file_of_pytorch(tmp_path):
    events = [
        k.annotation(VLLM, 0, 100),
        k.device_annotation(VLLM, 20, 60),  # the profiler's copy next to the kernels is no second step
        k.runtime("cudaLaunchKernel", 10, 5, correlation=1),
        k.kernel("gemm", 20, 60, correlation=1),
        k.annotation("execute_context_0(0)_generation_3(3)", 150, 50),
    ]
    report = report_on(tmp_path, events)
    assert phases(report) == [("mixed", 1, 3.0, 890), ("decode", 1, 3.0, 3)]
    assert report.verdict.sentence.startswith(
        "Serving with vLLM: 1 mixed step of 890 tokens (100 µs) and 1 decode step of 3 requests (50.0 µs); "
        "the device is busy in 40.0 % of that time. Unexplained: in 53.3 % of steady step time the device idles"
    )


def test_profiler_steps_around_the_steps_of_vllm_are_not_what_is_judged(tmp_path):
    events = []
    for number in range(4):
        events += [k.step(number, 100 * number, 100), k.annotation("execute_new_0_cached_8", 100 * number + 30, 40)]
    report = report_on(tmp_path, [*events, k.op("aten::mm", 0, 1)])
    assert phases(report) == [("decode", 4, 8.0, None)]
    assert report.fact("steps", "median_ns") == 40_000


def test_sglang_ahead_of_an_amd_device_whose_list_names_another(tmp_path):
    outer = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"
    events = [
        k.annotation(outer, 0, 50),
        k.annotation("step[DECODE bs=32]", 5, 40),
        k.runtime("hipGraphLaunch", 10, 20, correlation=1),
        *[k.kernel(f"layer{i % 4}", 500 + 10 * i, 9, correlation=1, device=9) for i in range(40)],
    ]
    report = report_on(tmp_path, events, deviceProperties=[k.gpu(0, "AMD Instinct MI300X")])
    assert phases(report) == [("decode", 1, 32.0, 32)]
    assert "SGLang: 1 decode step of 32 requests, 399 µs on the device" in report.verdict.sentence
    assert report.fact("steps", "count") == 1  # and not ten layers


def test_tensorrt_llm_in_an_export_of_nsys(tmp_path):
    names = [f"[Executor] _forward_step {i}: {2 * (i == 0)} ctx reqs, {5 * (i > 0)} gen reqs" for i in range(3)]
    ranges = [nvtx_range(1000 * i, 1000 * i + 800, name) for i, name in enumerate(names)]
    tables = {
        "NVTX_EVENTS": ranges,
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1000 * i + 10, 1000 * i + 20, 2, correlationId=i) for i in range(3)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1000 * i + 100, 1000 * i + 500, correlationId=i) for i in range(3)],
    }
    report = api.report_on(build(tmp_path / "x.sqlite", tables, names=["gemm", "cudaLaunchKernel"]))
    assert phases(report) == [("prefill", 1, 2.0, None), ("decode", 2, 5.0, 10)]
    assert [row["host_gap_ns"] for row in report.rows("serving")] == [100.0, 100.0]
    assert report.fact("serving", "busy_share") == 0.5
    assert report.verdict.code == "serving"


def test_transformers_in_a_file_of_pytorch_with_its_stacks(tmp_path):
    utils = "transformers/generation/utils.py"
    prepared = [k.frame(f"{utils}(660): prepare_inputs_for_generation", start, 5) for start in (120, 400, 700)]
    events = [
        k.frame(f"{utils}(2581): generate", 0, 1000),
        k.frame(f"{utils}(2072): _prepare_generation_config", 10, 20),
        k.frame(f"{utils}(3122): _sample", 100, 900),
        *prepared,
        k.op("aten::embedding", 150, 10, args={"Input Dims": [[500, 64], [4, 17], [], [], []]}),
        k.op("aten::embedding", 450, 10, args={"Input Dims": [[500, 64], [4, 1], [], [], []]}),
        k.op("aten::embedding", 750, 10, args={"Input Dims": [[500, 64], [4, 1], [], [], []]}),
    ]
    report = report_on(tmp_path, events)
    assert phases(report) == [("prefill", 1, 4.0, 68), ("decode", 2, 4.0, 8)]
    assert [row["total_ns"] for row in report.rows("serving")] == [280_000, 600_000]
