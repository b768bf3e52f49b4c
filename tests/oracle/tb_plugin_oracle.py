"""Results of PyTorch's TensorBoard plugin for a trace, as JSON: run by the Python that TRACEVIZ_ORACLE names.

The last release (torch-tb-profiler 0.4.3) does not know the categories that PyTorch writes since 2022. Its latest
source does; the two changes that matter are made here. Copies of annotations on the device's timeline are left out,
because both versions would take them for steps and work of the host.

Usage: python tb_plugin_oracle.py TRACE
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from torch_tb_profiler.profiler import trace
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator

CLASSES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec", "other", "step")


def as_of_the_last_source() -> None:
    """Count calls of ``cuda_runtime``, and annotations of the host."""
    create = trace.create_trace_event

    def annotations_too(event: dict[str, Any], *options: Any) -> Any:
        made = create(event, *options)
        if made is None and event["cat"] == "user_annotation":
            return trace.OperatorEvent(trace.EventTypes.USER_ANNOTATION, event)
        return made

    trace.EventTypeMap["cuda_runtime"] = trace.EventTypes.RUNTIME
    trace.create_trace_event = annotations_too


def load(file: Path) -> dict[str, Any]:
    """Return the trace without what the plugin cannot read."""
    data = file.read_bytes()
    document = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    document = document if isinstance(document, dict) else {"traceEvents": document}
    usable = [event for event in document["traceEvents"] if event.get("cat", "") != "gpu_user_annotation"]
    return {**document, "traceEvents": [{"cat": "", "name": "", **event} for event in usable]}


def main() -> None:
    """Print steps (µs), their average, figures of GPUs and recommendations."""
    as_of_the_last_source()
    data = RunProfileData.from_json("worker", "span", load(Path(sys.argv[1])))
    made = RunGenerator("worker", "span", data).generate_run_profile()
    steps = [dict(zip(CLASSES, costs.costs, strict=True)) for costs in data.steps_costs]
    answer = {
        "steps": [{"name": name, **costs} for name, costs in zip(data.steps_names, steps, strict=True)],
        "average": dict(zip(CLASSES, data.avg_costs.costs, strict=True)),
        "performance": made.overview["performance"],
        "gpus": made.gpu_summary,
        "recommendations": data.recommendations,
        "operators": made.operation_table_by_name,
        "kernels": made.kernel_table,
    }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
