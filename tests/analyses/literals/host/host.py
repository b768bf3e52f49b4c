"""A host and a GPU that were sampled for eight seconds, with a pause, around four steps of a second each.

::

    s              1    2   2.5   3    4    5    6   6.5   7    8
    program CPU   100  200  [   300       400  250   ]   150  350     percent of a core; steps from 2.5 to 6.5
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

SECOND = 10**9
GIB = 1 << 30
MOMENTS, CPU = (1, 2, 3, 5, 6, 7, 8), (100, 200, 300, 400, 250, 150, 350)
IN_UNITS, IN_WORDS = "Metrics in the units in which they were sampled", "Metrics over the whole run"
CORES = "Cores of the machine, whoever used them"


def sampled(metric, unit, *values, **more):
    return [
        (moment * SECOND, metric, float(value), {"unit": unit, "device_id": None, **more})
        for moment, value in zip(MOMENTS, values, strict=False)
    ]


LITERALS = (
    Literal(
        "host",
        tables(
            span_ns=8 * SECOND,
            steps=[(2_500_000_000 + step * SECOND, SECOND, step) for step in range(4)],
            settings=[
                *(("machine.cores", "8"), ("machine.cpu_limit", "4"), ("machine.physical_cores", "6")),
                *(("machine.memory_bytes", str(16 * GIB)), ("machine.memory_limit_bytes", str(8 * GIB))),
                *(("resources.cost", "0.02"), ("resources.start_ns", "30000000")),
            ],
            devices=[(0, "H100", {"ordinal": 0})],
            processes=[(0, "python", {"pid": 1_000}), (1, "worker", {"pid": 1_001})],
            samples=[
                *sampled("program CPU", "%", *CPU),
                *sampled("program memory", "bytes", 1_000, 3_000, 2_000),
                *sampled("program threads", "count", 5, 9, 7),
                *sampled("program processes", "count", 1, 3),
                *sampled("GPU utilisation", "%", 50, 70, device_id=0),
                *sampled("process CPU", "%", 100, 200, process_id=0),
                *sampled("process CPU", "%", 50, 70, process_id=1),
                *sampled("process memory", "bytes", 500, 800, process_id=0),
                *sampled("process memory", "bytes", 300, 200, process_id=1),
                *sampled("core 0", "%", 90, 70),
                *sampled("core 1", "%", 20, 40),
            ],
        ),
        {
            "facts": {
                "cpu_mean": 2.5 / 4,
                "busy_cores": 1_750 / 7 / 100,
                "steady_busy_cores": (200 + 300 + 400 + 250 + 150) / 5 / 100,  # the five samples nearest to the steps
                "cores": 4.0,  # the least of what there is and what is allowed
                "physical_cores": 6,
                "rss_max": 3_000,
                "memory_bytes": 8 * GIB,
                "threads_max": 9,
                "processes_max": 3,
                "gpu_mean": 0.6,
                "samples": 7,
                "sample_interval_ns": 1_166_666_667,  # 7 s in 6 intervals
                "longest_interval_ns": 2 * SECOND,
                "sampler_cost": 0.02,
                "sampler_start_ns": 30_000_000,
            },
            IN_UNITS: {
                "metric": ["program CPU", "program memory", "program threads", "program processes", "GPU utilisation"],
                "device": ["", "", "", "", "GPU 0 H100"],
                "unit": ["%", "bytes", "count", "count", "%"],
                "mean": [250.0, 2_000.0, 7.0, 2.0, 60.0],
                "p95": [350 + 0.7 * 50, 2_000 + 0.9 * 1_000, 7 + 0.9 * 2, 1 + 0.95 * 2, 50 + 0.95 * 20],
                "max": [400.0, 3_000.0, 9.0, 3.0, 70.0],
            },
            IN_WORDS: {
                "label": ["CPU, program", "memory", "threads", "processes", "GPU 0 H100 utilisation"],
                "mean": ["2.5 cores", "2.00 kB", "7", "2", "60.0 %"],
                "p95": ["3.85 cores", "2.90 kB", "8.8", "2.9", "69.0 %"],
                "max": ["4 cores", "3.00 kB", "9", "3", "70.0 %"],
            },
            "Processes": {
                "process": ["python", "worker"],
                "pid": [1_000, 1_001],
                "busy_cores": [1.5, 0.6],
                "memory_bytes": [800, 300],
            },
            CORES: {
                "key": ["core_0", "core_1"],
                "value": [0.8, 0.3],
                "core": [0, 1],
                "busy_share": [0.8, 0.3],
            },
        },
        {
            **dict.fromkeys(("facts/cores", "facts/physical_cores", "facts/memory_bytes"), "a setting"),
            **dict.fromkeys(("facts/sampler_cost", "facts/sampler_start_ns"), "a setting"),
            **dict.fromkeys(("facts/rss_max", "facts/threads_max", "facts/processes_max"), "one sample is the highest"),
            "Processes/pid": "a process has one",
            f"{CORES}/core": "a core has one number",
        },
    ),
)
