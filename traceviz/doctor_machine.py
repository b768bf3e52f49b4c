"""What can be recorded on this machine: collectors, GPU, permissions, the program's Python, storage."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from traceviz.collectors.base import Availability
from traceviz.collectors.machine import Machine, read_machine
from traceviz.doctor_checks import Check
from traceviz.nsys_program import Nsys, version_in
from traceviz.units import format_value

COLLECTORS, MACHINE, PROGRAM = "collectors", "machine", "program"

FRAMEWORKS = ("tensorflow", "keras", "jax", "torch", "nvtx")
"""Packages of the program's Python that matter to a recording."""

LOSING_NVTX = "0.2.12"
"""From this version on, ranges of the package nvtx do not reach an nsys up to :data:`LOSING_NSYS`: none is recorded."""
LOSING_NSYS = "2023.4"

MOST_PARANOID = 2
"""Up to this ``perf_event_paranoid``, programs of one's own may be sampled."""

LITTLE_SPACE, NO_SPACE = 5 * 10**9, 10**8
"""Bytes free below which a long recording may not fit, and below which none does."""

_ASK = (
    "import json, sys\nfrom importlib.metadata import PackageNotFoundError, version\nfound = {}\n"
    "for name in sys.argv[1:]:\n    try:\n        found[name] = version(name)\n"
    "    except PackageNotFoundError:\n        pass\nprint(json.dumps(found))"
)
_PATIENCE_S = 30


def machine_checks(states: Mapping[str, Availability], nsys: Nsys | None, root: Path = Path("/")) -> Iterator[Check]:
    """Everything that decides what can be recorded here.

    Args:
        states: Whether each collector can record here, by name.
        nsys: The installed nsys.
        root: Where the kernel shows itself.
    """
    machine = read_machine(root)
    yield from (_collector(name, state) for name, state in states.items())
    yield _gpu(machine)
    if machine.gpus:
        yield _nvml()
        yield _counters(root)
    yield _sampling(root)
    yield _container(machine)
    yield _storage(Path.cwd())
    python = program_python()
    versions = package_versions(python)
    yield _frameworks(python, versions)
    yield from _nvtx(versions or {}, nsys)


def _collector(name: str, state: Availability) -> Check:
    if state.is_ready:
        return Check(COLLECTORS, name, "limited" if state.fix else "ok", state.detail, state.fix)
    return Check(COLLECTORS, name, "missing", f"{state.state.replace('-', ' ')}: {state.detail}", state.fix)


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
    """Who may use the GPU's hardware counters; kernels and copies are traced without them."""
    restricted = _number(r"RmProfilingAdminOnly:\s*(\d+)", _text(root / "proc/driver/nvidia/params"))
    if restricted and os.geteuid() != 0:
        return Check(
            MACHINE,
            "CUPTI",
            "limited",
            "Kernels and copies can be traced; hardware counters (nsys --gpu-metrics-device) are for administrators.",
            "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/profiling.conf"
            " (then restart)",
        )
    return Check(MACHINE, "CUPTI", "ok", "Kernels and copies can be traced, and hardware counters read.")


def _sampling(root: Path) -> Check:
    level = _number(r"(-?\d+)", _text(root / "proc/sys/kernel/perf_event_paranoid"))
    if level is None:
        detail = "The kernel offers no perf events: nsys cannot sample the CPU, which traceviz does not need."
        return Check(MACHINE, "perf events", "limited", detail)
    if level > MOST_PARANOID and os.geteuid() != 0:
        detail = f"perf_event_paranoid is {level}: nsys --sample is refused; what traceviz records does not need it."
        return Check(
            MACHINE, "perf events", "limited", detail, f"sudo sysctl kernel.perf_event_paranoid={MOST_PARANOID}"
        )
    return Check(MACHINE, "perf events", "ok", f"perf_event_paranoid is {level}: nsys --sample would be allowed.")


def _container(machine: Machine) -> Check:
    if machine.container is None:
        return Check(MACHINE, "container", "ok", "None is known of.")
    detail = f"{machine.container}: tracing works; GPU counters and CPU sampling take --cap-add=SYS_ADMIN."
    return Check(MACHINE, "container", "ok", detail)


def _storage(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    size = format_value(free, "bytes")
    if not os.access(folder, os.W_OK):
        return Check(MACHINE, "storage", "missing", "The current folder cannot be written to.", "Give -o RUN.")
    if free < NO_SPACE:
        return Check(MACHINE, "storage", "missing", f"{size} are free here: no recording fits.", "Give -o RUN.")
    if free < LITTLE_SPACE:
        return Check(
            MACHINE, "storage", "limited", f"{size} are free here: a long recording may not fit.", "Give -o RUN."
        )
    return Check(MACHINE, "storage", "ok", f"{size} are free in the current folder.")


def program_python() -> str:
    """The Python that ``traceviz collect -- python`` would run."""
    return shutil.which("python") or shutil.which("python3") or sys.executable


def package_versions(python: str) -> dict[str, str] | None:
    """Versions of :data:`FRAMEWORKS` that ``python`` has; ``None`` where it cannot be asked. None is imported."""
    try:
        asked = subprocess.run(
            [python, "-c", _ASK, *FRAMEWORKS], capture_output=True, check=True, timeout=_PATIENCE_S, text=True
        )
        found = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _frameworks(python: str, versions: Mapping[str, str] | None) -> Check:
    if versions is None:
        return Check(PROGRAM, "frameworks", "missing", f"{python} cannot be asked for its packages.", f"{python} -V")
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "nvtx")
    if not known:
        detail = f"{python} has none of tensorflow, jax and torch; another Python may run the program."
        return Check(PROGRAM, "frameworks", "limited", detail, "Activate the program's environment, and ask again.")
    return Check(PROGRAM, "frameworks", "ok", f"{known}, in {python}.")


def _nvtx(versions: Mapping[str, str], nsys: Nsys | None) -> Iterator[Check]:
    """Whether ranges that the program makes itself would arrive."""
    version = versions.get("nvtx")
    if version is None or nsys is None:
        return
    if loses_ranges(version, nsys.version):
        detail = (
            f"nvtx {version} loses every range under nsys {nsys.version}, without a word; `traceviz collect` mends"
            " that for its runs."
        )
        yield Check(PROGRAM, "NVTX", "limited", detail, f"python -m pip install 'nvtx<{LOSING_NVTX}'")
    else:
        yield Check(PROGRAM, "NVTX", "ok", f"Ranges of nvtx {version} reach nsys {nsys.version}.")


def loses_ranges(nvtx: str, nsys: str) -> bool:
    """Whether ranges of this package nvtx are lost under this nsys.

    >>> loses_ranges("0.2.13", "2022.4.2.1"), loses_ranges("0.2.11", "2022.4.2.1"), loses_ranges("0.2.13", "2024.5.1")
    (True, False, False)
    """
    old = version_in(nsys)[:4] <= version_in(LOSING_NSYS)[:4]
    return old and version_in(nvtx) >= version_in(LOSING_NVTX)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None
