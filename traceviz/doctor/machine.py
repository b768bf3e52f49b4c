"""Checks of what can be recorded on this machine: collectors, GPU, permissions, the program's Python, storage."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from traceviz.collectors.base import STACKS, Availability
from traceviz.collectors.nsys.collector import NsysCollector
from traceviz.collectors.run.folder import room
from traceviz.collectors.run.machine import Machine, read_machine, read_text
from traceviz.core.errors import UsageError
from traceviz.core.nsys_program import Nsys, output_of, version_in
from traceviz.core.units import format_value
from traceviz.doctor.checks import Check
from traceviz.untrusted.json_documents import document_of

COLLECTORS, MACHINE, PROGRAM = "collectors", "machine", "program"


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework whose profiler works inside the program.

    Args:
        oldest: The oldest version that is recorded.
        distributions: Names under which it is installed, the usual one first.
    """

    oldest: str
    distributions: tuple[str, ...]


FRAMEWORKS = {
    "jax": Framework("0.5", ("jax",)),
    "tensorflow": Framework(
        "2.16", ("tensorflow", "tensorflow-cpu", "tensorflow-rocm", "tensorflow-macos", "tf-nightly", "tf-nightly-cpu")
    ),
    "torch": Framework("2.0", ("torch",)),
}
"""Frameworks by collector. The Python that runs the program decides whether the collector can record."""

PACKAGES = ("keras", "nvtx", *(name for framework in FRAMEWORKS.values() for name in framework.distributions))
"""Packages of the program's Python that matter to a recording."""

OLDEST_SAMPLED = "3.9"
"""The oldest Python whose stacks are sampled."""

LOSING_NVTX = "0.2.12"
"""Version from which ranges of the package nvtx do not reach nsys up to :data:`LOSING_NSYS`."""
LOSING_NSYS = "2023.4"

SYS_ADMIN, PERFMON = 21, 38
"""Numbers of the kernel's capabilities CAP_SYS_ADMIN and CAP_PERFMON."""

MOST_PARANOID = 2
"""The highest ``perf_event_paranoid`` at which users may sample their own programs."""

LITTLE_SPACE = 5 * 10**9
"""Bytes free below which a long recording may not fit."""

_LIST_VERSIONS = (
    "import json, platform, sys\nfrom importlib.metadata import PackageNotFoundError, version\nversions = {}\n"
    "for name in sys.argv[1:]:\n    try:\n        versions[name] = version(name)\n"
    "    except PackageNotFoundError:\n        pass\nprint(json.dumps([platform.python_version(), versions]))"
)
_PATIENCE_S = 30


@dataclass(frozen=True, slots=True)
class ProgramPython:
    """The Python that runs the program to be recorded.

    Args:
        path: Path or name as the user gave it.
        version: Its version; ``None`` if it does not answer.
        packages: Versions of its packages in :data:`PACKAGES`; ``tensorflow`` for any distribution of it.
    """

    path: str
    version: str | None
    packages: Mapping[str, str]


def machine_checks(
    states: Mapping[str, Availability], nsys: Nsys | None, python: ProgramPython, root: Path = Path("/")
) -> Iterator[Check]:
    """Yield all checks that decide what can be recorded here.

    Args:
        states: Availability of each collector, by name.
        nsys: The installed nsys.
        python: The Python that runs the program.
        root: Folder with the kernel's ``proc``.
    """
    machine = read_machine(root)
    yield from (_collector(name, state, python) for name, state in states.items())
    yield _gpu(machine)
    if machine.gpus:
        yield _nvml()
        yield _counters(root)
    yield _sampling(root, "" if nsys is None else output_of(nsys.path, "status", "--environment"))
    yield _container(machine)
    yield _storage(Path.cwd())
    yield _python(python)
    yield from _nvtx(python, nsys)


def _collector(name: str, state: Availability, python: ProgramPython) -> Check:
    if not state.is_ready:
        return Check(
            COLLECTORS, name, "missing", f"{state.state.replace('-', ' ')}: {_sentence(state.detail)}", state.fix
        )
    if name in FRAMEWORKS:
        return _framework(name, FRAMEWORKS[name], python)
    if name == STACKS and python.version is not None and version_in(python.version) < version_in(OLDEST_SAMPLED):
        detail = f"too old: {python.path} is Python {python.version}; {OLDEST_SAMPLED} or newer is sampled."
        return Check(COLLECTORS, name, "missing", detail)
    return Check(COLLECTORS, name, "limited" if state.fix else "ok", _sentence(state.detail), state.fix)


