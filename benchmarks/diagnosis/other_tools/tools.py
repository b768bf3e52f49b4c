"""The other tools: their versions, the captures that they read, and what their statements mean.

The mapping from statements to causes is generous: a statement stands for every key that it can be read as, and is
scored by the best of them. Each entry has its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.diagnosis.knobs import Format
from benchmarks.diagnosis.other_tools.adapters.protocol import CANNOT_JUDGE

SILENT = ""
"""Key of a report that names no cause."""
TORCH = (Format.KINETO,)
"""Traces of the PyTorch profiler. Those with functions of Python are the same files with more events, which none of
these tools uses for a diagnosis; without them, more of what the tools cannot name counts as honest. Those of AMD
devices hold the same, and those of PyTorch's second profiler are newer than all of these tools."""
HOST = ("host", "host-bound")
IDLE = (*HOST, "unexplained")
"""Idle time without a cause."""
INPUT = ("input", "input-bound")
WAITS = ("synchronisation-exposes-idle", "exposed-wait")
COMMUNICATION = ("communication", "exposed-communication")
SKEW = ("straggler", "late-collectives", *COMMUNICATION)
COPIES_IN = ("copy_h2d", "device-waits-for-copies", "pageable-copies", "parameter-transfer")
COPIES_OUT = ("copy_d2h", "device-waits-for-copies")
COPIES_WITHIN = ("other_device", "device-waits-for-copies")
LAUNCHES = ("launch-bound-kernels", "kernel_launch", *HOST)


