"""Findings about the host: one busy core, idle cores, oversubscription, thread settings, growing memory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traceviz.analyses.base import finding, known
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.host.load import LEAST_SAMPLES, HostLoad
from traceviz.core.units import counted, format_number, format_ratio, format_value
from traceviz.report import STEADY_STEP_TIME, Fact, Finding, Note, Severity
from traceviz.report.findings.registry import record_of
from traceviz.report.findings.tv604_thread_settings_misfit import OF_ONEDNN, OF_SPINNING
from traceviz.trace.rows_to_table import stated_integer

CODES = ("TV601", "TV602", "TV603", "TV604", "TV605", "TV618", "TV619", "TV620")
"""Rules that these findings belong to."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of the findings.

    Args:
        bound_share: Steps wait for the host if no device works for this share of their time, while they wait for input
            or the host computes.
        input_share: The input is worth a change if steps wait for it for this share of their time.
        one_core_low: At least this many busy cores count as one core,
        one_core_high: and at most this many.
        busy_share: Cores are idle if less than this share of the physical cores is busy.
        samples: Least number of samples of the steps to judge the program's threads.
        oversubscribed: There are too many threads if this many per core want to run,
        waiting_share: provided that they wait for this share of the time in which they could run,
        waiting_cores: and for this many cores on average. A program that hardly needs a core loses nothing.
        others_cores: The machine is busy if other programs use this share of its cores,
        others_waiting: and threads of this one wait for a core in this share of the time in which they could run.
        throttled: A CPU limit counts if it takes away this share of one core.
        growth_bytes: Memory grows if it rises by at least this much,
        growth_share: and by this share of its last amount.
        gpu_waits: Without steps, GPUs that work in less than this share of the time wait for something.
        threads_started: A program that starts this many threads starts one for each item,
        pools_started: or if it starts this many pools,
        threads_seen: provided that this many of them were seen.
        node_share: A memory node takes part if it has this share of the busy cores,
        node_others: and other programs use less than this share of the machine.
    """

    bound_share: float = 0.20
    input_share: float = 0.05
    one_core_low: float = 0.8
    one_core_high: float = 1.3
    busy_share: float = 0.75
    samples: int = LEAST_SAMPLES
    oversubscribed: float = 2.0
    waiting_share: float = 0.2
    waiting_cores: float = 0.2
    others_cores: float = 0.2
    others_waiting: float = 0.1
    throttled: float = 0.1
    growth_bytes: int = 64 << 20
    growth_share: float = 0.05
    gpu_waits: float = 0.5
    threads_started: int = 100
    pools_started: int = 20
    threads_seen: int = 3
    node_share: float = 0.25
    node_others: float = 0.1


def host_findings(load: HostLoad, limits: Limits) -> tuple[Finding, ...]:
    """Return all findings about the judged time."""
    rules = (_few_cores, _oversubscribed, _settings, _grows)
    return tuple(found for rule in rules if (found := rule(load, limits)) is not None)


def _few_cores(load: HostLoad, limits: Limits) -> Finding | None:
    """Return TV601 if about one core works, TV602 if not all cores work, while the steps wait for the host."""
    cores, busy, idle = load.machine.full_speed, load.busy_cores, load.idle_cores
    if cores is None or busy is None or idle is None or cores < 2:
        return None
    # The steps wait for the host; without steps, a GPU that is used idles
    steps, gpu_share = load.steps, load.gpu_share
    waits = gpu_share is not None and gpu_share < limits.gpu_waits
    if not (steps.bound_share >= limits.bound_share if steps.step_ns else waits):
        return None
    if idle <= (1 - limits.busy_share) * cores:
        return None
    is_one_core = limits.one_core_low <= busy <= limits.one_core_high
    # If devices wait, findings about input and idle devices count that time. This finding only reports free cores.
    cost_ns = round(load.steps.host_ns * idle / (busy + idle)) if load.steps.on_host else 0
    facts = (
        Fact("busy_cores", f"busy cores, {load.judged_words}", busy, "number"),
        Fact("idle_cores", f"idle cores, {load.judged_words}", idle, "number"),
        Fact("cores", "cores for it", cores, "number"),
        Fact("busiest_thread", "busiest thread runs", _share(load.busiest_thread), "ratio"),
        Fact("input_share", "of step time waits for input", _of(load.steps.input_ns, load), "ratio"),
        Fact("host_share", "of step time is host compute", _of(load.steps.host_ns, load), "ratio"),
        Fact("gpu_share", "GPU utilisation, mean", _share(load.gpu_share), "ratio"),
        Fact("read_rate", "read from storage", load.read_rate, "bytes/s"),
    )
    working = "about one core" if is_one_core else f"{format_number(round(busy, 1))} cores"
    message = f"{_waiting(load)}, and the program keeps {working} of {format_number(cores)} busy."
    if not is_one_core and busy < limits.one_core_low:
        message = f"{message} It does not wait for the CPU, but for storage, the network, a lock or a pause."
    code = "TV601" if is_one_core else "TV602"
    advice = _advice(code, load, limits)
    return finding(code, message, known(facts), cost_ns, load.steps.step_ns, STEADY_STEP_TIME, advice=advice)


def _advice(code: str, load: HostLoad, limits: Limits) -> tuple[str, ...] | None:
    """Return the advice that fits. A rule's first line is about input, the others about other host work."""
    if not load.steps.step_ns:
        return None
    first, *others = record_of(code).advice
    if load.steps.input_ns > load.steps.host_ns:
        return (first,)
    waits_for_input = (_of(load.steps.input_ns, load) or 0.0) >= limits.input_share
    return None if waits_for_input else tuple(others)


