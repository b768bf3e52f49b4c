"""A training of eight epochs that ends well, with power and memory sampled; and calls of a model until they are killed.

::

    s   0          3         5      7        19       21     40
        | start-up | epoch 0 | torch | epochs 1 to 7 | end   |
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

S = 1_000_000_000
MS = 1_000_000
ALL = {"process_id": None}
"""A setting of the run, not of one of its processes."""
HOST = {"device_id": None}
LONGER = [1000, 0, 100, 200, 300, 400, 500, 600]
"""Time of an epoch beyond its ten steps of 100 ms, in ms."""


def epochs():
    """Yield ``start_ns, dur_ns, kind, name`` of epochs and their steps; the recording is saved after the first."""
    begin = 3 * S
    for number, longer in enumerate(LONGER):
        yield (begin, (1000 + longer) * MS, "epoch", "torch", {"number": number})
        for step in range(10):
            yield (begin + step * 100 * MS, 100 * MS, "step", "torch_optimizer", {"number": 10 * number + step})
        begin += (1000 + longer) * MS + (2 * S if number == 0 else 0)


def sampled(metric, values, unit, **more):
    return [(at * S, metric, value, {"unit": unit, **more}) for at, value in enumerate(values)]


TRAINED = tables(
    phases=[
        (0, 40 * S, "program", "train.py", {"thread_id": None}),
        (5 * S, S, "recording", "torch"),
        (6 * S, S, "recording", "resources"),
        *epochs(),
    ],
    samples=[
        *sampled("GPU power", [100] * 10 + [200] * 30, "W"),
        *sampled("GPU power", [50] * 40, "W", device_id=1),
        *sampled("GPU memory used", [7000, 7000, 6000], "bytes"),
        *sampled("program memory", [4000, 5000, 5000], "bytes", **HOST),
        *sampled("program CPU", [100, 150, 200], "%", **HOST),
    ],
    settings=[
        ("run.status", "finished", ALL),
        ("run.duration_ns", str(40 * S), ALL),
        ("run.exit.code", "0", ALL),
        ("process.batch", "32"),
    ],
)
JOULES = 600 + 150 + 1_100 + 625
"""From 3 s to the last step, at 15.5 s: 100 W until 9 s, 150 W on average until 10 s, 200 W from then on, and 50 W."""

APPLIED = tables(
    phases=[
        (0, 20 * S, "program", "serve.py", {"thread_id": None}),
        *(
            (S + at * 12 * MS, (12 if at % 20 == 0 else 10) * MS, "step", "torch_call", {"number": at})
            for at in range(200)
        ),
    ],
    settings=[
        ("run.status", "killed", ALL),
        ("run.exit.signal", "9", ALL),
        ("run.duration_ns", str(20 * S), ALL),
        ("process.gradients", "0"),
        ("process.batch", "8"),
    ],
)

OF_ENERGY = "2 devices, 12.5 s, first step to last"
OF_CALLS = "from call to call, batch 8; 200 calls"
PER_SECOND = 8 * 200 / (190 * 0.010 + 10 * 0.012)

LITERALS = (
    Literal(
        "measures",
        TRAINED,
        {
            "facts": {"outcome": "finished", "reason": None, "exit_code": 0, "signal": None, "batch": 32.0},
            "measures": {
                "key": [
                    *("total_ns", "training_ns", "start_ns", "first_epoch_ns", "epoch_ns", "epochs", "steps"),
                    *("samples_per_second", "energy_j", "energy_per_step_j", "energy_per_sample_j"),
                    *("host_memory_peak_bytes", "device_memory_peak_bytes", "cpu_mean"),
                ],
                "label": (
                    labels := [
                        *("total time", "time to the last step", "time to the first step", "first epoch", "epoch"),
                        *("epochs", "steps", "samples per second", "energy of devices", "energy per step"),
                        *("energy per sample", "memory of the host, most", "memory of a device, most", "busy cores"),
                    ]
                ),
                "value": [
                    *((40 - 2) * S, 13_500 * MS, 3 * S, 2 * S, 1_300 * MS, 8, 80, 32 / 0.1),
                    *(JOULES, JOULES / 80, JOULES / 80 / 32, 5000, 7000, 1.5),
                ],
                "unit": [
                    *["ns"] * 5,
                    *("count", "count", "per_second"),
                    *["joule"] * 3,
                    *("bytes", "bytes", "number"),
                ],
                "better": [*["lower"] * 5, "", "", "higher", *["lower"] * 5, ""],
                "count": [*[None] * 4, 7, None, None, 80, 80, 80, 80, 3, 3, 3],
                "low": [*[None] * 4, 1000 * MS, None, None, 320, *[None] * 6],
                "high": [*[None] * 4, 1600 * MS, None, None, 320, *[None] * 6],
                "about": (
                    about := [
                        *("start to end, without 2.00 s of recording", "from the start to the end of training"),
                        *("imports, data, the model", "without validation, saving"),
                        *("median of 7 epochs, without the first", "complete ones", "of the torch optimizer"),
                        *("batch 32; 80 steady steps", OF_ENERGY, OF_ENERGY, f"{OF_ENERGY}, batch 32"),
                        *("all its processes, sampled", "by all programs, sampled", "mean over the run"),
                    ]
                ),
            },
            "": {
                "label": labels,
                "shown": [
                    *("38.0 s", "13.5 s", "3.00 s", "2.00 s", "1.30 s", "8", "80", "320/s"),
                    *("2.48 kJ", "30.9 J", "967 mJ", "5.00 kB", "7.00 kB", "1.5"),
                ],
                "interval": [*[None] * 4, "1.00 to 1.60 s", None, None, "320 to 320/s", *[None] * 6],
                "about": about,
            },
        },
        {
            "facts/batch": "a setting",
            "facts/exit_code": "what the manifest says",
            "measures/high": "the longest epoch, and steps are all alike",
        },
    ),
    Literal(
        "measures",
        APPLIED,
        {
            "facts": {"outcome": "killed", "reason": "signal 9 (SIGKILL)", "exit_code": None, "signal": 9, "batch": 8},
            "measures": {
                "key": [
                    *("start_ns", "steps", "samples_per_second"),
                    *("latency_p50_ns", "latency_p95_ns", "latency_p99_ns"),
                ],
                "label": (
                    latencies := [
                        *("time to the first step", "steps", "samples per second"),
                        *("latency, median", "latency, 95 % below", "latency, 99 % below"),
                    ]
                ),
                "value": [S, 200, PER_SECOND, 10 * MS, 10_100_000, 12 * MS],
                "unit": ["ns", "count", "per_second", "ns", "ns", "ns"],
                "better": ["lower", "", "higher", "lower", "lower", "lower"],
                "count": [None, None, 200, 200, 200, 200],
                "low": [None, None, PER_SECOND, 10 * MS, None, None],
                "high": [None, None, PER_SECOND, 10 * MS, None, None],
                "about": [
                    *("imports, data, the model", "of the torch call", "batch 8; 200 steady steps"),
                    *[OF_CALLS] * 3,
                ],
            },
            "": {
                "label": latencies,
                "shown": ["1.00 s", "200", "792/s", "10.0 ms", "10.1 ms", "12.0 ms"],
                "interval": [None, None, "792 to 792/s", "10.0 to 10.0 ms", None, None],
                "about": [
                    *("imports, data, the model", "of the torch call", "batch 8; 200 steady steps"),
                    *[OF_CALLS] * 3,
                ],
            },
        },
        {
            "facts/batch": "a setting",
            "facts/signal": "what the manifest says",
        },
        name="of calls",
    ),
)
