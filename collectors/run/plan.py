"""Deciding what records: makes a plan from the user's options and the available collectors. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path, PurePath

from traceviz.collectors.base import NSYS, NVTX, PYSPY, RESOURCES, STACKS, Availability, Collector, Plan, Window
from traceviz.collectors.frameworks.injection import injection_environment
from traceviz.collectors.nsys.collector import traces_cuda
from traceviz.core.errors import MissingToolError, UsageError

AUTO = "auto"
RUNS = "traceviz-runs"
"""Default folder for runs, in the current folder."""

_LAUNCHERS = frozenset(
    {
        *("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed", "horovodrun"),
        *("mpirun", "mpiexec", "srun", "env", "nice", "numactl", "taskset", "time", "uv"),
    }
)
"""Programs and modules that run other programs; a run is named after the other program."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 60
_STEPS = re.compile(r"(?P<first>\d*):(?P<end>\d*)")


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """The user's options; see ``traceviz collect --help``.

    Args:
        collectors: Their names; ``None`` for all that can record here and do not conflict.
        output: The run folder; ``None`` for one under ``traceviz-runs`` named after the program and the time.
        name: Name of the run; empty for the program's.
        tags: Facts by which to find the run.
        window: The part of the run that the profilers record.
        nvtx: True if NVTX ranges may mark steps, input and epochs.
        rate_hz: Samples per second of the resource sampler.
        stacks_hz: Samples per second of Python's stacks; 0 for none.
        nsys_args: Flags for ``nsys profile``; they override ours.
        events: Folders with the program's TensorBoard event files, if the hooks cannot find them.
        keep_raw: Keep the recordings of the profilers after they have been read into tables.
        keep_private: Store the command line and the host name.
        force: Replace an existing run folder.
        limit_s: Time limit after which the program is ended; ``None`` for no limit.
    """

    collectors: tuple[str, ...] | None = None
    output: Path | None = None
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    window: Window = field(default_factory=Window)
    nvtx: bool = True
    rate_hz: float = 10.0
    stacks_hz: float = 100.0
    nsys_args: tuple[str, ...] = ()
    events: tuple[Path, ...] = ()
    keep_raw: bool = True
    keep_private: bool = False
    force: bool = False
    limit_s: float | None = None


def make_plan(
    options: CollectOptions, command: tuple[str, ...], folder: Path, states: Mapping[str, Availability]
) -> Plan:
    """Return the plan that decides what records ``command``, and how.

    Args:
        options: The user's options.
        command: The user's command.
        folder: The run folder, absolute.
        states: The availability of each known collector, by name.

    Raises:
        UsageError: there is no such collector.
        MissingToolError: a collector that the user named cannot record here.
    """
    names = _automatic(options, states) if options.collectors is None else _by_name(options, states)
    frameworks = [name for name in names if name not in {NSYS, NVTX, PYSPY, RESOURCES, STACKS}]
    device_tracer = frameworks[0] if len(frameworks) == 1 else None  # else each may, in the program that loads it
    if NSYS in names and traces_cuda(options.nsys_args):
        device_tracer = NSYS
    return Plan(
        folder=folder,
        command=command,
        collectors=names,
        window=options.window,
        nvtx=NVTX in names,
        device_tracer=device_tracer,
        nsys_args=options.nsys_args,
        rate_hz=options.rate_hz,
        stacks_hz=options.stacks_hz,
        events=options.events,
    )


def _automatic(options: CollectOptions, states: Mapping[str, Availability]) -> tuple[str, ...]:
    """Return all available collectors except py-spy; NVTX ranges only with nsys, which alone records them."""
    ready = [name for name, state in states.items() if state.is_ready and name != PYSPY]
    left_out = {NVTX} if not options.nvtx or NSYS not in ready else set()
    if not options.stacks_hz:
        left_out.add(STACKS)
    return tuple(name for name in ready if name not in left_out)


def _by_name(options: CollectOptions, states: Mapping[str, Availability]) -> tuple[str, ...]:
    """Return the collectors that the user named, and the ranges that come with nsys.

    Raises:
        UsageError: there is no such collector, or the options contradict each other.
        MissingToolError: one of them cannot record here.
    """
    assert options.collectors is not None
    for name in options.collectors:
        if name not in states:
            raise UsageError.unknown("collector", name, (*states, AUTO))
    names = set(options.collectors)
    for name in sorted(names):
        if not states[name].is_ready:
            others = ", ".join(_automatic(options, states))
            raise MissingToolError(
                f"{name} cannot record here ({states[name].words}): {states[name].detail}",
                f"Without --with, these would record: {others}." if others else "Nothing else can record here either.",
                states[name].fix,
            )
    if NVTX in names and not options.nvtx:
        raise UsageError("--with nvtx and --nvtx off contradict each other.", fix="Leave one out.")
    for name in sorted(names & {PYSPY, STACKS}):
        if not options.stacks_hz:
            raise UsageError(f"--with {name} and --stacks-rate 0 contradict each other.", fix="Leave one out.")
    if NSYS in names and options.nvtx and NVTX in states and states[NVTX].is_ready:
        names.add(NVTX)
    return tuple(name for name in states if name in names)