def _framework(name: str, framework: Framework, python: ProgramPython) -> Check:
    """Check whether the program's Python has the framework that the collector records."""
    version, usual = python.packages.get(name), framework.distributions[0]
    fix = f"{shlex.quote(python.path)} -m pip install '{usual}>={framework.oldest}'"
    if version is None:
        detail = f"not installed: {python.path} has no {name}."
        return Check(COLLECTORS, name, "missing", detail, fix)
    if version_in(version) < version_in(framework.oldest):
        detail = f"too old: {python.path} has {name} {version}; {framework.oldest} or newer is recorded."
        return Check(COLLECTORS, name, "missing", detail, fix)
    return Check(COLLECTORS, name, "ok", f"{name} {version} in {python.path}.")


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _gpu(machine: Machine) -> Check:
    if not machine.gpus:
        detail = "No NVIDIA GPU: the work of the CPU is recorded, and there is none of a GPU."
        fix = "nvidia-smi" if machine.driver else ""
        return Check(MACHINE, "GPU", "limited", detail, fix)
    names = sorted({gpu.name for gpu in machine.gpus})
    driver = f", driver {machine.driver}" if machine.driver else ""
    return Check(MACHINE, "GPU", "ok", f"{len(machine.gpus)} × {', '.join(names)}{driver}.")


def _nvml() -> Check:
    if find_spec("pynvml") is None:
        detail = "nvidia-ml-py is not installed: utilisation, memory and power of the GPU are not sampled."
        return Check(MACHINE, "NVML", "limited", detail, f"{sys.executable} -m pip install nvidia-ml-py")
    return Check(MACHINE, "NVML", "ok", "Utilisation, memory, power and clocks of the GPU can be sampled.")


def _counters(root: Path) -> Check:
    """Check who may use the GPU's hardware counters; kernels and copies are traced without them."""
    restricted = _number(r"RmProfilingAdminOnly:\s*(\d+)", read_text(root / "proc/driver/nvidia/params"))
    if restricted and not _may(root, SYS_ADMIN):
        return Check(
            MACHINE,
            "CUPTI",
            "limited",
            "Kernels and copies can be traced; hardware counters (nsys --gpu-metrics-device) are for administrators.",
            "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/profiling.conf"
            " (then restart)",
        )
    return Check(MACHINE, "CUPTI", "ok", "Kernels and copies can be traced, and hardware counters read.")


def _sampling(root: Path, status: str) -> Check:
    """Check whether nsys may sample the CPU.

    Args:
        root: Folder with the kernel's ``proc``.
        status: Output of ``nsys status --environment``, which tries it; empty without nsys. A container may forbid what
            the kernel's level allows.
    """
    level = _number(r"(-?\d+)", read_text(root / "proc/sys/kernel/perf_event_paranoid"))
    needless = "what traceviz records does not need it"
    if level is None:
        detail = f"The kernel offers no perf events: nsys cannot sample the CPU; {needless}."
        return Check(MACHINE, "perf events", "limited", detail)
    if level > MOST_PARANOID and not _may(root, PERFMON, SYS_ADMIN):
        detail = f"perf_event_paranoid is {level}: nsys --sample is refused; {needless}."
        fix = f"sudo sysctl kernel.perf_event_paranoid={MOST_PARANOID}"
        return Check(MACHINE, "perf events", "limited", detail, fix)
    result = re.search(r"\(process-tree\): (\w+)", status)
    if result and result[1].upper() != "OK":
        detail = f"perf_event_paranoid is {level}, and yet nsys may not sample the CPU; {needless}."
        return Check(MACHINE, "perf events", "limited", detail, "nsys status --environment")
    return Check(MACHINE, "perf events", "ok", f"perf_event_paranoid is {level}: nsys --sample is allowed.")


def _may(root: Path, *capabilities: int) -> bool:
    """Return whether this process has one of these kernel capabilities; in a container, root may have none."""
    effective = re.search(r"CapEff:\s*([0-9a-f]+)", read_text(root / "proc/self/status"))
    held = int(effective[1], 16) if effective else 0
    return any(held >> capability & 1 for capability in capabilities)


