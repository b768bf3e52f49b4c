"""The torch collector: ``torch.profiler`` around some steps of an unmodified program; it leaves Kineto traces."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from traceviz.collectors.base import Harvest, Plan
from traceviz.collectors.frameworks.harvest import harvest_files
from traceviz.collectors.frameworks.injection import InjectedCollector

QUIET = "KINETO_LOG_LEVEL"
"""Environment variable for the profiler's own messages, which it writes between those of the program."""


class TorchCollector(InjectedCollector):
    """Records operators on the CPU; GPU kernels and copies if no other collector does."""

    name: ClassVar[str] = "torch"
    title: ClassVar[str] = "PyTorch profiler"
    traces_device: ClassVar[bool] = True
    needs: ClassVar[str] = "torch 2.0 or later"

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the hooks, and a setting that silences the profiler unless the user set its log level."""
        quiet = {} if QUIET in inherited else {QUIET: "99"}
        return {**super().environment(plan, inherited), **quiet}

    def harvest(self, plan: Plan) -> Harvest:
        """Return the Kineto traces of all processes that trained, compressed to about a twentieth of their size."""
        for path in sorted(plan.raw(self.name).rglob("*.pt.trace.json")):
            with suppress(OSError):  # no space left: the file stays as it is
                _compress(path)
        return harvest_files(plan, self.name, ("*.pt.trace.json.gz", "*.pt.trace.json"))


def _compress(path: Path) -> None:
    compressed, unfinished = path.with_name(f"{path.name}.gz"), path.with_name(f".{path.name}.gz")
    try:
        with path.open("rb") as source, gzip.open(unfinished, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        unfinished.replace(compressed)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    path.unlink()
