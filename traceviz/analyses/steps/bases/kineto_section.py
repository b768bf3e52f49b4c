"""The section of the report that shows step time by the classes of PyTorch's TensorBoard plugin, in its words."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.analyses.steps.bases.kineto import CLASSES, COMMUNICATION, TITLE, KinetoClass, KinetoSteps
from traceviz.analyses.steps.bases.kineto_clues import FullMemory
from traceviz.report import Bar, Bars, Block, Column, Fact, Facts, Grid, Prose, Row
from traceviz.units import counted, format_ns

MUCH_LOADING, MUCH_COMMUNICATION = 0.05, 0.1
"""Shares of step time above which it recommends something."""
LITTLE_USE = 0.5
"""Utilisation of a GPU below which it does."""
_TENSOR_CORES_SINCE = 7
"""Major compute capability."""
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
    Column("total_ns", "Total", "ns", 1),
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
    """Facts, one stacked bar, the average step, every step, the GPUs, and what the plugin recommends."""
    whole, count = steps.total("step_ns"), steps.frame.height
    totals = [(c, steps.total(c.key), steps.share(c.key)) for c in steps.classes]
    bars = tuple(Bar(c.key, c.label, total, share) for c, total, share in totals if total)
    rows: tuple[Row, ...] = tuple((c.key, c.label, round(total / count), share, total) for c, total, share in totals)
    advice = tuple(recommendations(steps))
    in_words = f"time of {counted(count, 'step')} by the rules of kineto ({format_ns(whole)})"
    gpus = (Grid(_GPU_COLUMNS, _gpu_rows(steps), title="GPUs"),) if steps.gpus else ()
    return (
        Facts(_facts(steps, advice), audience="machine"),
        Prose(f"Classes by the rules of {TITLE}, not ours: {_BLIND}.{'' if steps.marked else _UNMARKED}"),
        Bars("Step time", in_words, "ns", bars),
        Grid(_CLASS_COLUMNS, rows, title="Average step"),
        Grid(_step_columns(steps), _step_rows(steps), title="Steps"),
        *gpus,
        Prose(f"Its recommendations: “{' '.join(advice) or 'N/A'}”"),
    )


def recommendations(steps: KinetoSteps) -> Iterator[str]:
    """What the plugin recommends, its sentences without their links."""
    loading, communication = steps.share("data_loader"), steps.share(COMMUNICATION)
    clues = steps.clues
    if loading > MUCH_LOADING:
        yield (
            f"This run has high time cost on input data loading. {100 * loading:.1f}% of the step time is in "
            "DataLoader. You could try to set num_workers on DataLoader's construction and enable multi-processes on "
            "data loading."
        )
    if clues.data_parallel:
        yield ("It is recommended to use DistributedDataParallel instead of DataParallel to do multi-GPU training.")
    if clues.without_nccl:
        yield ("Nccl backend is currently the fastest and highly recommended backend when using DDP for training.")
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
        yield _of_memory(clues.full)


def _of_memory(full: FullMemory) -> str:
    return (
        f"Device memory usage is at the limit of device memory capacity "
        f"({100 * full.peak_bytes / full.memory_bytes:.1f}% of {full.memory_bytes / _GIB:.1f}GB on GPU{full.ordinal}). "
        "To get better value of your GPU or to use larger batch size for training, please refer to Gradient Checkpoint "
        "or Automatic Mixed Precision."
    )


def _facts(steps: KinetoSteps, advice: tuple[str, ...]) -> tuple[Fact, ...]:
    whole, count = steps.total("step_ns"), steps.frame.height
    return (
        Fact("basis", "basis", "kineto"),
        Fact("step_ns", "step time", whole, "ns"),
        Fact("steps", "steps", count, "count"),
        Fact("average_step_ns", "average step", round(whole / count), "ns"),
        Fact("recommendations", "recommendations", " ".join(advice)),
        *(Fact(f"{c.key}_share", c.label, steps.share(c.key), "ratio") for c in CLASSES),
    )


def _step_columns(steps: KinetoSteps) -> tuple[Column, ...]:
    """Columns of each step; for people, only those of the classes that the plugin shows."""
    several = steps.frame["process_id"].n_unique() > 1
    return (
        Column("stepnum", "Step", "text", 0),
        Column("process_id", "Process", "id", 1 if several else 9),
        Column("start_ns", "Start", "ns", 9),
        Column("step_ns", "Step time", "ns", 0),
        *(Column(f"{c.key}_ns", c.label, "ns", _importance(steps, c)) for c in CLASSES),
    )


def _importance(steps: KinetoSteps, found: KinetoClass) -> int:
    """What the plugin does not show is for machines; copies and fills are the first to go on a narrow page."""
    if found not in steps.classes:
        return 9
    return 2 if found.key in {"memcpy", "memset"} else 1


def _step_rows(steps: KinetoSteps) -> tuple[Row, ...]:
    return tuple(steps.frame.select("step", "process_id", "start_ns", "step_ns", *(c.key for c in CLASSES)).rows())


def _gpu_rows(steps: KinetoSteps) -> tuple[Row, ...]:
    return tuple(
        (g.device, g.process_id, g.utilisation, g.found.sm_efficiency, g.found.occupancy, g.tensor_core_share)
        for g in steps.gpus
    )
