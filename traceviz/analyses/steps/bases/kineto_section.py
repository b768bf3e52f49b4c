"""The section of the report on step time by the classes of PyTorch's TensorBoard plugin, in its own wording."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.analyses.derived.statistics import frame_grid
from traceviz.analyses.steps.bases.kineto import CLASSES, COMMUNICATION, KINETO, TITLE, KinetoSteps
from traceviz.analyses.steps.bases.section import basis_blocks, class_totals
from traceviz.report import Block, Column, Fact, Grid, Row

MUCH_LOADING, MUCH_COMMUNICATION = 0.05, 0.1
"""Shares of step time above which the plugin recommends something."""
LITTLE_USE = 0.5
"""Utilisation of a GPU below which the plugin recommends something."""
_TENSOR_CORES_SINCE = 7
"""Least major compute capability with tensor cores."""
_GIB = 1024**3

_BLIND = (
    "a class hides those after it, so that what the host does while a kernel runs shows nowhere, and idle time behind "
    "a slow launch counts as CPU Exec; calls of the CUDA driver API and Python frames count as nothing"
)
_UNMARKED = " The trace marks no steps: its operators are one."

_CLASS_COLUMNS = (
    Column("class", "Key", "text", 9),
    Column("label", "Class", "text", 0),
    Column("per_step_ns", "Average step", "ns", 0),
    Column("share_of_step", "Of step time", "ratio", 0, bar=True),
    Column("total_ns", "Total", "ns", 1, additive=True),
)
_GPU_COLUMNS = (
    Column("device", "GPU", "text", 0),
    Column("process_id", "Process", "id", 9),
    Column("utilisation", "GPU utilization", "ratio", 0),
    Column("sm_efficiency", "Est. SM efficiency", "ratio", 0),
    Column("occupancy", "Est. occupancy", "ratio", 0),
    Column("tensor_core_share", "On tensor cores", "ratio", 1),
)


def kineto_blocks(steps: KinetoSteps) -> tuple[Block, ...]:
    """Return the average step, every step, the GPUs, and the plugin's recommendations."""
    totals = class_totals(steps, steps.classes)
    rows: tuple[Row, ...] = tuple(
        (g.device, g.process_id, g.utilisation, g.efficiency.sm_efficiency, g.efficiency.occupancy, g.tensor_core_share)
        for g in steps.gpus
    )
    gpus = (Grid(_GPU_COLUMNS, rows, title="GPUs"),) if rows else ()
    advice = " ".join(recommendations(steps))
    return basis_blocks(
        name=KINETO,
        remark=f"{TITLE}, not ours: {_BLIND}.{'' if steps.marked else _UNMARKED}",
        steps=steps,
        totals=totals,
        facts=(
            Fact("average_step_ns", "average step", round(steps.total("step_ns") / steps.count), "ns"),
            Fact("recommendations", "recommendations", advice),
            *(Fact(f"{c.key}_share", c.label, steps.share(c.key), "ratio") for c in CLASSES),
        ),
        grids=(
            frame_grid(_CLASS_COLUMNS, totals, "Average step"),
            Grid(_step_columns(steps), steps.rows(CLASSES), title="Steps"),
            *gpus,
        ),
        conclusion=f"Its recommendations: “{advice or 'N/A'}”",
    )


def recommendations(steps: KinetoSteps) -> Iterator[str]:
    """Yield the plugin's recommendations, its sentences without their links."""
    loading, communication = steps.share("data_loader"), steps.share(COMMUNICATION)
    clues = steps.clues
    if loading > MUCH_LOADING:
        yield (
            f"This run has high time cost on input data loading. {100 * loading:.1f}% of the step time is in "
            "DataLoader. You could try to set num_workers on DataLoader's construction and enable multi-processes on "
            "data loading."
        )
    if clues.data_parallel:
        yield "It is recommended to use DistributedDataParallel instead of DataParallel to do multi-GPU training."
    if clues.without_nccl:
        yield "Nccl backend is currently the fastest and highly recommended backend when using DDP for training."
    if communication > MUCH_COMMUNICATION:
        yield (
            f"This run has high time cost on communication. {100 * communication:.1f}% of the step time is in "
            "communication. You could try Gradient Compression or Gradient Accumulation or increase the batch size. "
            "Note: Gradient accumulation will increase global effective batch size, which may hurt model convergence "
            "and accuracy. For such case, you may want to evaluate LAMB optimizer."
        )
    yield from _of_gpus(steps)


def _of_gpus(steps: KinetoSteps) -> Iterator[str]:
    clues = steps.clues
    idle = sorted({gpu.ordinal for gpu in steps.gpus if gpu.utilisation < LITTLE_USE})
    if idle:
        listed = " and ".join(filter(None, (", ".join(map(str, idle[:-1])), str(idle[-1]))))
        yield (
            f"GPU {listed} {'has' if len(idle) == 1 else 'have'} low utilization. You could try to increase batch "
            "size to improve. Note: Increasing batch size may affect the speed and stability of model convergence."
        )
    capable = clues.first_major is not None and clues.first_major >= _TENSOR_CORES_SINCE
    if capable and clues.tensor_core_share == 0 and clues.eligible_share > 0:
        yield (
            f"Kernels with {round(100 * clues.eligible_share)}% time are launched by Tensor Cores eligible operators. "
            "You could enable Automatic Mixed Precision to speedup by using FP16."
        )
    if clues.full:
        peak, size = clues.full.peak_bytes, clues.full.memory_bytes
        yield (
            "Device memory usage is at the limit of device memory capacity "
            f"({100 * peak / size:.1f}% of {size / _GIB:.1f}GB on GPU{clues.full.ordinal}). To get better value of "
            "your GPU or to use larger batch size for training, please refer to Gradient Checkpoint or Automatic Mixed "
            "Precision."
        )


def _step_columns(steps: KinetoSteps) -> tuple[Column, ...]:
    """Return columns of each step; for readers, only those of the classes that the plugin shows."""
    several = steps.frame["process_id"].n_unique() > 1
    shown = {c.key: 2 if c.key in {"memcpy", "memset"} else 1 for c in steps.classes}
    importance = {c.key: shown.get(c.key, 9) for c in CLASSES}
    return (
        Column("stepnum", "Step", "text", 0),
        Column("process_id", "Process", "id", 1 if several else 9),
        Column("start_ns", "Start", "ns", 9),
        Column("step_ns", "Step time", "ns", 0),
        *(Column(f"{c.key}_ns", c.label, "ns", importance[c.key]) for c in CLASSES),
    )
