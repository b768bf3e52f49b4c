"""A pool of a GPU that grows with every step, and memory of the host with recorded amounts only.

::

    ns        0    100  200 300    1000 1100 ...   5000 5100 5200 5300  6000
    step      [ 0              ]   [ 1             [ 5                ]
    GPU       1000k +70k +50k -50k      +100k ...       +90k +50k -50k
    after it            1070k 1170k 1290k 1370k 1480k 1570k            the peak is at 5200
    host           at 150: +4096 (a)     at 1150: +8192 (b)     at 2150: -4096 (a)     at 2500: +1000 (c)
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

KEPT, USE = (70_000, 100_000, 120_000, 80_000, 110_000, 90_000), (1_070, 1_170, 1_290, 1_370, 1_480, 1_570)
CAPACITY, PEAK = 2_000_000, 1_620_000


def of_gpu(start, kind, size, in_use, more):
    held = {"in_use_bytes": in_use, "available_bytes": CAPACITY - in_use, "pool": "GPU_0_bfc"}
    return (start, kind, size, {**held, **more})


def step(number):
    """Return an allocation that is kept, one that is not; the allocator holds 150,000 more than what is kept."""
    begin, in_use = 1_000 * number, 1_000 * USE[number]
    held, passing = {"reserved_bytes": in_use + 150_000}, {"address": 100 + number, "op": "t:Cast"}
    kept = {"address": number, "op": ("conv/Conv2D:Conv2D", "b/MatMul:MatMul")[number % 2]}
    return (
        of_gpu(begin + 100, "alloc", KEPT[number], in_use, {**held, **kept}),
        of_gpu(begin + 200, "alloc", 50_000, in_use + 50_000, {**held, **passing}),
        of_gpu(begin + 300, "free", 50_000, in_use, {**held, **passing}),
    )


def of_host(start, kind, size, address):
    return (start, kind, size, {"device_id": None, "memory": "pageable", "address": address, "peak_bytes": 20_000})


LITERALS = (
    Literal(
        "memory",
        tables(
            span_ns=6_000,
            steps=[(1_000 * number, 1_000, number) for number in range(6)],
            memory_events=[
                *(event for number in range(6) for event in step(number)),
                *(of_host(150, "alloc", 4_096, 1), of_host(1_150, "alloc", 8_192, 2)),
                *(of_host(2_150, "free", None, 1), of_host(2_500, "alloc", 1_000, 3)),
            ],
        ),
        {
            "facts": {
                "peak_bytes": PEAK,
                "peak_at_ns": 5_200,
                "capacity_bytes": CAPACITY,
                "used_share": 1_720 / 2_000,  # device memory that the allocator holds is not available to others
                "reserved_bytes": 1_720_000,
                "unused_reserved": 100_000,
                "allocations": 12 + 3,
            },
            "": {
                "pool": ["GPU_0_bfc", "pageable memory"],
                "peak_bytes": [PEAK, 4_096 + 8_192],
                "peak_at_ns": [5_200, 1_150],
                "capacity_bytes": [CAPACITY, None],
                "used_share": [1_720 / 2_000, None],
                "reserved_bytes": [1_720_000, None],
                "unused_reserved": [100_000, None],
                "lifetime_peak_bytes": [None, 20_000],
                "allocations": [12, 3],
                "frees": [6, 1],
                "allocated_bytes": [570_000 + 6 * 50_000, 4_096 + 8_192 + 1_000],
                "growth_bytes": [100_000, 0],  # the median of 100, 120, 80, 110 and 90 thousand
            },
            "What held the memory at the peak": {
                "op": ["allocated before the capture", "conv/Conv2D", "b/MatMul", "t", "op not recorded"],
                "pool": ["GPU_0_bfc", "GPU_0_bfc", "GPU_0_bfc", "GPU_0_bfc", "pageable memory"],
                "allocations": [None, 3, 3, 1, 2],
                "bytes": [1_000_000, 300_000, 270_000, 50_000, 12_288],
                "share_of_peak": [1_000_000 / PEAK, 300_000 / PEAK, 270_000 / PEAK, 50_000 / PEAK, 1.0],
            },
        },
        {
            **dict.fromkeys(("facts/peak_bytes", "facts/peak_at_ns"), "one event is the peak"),
            **dict.fromkeys(("facts/capacity_bytes", "/capacity_bytes"), "every event states it"),
            **dict.fromkeys(("facts/reserved_bytes", "/reserved_bytes"), "two events state the most"),
            **dict.fromkeys(("facts/used_share", "/used_share"), "a share of the one of what two events state"),
            **dict.fromkeys(("facts/unused_reserved", "/unused_reserved"), "one event is the peak"),
            "/lifetime_peak_bytes": "every event states it",
        },
    ),
)