def _container(machine: Machine) -> Check:
    if machine.container is None:
        return Check(MACHINE, "container", "ok", "None is known of.")
    detail = f"{machine.container}: tracing works; GPU counters and CPU sampling may take --cap-add=SYS_ADMIN."
    return Check(MACHINE, "container", "ok", detail)


def _storage(folder: Path) -> Check:
    free = room(folder)
    size = format_value(free, "bytes")
    fix = "traceviz collect -o FOLDER, on another file system"
    if not os.access(folder, os.W_OK):
        detail = "The current folder cannot be written to: runs need another one."
        return Check(MACHINE, "storage", "limited", detail, "traceviz collect -o FOLDER")
    if free < NsysCollector.room_bytes:
        return Check(MACHINE, "storage", "missing", f"{size} are free here: too little to record with nsys.", fix)
    if free < LITTLE_SPACE:
        return Check(MACHINE, "storage", "limited", f"{size} are free here: a long recording may not fit.", fix)
    return Check(MACHINE, "storage", "ok", f"{size} are free in the current folder.")


def program_python(named: str | None = None) -> str:
    """Return the Python called ``named``; without a name, the one that ``traceviz collect -- python`` would run.

    Raises:
        UsageError: there is no such program.
    """
    if named is None:
        return shutil.which("python") or shutil.which("python3") or sys.executable
    path = shutil.which(named)
    if path is None:
        raise UsageError(f"--python {named!r} is not a program.", fix="Name the Python that runs your program.")
    return path


def read_python(path: str) -> ProgramPython:
    """Return the version and packages of the Python at ``path``, without importing any of its packages."""
    try:
        completed = subprocess.run(
            [path, "-c", _LIST_VERSIONS, *PACKAGES], capture_output=True, check=True, timeout=_PATIENCE_S, text=True
        )
        version, versions = document_of(completed.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ProgramPython(path, None, {})
    installed = {
        name: versions[distribution]
        for name, framework in FRAMEWORKS.items()
        for distribution in framework.distributions[::-1]
        if distribution in versions
    }
    others = {name: versions[name] for name in ("keras", "nvtx") if name in versions}
    return ProgramPython(path, version, {**installed, **others})


def _python(python: ProgramPython) -> Check:
    if python.version is None:
        detail = f"{python.path} cannot be asked for its packages."
        return Check(PROGRAM, "Python", "missing", detail, f"{shlex.quote(python.path)} -V")
    label = f"Python {python.version} at {python.path}"
    if not python.packages.keys() & FRAMEWORKS.keys():
        detail = f"{label}, without jax, tensorflow and torch: does another Python run the program?"
        return Check(PROGRAM, "Python", "limited", detail, "traceviz doctor --python PATH")
    known = ", ".join(f"{name} {version}" for name, version in python.packages.items())
    return Check(PROGRAM, "Python", "ok", f"{label}, with {known}.")


def _nvtx(python: ProgramPython, nsys: Nsys | None) -> Iterator[Check]:
    """Check whether ranges that the program makes itself would reach nsys."""
    version = python.packages.get("nvtx")
    if version is None or nsys is None:
        return
    if loses_ranges(version, nsys.version):
        detail = (
            f"nvtx {version} loses every range under nsys {nsys.version}, without a word; `traceviz collect` mends"
            " that for its runs, unless told --nvtx off."
        )
        fix = f"{shlex.quote(python.path)} -m pip install 'nvtx<{LOSING_NVTX}'"
        yield Check(PROGRAM, "NVTX", "limited", detail, fix)
    else:
        yield Check(PROGRAM, "NVTX", "ok", f"Ranges of nvtx {version} reach nsys {nsys.version}.")


def loses_ranges(nvtx: str, nsys: str) -> bool:
    """Return whether ranges of this package nvtx are lost under this nsys.

    >>> loses_ranges("0.2.13", "2022.4.2.1"), loses_ranges("0.2.11", "2022.4.2.1"), loses_ranges("0.2.13", "2024.5.1")
    (True, False, False)
    """
    old = version_in(nsys)[:4] <= version_in(LOSING_NSYS)[:4]
    return old and version_in(nvtx) >= version_in(LOSING_NVTX)


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None