def _waiting(load: HostLoad) -> str:
    if not load.steps.step_ns:
        return f"GPUs work in {format_ratio(load.gpu_share or 0)} of the time"
    if load.steps.input_ns > load.steps.host_ns:
        return f"Steps wait for input in {format_ratio(_of(load.steps.input_ns, load) or 0.0)} of their time"
    if load.steps.on_host:
        return "The host computes the steps"
    return f"Steps wait for the host in {format_ratio(load.steps.bound_share)} of their time"


def _oversubscribed(load: HostLoad, limits: Limits) -> Finding | None:
    """Return TV603 if the program's own threads want more cores than it may use, in sufficiently sampled steps."""
    usable, wanted, waiting = load.machine.usable, load.wanted, load.waiting_share
    if usable is None or wanted is None or not load.steps.step_ns or load.threads_sampled < limits.samples:
        return None
    if load.queued_cores is not None and load.queued_cores < limits.waiting_cores:
        return None  # a program that hardly needs a core loses nothing by waiting
    if wanted < limits.oversubscribed * usable:
        return None
    by_own = 1 - usable / wanted  # further waits are for the threads of other programs
    lost = by_own if waiting is None else min(waiting, by_own)
    if lost < limits.waiting_share:
        return None
    cost_ns = round((load.steps.input_ns + load.steps.host_ns) * lost)
    message = (
        f"In the {load.judged_words}, {format_number(round(wanted, 1))} threads of the program want one of "
        f"{format_number(usable)} cores on average: they wait for each other in {format_ratio(lost)} of the time in "
        "which they could run."
    )
    facts = (
        Fact("runnable", f"threads that want a core, {load.judged_words}", wanted, "number"),
        Fact("cores", "cores that the program may use", usable, "number"),
        Fact("waiting_share", "of their time they wait for each other", lost, "ratio"),
        Fact("samples", f"samples, {load.judged_words}", load.threads_sampled, "count"),
    )
    return finding("TV603", message, known(facts), cost_ns, load.steps.step_ns, STEADY_STEP_TIME)


