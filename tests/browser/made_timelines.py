"""Timelines that are made: of any size, with everything that a trace may have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceviz.report.pictures.values import Array, Arrows, Curve, Detail, Family, Lane, LaneKind, Level, Row, Timeline

FAMILIES = (
    *(Family("step", "step"), Family("device_compute", "device compute"), Family("input_wait", "input wait")),
    *(
        Family("kernel_launch", "kernel launch"),
        Family("matmul", "matrix product"),
        Family("elementwise", "elementwise"),
    ),
    *(Family("reduction", "reduction"), Family("collective", "collective"), Family("copy", "copy")),
    *(Family("launch_call", "launch"), Family("sync_call", "synchronisation"), Family("op", "operator")),
    Family("host_compute", "other host time"),
)
NAMES = (
    *(("training step", 0), ("device compute", 1), ("input wait", 2), ("kernel launch", 3), ("other host time", 12)),
    *(("ampere_sgemm_128x64_tn", 4), ("void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm>(Params)", 4)),
    *(("void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int, float*)", 5),),
    *(("void at::native::reduce_kernel<512, 1>(ReduceOp<float>)", 6), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 7)),
    *(("Memcpy HtoD", 8), ("cudaLaunchKernel", 9), ("cudaStreamSynchronize", 10), ("aten::linear", 11)),
    *(("aten::addmm", 11), ("aten::add", 11), ("DataLoader.__next__", 2), ("optimizer.step", 11)),
)
STEP = 20_000_000
"""Nanoseconds of a step."""


def row(starts: Array, durations: Array, names: Array, first: int) -> Row:
    """Return a row whose events count up from ``first``."""
    return Row(*(np.asarray(one, np.int64) for one in (starts, durations, names)), first + np.arange(len(starts)))


def levels_of(made: Row, start: int, end: int) -> tuple[Level, ...]:
    """Return levels with 512 cells and more, four times as many each, the finest first."""
    if made.starts.size < 2_000:
        return ()
    levels = []
    cells = 512
    while cells * 4 <= made.starts.size:
        levels.append(level_of(made, start, -(-(end - start) // cells)))
        cells *= 4
    return tuple(reversed(levels))


def level_of(made: Row, start: int, width: int) -> Level:
    """Return cells of spans by their start, which is close enough for short spans; names of the longest."""
    cells = (made.starts - start) // width
    order = np.lexsort((made.durations, cells))
    last = np.flatnonzero(np.diff(cells[order], append=-1))
    covered = np.bincount(cells, made.durations)[cells[order][last]] / width
    return Level(
        width, cells[order][last], made.names[order][last], np.clip(np.rint(covered * 255), 1, 255).astype(np.int64)
    )


def made_timeline(events: int, ranks: int = 2, *, kept: int | None = None) -> Timeline:
    """Return about so many events on ``ranks`` ranks, with steps, classes, two streams, calls and nested operators."""
    rng = np.random.default_rng(7)
    per_rank = max(200, events // ranks)
    kernels = per_rank * 4 // 10
    per_step = max(10, min(4_000, kernels // 20))
    steps = max(2, kernels // per_step)
    end = steps * STEP
    lanes: list[Lane] = []
    arrows: list[Arrows] = []
    curves: list[Curve] = []
    number = 1
    for rank in range(ranks):
        group = f"rank {rank}"
        begins = np.arange(steps) * STEP
        lengths = (STEP * rng.uniform(0.8, 0.99, steps)).astype(np.int64)
        step_row = row(begins, lengths, np.zeros(steps), number)
        number += steps
        parts = np.stack([begins, begins + lengths // 5, begins + lengths * 4 // 5, begins + lengths], 1).ravel()
        classes = row(parts, np.diff(parts, append=end), np.tile([2, 1, 3, 4], steps), number)
        number += len(parts)
        made_kernels = _kernels(rng, begins + lengths // 5, lengths * 3 // 5, per_step, number)
        number += made_kernels.starts.size
        calls = row(
            np.maximum(made_kernels.starts - STEP // 10, 0),
            np.maximum(made_kernels.durations // 3, 0),
            np.where(rng.random(made_kernels.starts.size) < 0.02, 12, 11),
            number,
        )
        number += calls.starts.size
        side = row(begins + lengths // 6, lengths // 12, np.full(steps, 10), number)
        number += steps
        collective = row(begins + lengths * 3 // 4, lengths // 15 + rank * 200_000, np.full(steps, 9), number)
        number += steps
        operators = _operators(rng, begins, lengths, max(4, per_step // 4), number)
        number += sum(one.starts.size for one in operators)
        arrows.append(Arrows("launch", calls.events, made_kernels.events))
        lanes += [
            _lane("steps", f"{rank}/steps", "steps", group, [step_row], end),
            _lane("time by class", f"{rank}/classes", "classes", group, [classes], end),
            _lane("stream 7", f"{rank}/7", "device", group, [made_kernels], end),
            _lane("stream 20", f"{rank}/20", "device", group, [collective, side], end),
            _lane("MainThread (4711) operators", f"{rank}/ops", "ops", group, operators, end),
            _lane("MainThread (4711) CUDA API", f"{rank}/api", "api", group, [calls], end),
        ]
        times = np.arange(0, end, max(end // 400, 1))
        curves += [
            Curve(
                f"{rank}/cpu",
                "processor use",
                group,
                "ratio",
                times,
                0.4 + 0.3 * np.sin(times / end * 40) + 0.05 * rng.random(times.size),
            ),
            Curve(f"{rank}/power", "power", group, "watt", times, 210 + 80 * rng.random(times.size)),
        ]
    if ranks > 1:
        first, second = lanes[3].rows[0], lanes[9].rows[0]
        arrows.append(Arrows("collective", first.events, second.events))
    total = sum(one.starts.size for lane in lanes for one in lane.rows)
    made = Timeline(
        0,
        end,
        tuple(name for name, _ in NAMES),
        FAMILIES,
        np.array([family for _, family in NAMES]),
        tuple(lanes),
        tuple(curves),
        tuple(arrows),
        total,
        total,
    )
    return made if kept is None else limited(made)


def _kernels(rng: np.random.Generator, begins: Array, lengths: Array, per_step: int, first: int) -> Row:
    weights = rng.exponential(1, (begins.size, per_step * 2))
    edges = np.cumsum(weights, 1) / weights.sum(1, keepdims=True)
    edges = (
        begins[:, None] + np.concatenate([np.zeros((begins.size, 1)), edges[:, :-1]], 1) * lengths[:, None]
    ).astype(np.int64)
    starts, ends = edges[:, 0::2].ravel(), edges[:, 1::2].ravel()
    return row(starts, np.maximum(ends - starts, 0), rng.choice([5, 6, 7, 7, 7, 8], starts.size), first)


def _operators(rng: np.random.Generator, begins: Array, lengths: Array, per_step: int, first: int) -> list[Row]:
    outer = row(
        np.stack([begins, begins + lengths // 5, begins + lengths * 9 // 10], 1).ravel(),
        np.stack([lengths // 6, lengths * 2 // 3, lengths // 12], 1).ravel(),
        np.tile([16, 13, 17], begins.size),
        first,
    )
    second = _kernels(rng, begins + lengths // 5, lengths * 2 // 3, per_step, first + outer.starts.size)
    second = replace(second, names=rng.choice([13, 14, 15], second.starts.size))
    third = row(
        second.starts + second.durations // 4,
        second.durations // 2,
        rng.choice([14, 15], second.starts.size),
        first + outer.starts.size + second.starts.size,
    )
    return [outer, second, third]


def _lane(label: str, key: str, kind: LaneKind, group: str, rows: list[Row], end: int) -> Lane:  # noqa: PLR0917
    return Lane(key, label, kind, group, tuple(rows), tuple(levels_of(one, 0, end) for one in rows))


def limited(made: Timeline) -> Timeline:
    """Return the same with every event of the third step only, as a budget leaves it."""
    detail = Detail(2 * STEP, 3 * STEP, "slowest step")
    lanes = tuple(_limited_lane(lane, detail) for lane in made.lanes)
    kept = sum(one.starts.size for lane in lanes for one in lane.rows)
    return replace(made, lanes=lanes, kept=kept, details=(detail,))


def _limited_lane(lane: Lane, detail: Detail) -> Lane:
    rows = []
    for one, levels in zip(lane.rows, lane.levels, strict=True):
        keep = (one.starts < detail.end_ns) & (one.starts + one.durations > detail.start_ns) if levels else slice(None)
        rows.append(Row(one.starts[keep], one.durations[keep], one.names[keep], one.events[keep]))
    return replace(lane, rows=tuple(rows))