def wrapped_command(plan: Plan, collectors: Iterable[Collector]) -> tuple[str, ...]:
    """Return the command that is started: the user's, wrapped by each collector that wraps, the first innermost."""
    return reduce(lambda command, collector: collector.command(command, plan), collectors, plan.command)


def typed_command(plan: Plan, collectors: Iterable[Collector]) -> tuple[str, ...]:
    """Return :func:`wrapped_command` as a user would type it."""
    return reduce(lambda command, collector: collector.typed(command, plan), collectors, plan.command)


def added_environment(plan: Plan, collectors: Iterable[Collector], inherited: Mapping[str, str]) -> dict[str, str]:
    """Return variables for the program in addition to those that it inherits.

    Every collector builds on the inherited values, not on those of other collectors. Values that two of them set to the
    same (the injection) are set once. With recorders outside of the program, the hooks note only the versions in it.
    """
    added: dict[str, str] = {}
    if not _OUTSIDE.isdisjoint(plan.collectors):
        added = injection_environment(plan, inherited)
    for collector in collectors:
        added |= collector.environment(plan, inherited)
    return added


_OUTSIDE = frozenset({NSYS, PYSPY, RESOURCES})
"""Collectors that record the program from the outside."""


def window_of(steps: str | None, delay_s: float | None, duration_s: float | None) -> Window:
    """Return the part of the run to record: ``--steps FIRST:END`` (END excluded), or ``--delay`` and ``--duration``.

    Raises:
        UsageError: both are given, or there are no such steps.
    """
    timed = delay_s is not None or duration_s is not None
    if steps is None:
        return Window(0, None, delay_s or 0.0, duration_s) if timed else Window()
    if timed:
        raise UsageError("--steps cannot be combined with --delay or --duration.", fix="Leave one of them out.")
    match = _STEPS.fullmatch(steps)
    first, end = (int(match["first"] or 0), int(match["end"]) if match["end"] else None) if match else (0, 0)
    if end is not None and end <= first:
        raise UsageError(
            f"--steps {steps!r} names no steps.",
            "Steps are counted from 0, and END is the first step that is not recorded.",
            "For example --steps 10:30, or 10: for all from step 10 on.",
        )
    return Window(first, None if end is None else end - first)


def parse_tags(tags: Iterable[str]) -> dict[str, str]:
    """Return tags from texts ``key=value``.

    Raises:
        UsageError: one has no key or no ``=``, or a key is given twice.
    """
    parsed: dict[str, str] = {}
    for tag in tags:
        key, equals, value = tag.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--tag {tag!r} is not of the form key=value.", fix="For example --tag batch=256.")
        if key.strip() in parsed:
            raise UsageError(f"--tag {key.strip()} is given twice.", fix="Leave one out.")
        parsed[key.strip()] = value.strip()
    return parsed


def split_arguments(text: str) -> tuple[str, ...]:
    """Return arguments in ``text``, quoted as in a shell.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--nsys-args {text!r} cannot be split into arguments.", f"{error}.") from error


def program_name(command: tuple[str, ...]) -> str:
    """Return the short name of the program: the script or module that Python or a launcher runs, else the program.

    >>> program_name(("python", "-u", "src/train.py", "--lr", "0.1")), program_name(("python", "-m", "pkg.train"))
    ('train', 'pkg.train')
    >>> program_name(("torchrun", "--nproc-per-node", "2", "train.py"))
    'train'
    """
    program = PurePath(command[0]).name
    if program.startswith("python") or program in _LAUNCHERS:
        for position, argument in enumerate(command[1:], 1):
            module = "".join(command[position + 1 : position + 2]) if argument == "-m" else ""
            if module and module not in _LAUNCHERS:
                program = module
                break
            if argument.endswith(".py"):
                program = PurePath(argument).stem
                break
    return file_name(program)


def file_name(text: str) -> str:
    """Return ``text`` as part of a file's name."""
    return _UNFIT.sub("-", text).strip("-.")[:_LONGEST_NAME] or "run"