def busy_machine(load: HostLoad, limits: Limits) -> Note | None:
    """Return a note if other programs used the cores. It is no finding, because the program is not the cause."""
    others = load.neighbours
    if others is None or others.busy_cores < limits.others_cores * others.cores:
        return None
    waits = others.waiting_share
    if waits is not None and waits < limits.others_waiting:
        return None  # the cores that they left were enough
    used = f"{format_number(round(others.busy_cores, 1))} of {counted(others.cores, 'core')}"
    threads = f" ({format_number(round(others.runnable, 1))} of their threads wanted one)" if others.runnable else ""
    own = f"; the program waited for a core in {format_ratio(waits)} of the time in which it could run" if waits else ""
    message = f"Other programs used {used} in the {others.words}{threads}: times of the host are inflated{own}."
    return Note(BUSY, Severity.WARNING, message)


BUSY = "busy-machine"
"""Code of the note that the machine was busy."""


_FRAMEWORK_THREADS = re.compile(r"^collector\.(\w+)\.threads\.(intra|inter)_op$")
"""Settings in which a framework stated its threads while it trained."""
_TEAMS = re.compile(
    r"^(?:env\.(?:OMP_NUM|MKL_NUM|OPENBLAS_NUM|TF_NUM_INTRAOP)_THREADS|collector\.\w+\.threads\.intra_op)$"
)
"""Settings of the number of threads that compute one operation."""
_POOLS = re.compile(r"^(?:env\.TF_NUM_INTEROP_THREADS|collector\.tensorflow\.threads\.inter_op)$")
"""Settings of the number of operations that run at once; PyTorch starts such threads only on request."""
_SPIN = "env.KMP_BLOCKTIME"
_ONEDNN = "env.TF_ENABLE_ONEDNN_OPTS"


def _settings(load: HostLoad, limits: Limits) -> Finding | None:
    """Return TV604 for settings of threads that do not fit the machine, and cost time here."""
    misfits = tuple(_misfits(load, limits))
    if not misfits:
        return None
    evidence = (
        *(Fact(f"setting_{number}", _name(key), value) for number, (key, value, _) in enumerate(misfits, 1)),
        Fact("cores", "cores that the program may use", load.machine.usable, "number"),
        Fact("physical_cores", "physical cores", load.machine.physical, "count"),
        Fact("busy_cores", f"busy cores, {load.judged_words}", load.busy_cores, "number"),
    )
    message, keys = " ".join(words for _, _, words in misfits), {key for key, _, _ in misfits}
    fitting = [line for key, line in ((_SPIN, OF_SPINNING), (_ONEDNN, OF_ONEDNN)) if key not in keys]
    advice = tuple(line for line in record_of("TV604").advice if line not in fitting)
    return finding("TV604", message, known(evidence), 0, load.steps.step_ns, STEADY_STEP_TIME, advice=advice)