@dataclass(frozen=True, slots=True)
class Meaning:
    """The causes that a statement names.

    Args:
        keys: Keys of first causes, as in ``knobs.py``.
        reason: Why.
    """

    keys: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, and how it is asked.

    Args:
        name: Its name.
        version: The version that is scored.
        module: Its adapter in ``adapters/``.
        packages: What pip installs into its environment.
        formats: The captures that it reads.
        made_for: What it is made for, in one sentence.
        meanings: What its statements mean, by kind.
        least_share: Statements below this share of time are left out; for tools that list all classes of time.
    """

    name: str
    version: str
    module: str
    packages: tuple[str, ...]
    formats: tuple[Format, ...]
    made_for: str
    meanings: dict[str, Meaning]
    least_share: float = 0.0

    def meaning(self, kind: str) -> Meaning:
        """Return what a statement of a kind means."""
        return _CANNOT_JUDGE if kind == CANNOT_JUDGE else self.meanings.get(kind, UNKNOWN)


_CANNOT_JUDGE = Meaning((SILENT,), "The tool itself reports that it cannot judge this capture.")
UNKNOWN = Meaning(("unexplained",), "A kind that is not mapped yet; a run lists them.")
_GAP = "Idle time of the device is true of every cause on the host; nsys-ai adds the CUDA call that runs in most gaps"
_TRACELENS = "git+https://github.com/AMD-AGI/TraceLens@171dd74721ca1ec45709e5805b68ae1f65e27811"

TOOLS = (
    Tool(
        "nsys-ai",
        "0.3.0",
        "ask_nsys_ai",
        # DuckDB reads SQLite with an extension, which nsys-ai downloads at run time; here it is a package.
        ("nsys-ai==0.3.0", "duckdb==1.5.5", "duckdb-extension-sqlite-scanner==1.5.5"),
        (Format.NSYS,),
        "Findings on profiles of Nsight Systems for engineers and language models. Without a model: a list of "
        "findings, ordered by the time that each could recover. Those of less than 5 % of the profile are left out.",
        {
            "idle: synchronization": Meaning((*WAITS, *HOST), f"{_GAP}: a synchronisation."),
            "idle: cpu stall": Meaning(
                (*INPUT, "gil", *HOST), f"{_GAP}: none. Its advice names the DataLoader first, then the GIL."
            ),
            "idle: memory transfer": Meaning((*COPIES_IN, *COPIES_OUT, *HOST), f"{_GAP}: a copy."),
            "idle: kernel launch": Meaning(LAUNCHES, f"{_GAP}: a launch."),
            "gpu_idle_gaps": Meaning(IDLE, "Idle time whose gaps it does not explain."),
            "overlap_breakdown": Meaning(COMMUNICATION, "Communication that no computation hides."),
            "region_mfu": Meaning((SILENT,), "Kernels below the speed of light; the device computes."),
            "gpu-compute-bound": Meaning((SILENT,), "The device computes most of the time: no cause outside kernels."),
            "cpu-bound": Meaning((*HOST, *LAUNCHES), "The device waits for the host."),
            "comm-bound": Meaning(COMMUNICATION, "The device waits for communication."),
        },
        least_share=0.05,
    ),
    Tool(
        "HolisticTraceAnalysis",
        "0.5.0",
        "ask_hta",
        # With pandas 3 it fails on some traces; 2.2.3 is the pandas of its release.
        ("HolisticTraceAnalysis==0.5.0", "pandas==2.2.3"),
        TORCH,
        "Tables of traces of many ranks, for notebooks. It gives no verdict; its greatest class of device time besides "
        "compute stands for one, from 15 % on (the limit of nsys-ai and TraceLens for idle time).",
        {
            "idle: host_wait": Meaning(IDLE, "Kernels that the host launched late."),
            "idle: kernel_wait": Meaning(LAUNCHES, "Short gaps between kernels that were launched in time."),
            "idle: other": Meaning(IDLE, "Idle time of no category."),
            "communication": Meaning(COMMUNICATION, "Communication that no computation hides."),
            "memory: HtoD": Meaning((*INPUT, *COPIES_IN), "Copies to the device, such as those of input."),
            "memory: DtoH": Meaning(COPIES_OUT, "Copies to the host."),
            "memory: DtoD": Meaning(COPIES_WITHIN, "Copies on the device."),
            "memory: Memset": Meaning(COPIES_WITHIN, "Memory that is set."),
            "memory: other": Meaning(COPIES_WITHIN, "Copies whose name has no direction."),
        },
        least_share=0.15,
    ),
    Tool(
        "TraceLens",
        "171dd747 of 2026-08-21",
        "ask_tracelens",
        (_TRACELENS,),
        (*TORCH, Format.XPLANE),
        "Reports of operators, kernels and rooflines for kernel engineers, and material for its agent, a language "
        "model that is not run here. The greatest class of its timeline besides computation stands for a verdict, from "
        "15 % on. The scripts of the agent flag idle time from 15 %, and communication already from 5 %, which would "
        "blame more.",
        {
            "idle_time": Meaning(IDLE, "Idle time of the device."),
            "exposed_comm_time": Meaning(COMMUNICATION, "Communication that no computation hides."),
            "exposed_comm_time: skew": Meaning(SKEW, "The same, and ranks start collectives at different times."),
            "exposed_memcpy_time": Meaning((*COPIES_IN, *COPIES_OUT), "Copies that nothing hides."),
            "exposed_memcpy_time: HtoD": Meaning((*INPUT, *COPIES_IN), "The same, most of it to the device."),
            "exposed_memcpy_time: DtoH": Meaning(COPIES_OUT, "The same, most of it to the host."),
            "exposed_memcpy_time: DtoD": Meaning(COPIES_WITHIN, "The same, most of it on the device."),
        },
        least_share=0.15,
    ),
    Tool(
        "gpu-idle",
        "0.1.0",
        "ask_gpu_idle",
        ("gpu-idle==0.1.0",),
        TORCH,
        "One sentence on a trace of the PyTorch profiler; four causes, calibrated on one model on an A100.",
        {
            "dataloader": Meaning((*INPUT, "single-process-loader"), "It names the DataLoader."),
            "smallbatch": Meaning((*LAUNCHES, "small-batch", "small-grids"), "It names short kernels, small batches."),
            "h2d_copy": Meaning((*INPUT, *COPIES_IN, *COPIES_OUT, *COPIES_WITHIN), "It counts all copies."),
            "unattributed": Meaning(
                IDLE, "The device is idle for no reason that it knows; its advice is work of the host or a read."
            ),
        },
    ),
    Tool(
        "xprof",
        "2.24.2",
        "ask_xprof",
        ("xprof==2.24.2",),
        (Format.XPLANE, Format.XPLANE_TPU),
        "Pages for TensorFlow and JAX in a browser. Its overview judges input, launches, collectives and other time of "
        "a step. If a capture has a plane of a GPU, this version counts only events of that plane in steps.",
        {
            "input": Meaning((*INPUT, "single-process-loader", *COPIES_IN), "It counts copies to the device as input."),
            "potentially input": Meaning(
                ("possible_input", *IDLE), "Other time, which it attributes to input, to Python or to both."
            ),
            "kernel_launch": Meaning(LAUNCHES, "Time of launches."),
            "device_collectives": Meaning(COMMUNICATION, "Time of collectives."),
            "all_other": Meaning(IDLE, "Time of a step in which the device does nothing that it knows."),
        },
    ),
)
"""All tools by the order of the table."""

COMPARED = tuple(format_ for format_ in Format if any(format_ in tool.formats for tool in TOOLS))
"""The formats of the comparison."""
