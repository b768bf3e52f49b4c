"""Two GPUs at work and two that are not; grids of fewer blocks than a device has multiprocessors are small."""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

GIB = 1 << 30


def kernel(start, dur, device, *grid):
    return (start, dur, "k", {"device_id": device, **dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=False))})


def device(number, name, sm_count, memory):
    return (number, name, {"ordinal": number, "sm_count": sm_count, "memory_bytes": memory})


def used(start, number, in_use, available):
    return (start, "alloc", 1, {"device_id": number, "in_use_bytes": in_use, "available_bytes": available})


LITERALS = (
    Literal(
        "devices",
        tables(
            devices=[
                *(device(0, "A", 80, 4 * GIB), device(1, "B", 40, 2 * GIB), device(2, "C", 60, 3 * GIB)),
                device(3, "D", 50, GIB),
                (4, "CPU", {"kind": "cpu"}),
            ],
            kernels=[
                *(kernel(0, 100, 0, 20, 2), kernel(50, 150, 0, 40, 2), kernel(300, 60, 0, 79)),
                *(kernel(0, 200, 1, 13, 1, 3), kernel(400, 300, 1, 5, 4, 2), kernel(800, 40, 1, 39)),
            ],
            host_ops=[(0, 10, "aten::mm")],
            memory_events=[used(10, 0, 100, 1_100), used(20, 0, 600, 400), used(30, 1, 450, 550), used(40, 1, 1, 999)],
        ),
        {
            "facts": {
                "visible": 4,
                "computing": 2,
                "small_grid_share": (100 + 60 + 200 + 40) / (310 + 540),  # of the sum of durations
                "memory_used_share": 600 / 1_200,  # the second of the events of device 0, of what the first shows
            },
            "": {
                "device": ["GPU 0 A", "GPU 1 B", "GPU 2 C", "GPU 3 D"],
                "kernels": [3, 3, 0, 0],
                "kernel_ns": [260, 540, 0, 0],  # 50 ns of the first two are common
                "small_grid_share": [160 / 310, 240 / 540, None, None],
                "sm_count": [80, 40, 60, 50],
                "memory_bytes": [4 * GIB, 2 * GIB, 3 * GIB, GIB],
            },
        },
        {
            "facts/computing": "a device computes until its last kernel is left out",
            "/sm_count": "a device states it once",
            "/memory_bytes": "a device states it once",
        },
    ),
)