def _misfits(load: HostLoad, limits: Limits) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and a sentence of each setting that does not fit."""
    usable, best, busy = load.machine.usable, load.machine.full_speed, load.busy_cores
    if usable is None or best is None or busy is None:
        return
    computes = load.steps.on_host and (_of(load.steps.host_ns, load) or 0.0) >= limits.bound_share
    starved = computes and (load.idle_cores or 0.0) > (1 - limits.busy_share) * best
    for key, value in load.machine.settings.items():
        threads = _threads(key, value)
        if threads is None or _is_stated_by_framework(key, load.machine.settings):
            continue
        name = _name(key)
        started = load.threads_max is None or load.threads_max >= threads  # otherwise the setting has no effect
        if threads > math.ceil(usable) and started and max(busy, load.runnable or 0.0) >= usable / 2:
            yield key, value, f"{name} is {threads}, and the program may use {counted(math.ceil(usable), 'core')}."
        elif threads < math.floor(best) and starved and _TEAMS.match(key):
            of = counted(math.floor(best), "core")
            yield key, value, f"{name} is {threads} on {of}, and the host limits the steps."
    # Threads that spin after their work take cores from threads that have work.
    spin = load.machine.settings.get(_SPIN, "").strip().lower()
    spins = spin == "infinite" or (stated_integer(spin) or 0) > 1
    if spins and busy >= limits.busy_share * usable and (_of(load.steps.input_ns, load) or 0.0) >= limits.bound_share:
        words = "for ever" if spin == "infinite" else f"for {spin} ms"
        yield _SPIN, spin, f"Threads of OpenMP spin {words} after their work, and the input waits for a core."
    if computes and load.machine.settings.get(_ONEDNN) == "0":
        yield _ONEDNN, "0", "oneDNN is turned off (TF_ENABLE_ONEDNN_OPTS=0), and the host computes the steps."
    # Libraries start a thread for each core of the machine, unless a setting states their number.
    limit, cores = load.machine.settings.get("machine.cpu_limit"), load.machine.cores
    is_set = any(_threads(*setting) for setting in load.machine.settings.items())
    if limit and not is_set and (cores or 0) > usable and (load.throttled or 0.0) >= limits.throttled:
        words = (
            f"The container may use {limit} of {cores} cores; libraries start a thread for each core of the machine, "
            "and the limit holds them back."
        )
        yield "machine.cpu_limit", limit, words


def _is_stated_by_framework(key: str, settings: Mapping[str, str]) -> bool:
    """Return whether a collector of no framework repeats here what the framework states itself."""
    stated = _FRAMEWORK_THREADS.match(key)
    if stated is None or stated[1] in _FRAMEWORKS:
        return False
    return any(f"collector.{name}.threads.{stated[2]}_op" in settings for name in _FRAMEWORKS)


def _name(key: str) -> str:
    """Return the common name of a setting: the variable, or the framework's term."""
    stated = _FRAMEWORK_THREADS.match(key)
    if stated is None:
        return key.removeprefix("env.")
    return f"{_FRAMEWORKS.get(stated[1], 'The framework')}'s {stated[2]}-op thread number"


_FRAMEWORKS = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}


def _threads(key: str, value: str) -> int | None:
    """Return the number of threads that a setting states; ``None`` if it states none, or is about something else."""
    if not (_TEAMS.match(key) or _POOLS.match(key)):
        return None
    first = value.split(",", maxsplit=1)[0].strip()  # OMP_NUM_THREADS may state a number for each level of nesting
    number = stated_integer(first)
    return number if number and number > 0 else None


def _grows(load: HostLoad, limits: Limits) -> Finding | None:
    """Return TV605 if the memory of the program rises all the time."""
    growth = load.growth
    if growth is None or growth.total_bytes < limits.growth_bytes:
        return None
    if growth.total_bytes < limits.growth_share * growth.highest_bytes:
        return None
    each_step = f"{format_value(growth.per_step, 'bytes')} with every step"
    pace = each_step if growth.per_step else format_value(growth.per_second, "bytes/s")
    memory = load.machine.memory_bytes
    left_ns = (memory - growth.highest_bytes) / growth.per_second * 1e9 if memory else None
    until = (
        f": the memory of the machine is full after {format_value(left_ns, 'ns')}" if left_ns and left_ns > 0 else ""
    )
    message = f"The memory of the program grows by {pace}, and nothing of it is returned{until}."
    facts = (
        Fact("growth_bytes", "growth in the judged time", growth.total_bytes, "bytes"),
        Fact("growth_rate", "growth", growth.per_second, "bytes/s"),
        Fact("growth_per_step", "growth per step", growth.per_step, "bytes"),
        Fact("memory_bytes", "memory at its end", growth.highest_bytes, "bytes"),
        Fact("available_bytes", "memory of the machine", memory, "bytes"),
    )
    return finding("TV605", message, known(facts), 0, 0, "")


def _share(value: float | None) -> float | None:
    """Limit a share to 1, because counting ticks of a clock may exceed it."""
    return None if value is None else min(value, 1.0)


def _of(part_ns: int, load: HostLoad) -> float | None:
    """Return ``part_ns`` as a share of the step time; ``None`` without steps."""
    return ratio(part_ns, load.steps.step_ns)
