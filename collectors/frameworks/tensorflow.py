"""The tensorflow collector: ``tf.profiler`` around some steps of an unmodified program; it leaves XPlane files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from traceviz.collectors.base import Availability, Collector, Harvest, Plan
from traceviz.collectors.frameworks import harvest as injected
from traceviz.collectors.frameworks.injection import injection_environment


class TensorFlowCollector(Collector):
    """Records operations, input pipelines and, where nobody else does, kernels and copies on the GPU."""

    name: ClassVar[str] = "tensorflow"
    title: ClassVar[str] = "TensorFlow profiler"
    traces_device: ClassVar[bool] = True

    def availability(self) -> Availability:
        """Always ready: whether there is a TensorFlow is the program's matter, whose Python may be another one."""
        return Availability("ready", "records if the program trains with TensorFlow 2.16 or later, or Keras on it")

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
        """The hooks."""
        return injection_environment(plan, inherited)

    def harvest(self, plan: Plan) -> Harvest:
        """The captures of all processes that trained."""
        return injected.harvest_xplane(plan, self.name)
