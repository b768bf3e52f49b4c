"""The torch collector: ``torch.profiler`` around some steps of an unmodified program; it leaves Kineto traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from traceviz.collectors.base import Availability, Collector, Harvest, Plan
from traceviz.collectors.frameworks import harvest as injected
from traceviz.collectors.frameworks.injection import injection_environment

QUIET = "KINETO_LOG_LEVEL"
"""Environment variable of the profiler's own messages, which it writes between those of the program."""


class TorchCollector(Collector):
    """Records operators on the CPU and, where nobody else does, kernels and copies on the GPU."""

    name: ClassVar[str] = "torch"
    title: ClassVar[str] = "PyTorch profiler"
    traces_device: ClassVar[bool] = True

    def availability(self) -> Availability:
        """Always ready: whether there is a torch is the program's matter, whose Python may be another one."""
        return Availability("ready", "records if the program trains with torch 2.0 or later")

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
        """The hooks, and a profiler that says no more than warnings, unless the user chose what it says."""
        quiet = {} if QUIET in inherited else {QUIET: "99"}
        return {**injection_environment(plan, inherited), **quiet}

    def harvest(self, plan: Plan) -> Harvest:
        """The Kineto traces of all processes that trained."""
        return injected.harvest(plan, self.name, ("*.pt.trace.json.gz", "*.pt.trace.json"))
