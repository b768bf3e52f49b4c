"""The tensorflow collector: ``tf.profiler`` around some steps of an unmodified program; it leaves XPlane files."""

from __future__ import annotations

from typing import ClassVar

from traceviz.collectors.base import Harvest, Plan
from traceviz.collectors.frameworks.harvest import harvest_xplane
from traceviz.collectors.frameworks.injection import InjectedCollector


class TensorFlowCollector(InjectedCollector):
    """Records operations and input pipelines; GPU kernels and copies if no other collector does."""

    name: ClassVar[str] = "tensorflow"
    title: ClassVar[str] = "TensorFlow profiler"
    traces_device: ClassVar[bool] = True
    needs: ClassVar[str] = "TensorFlow 2.16 or later, or Keras on it"

    def harvest(self, plan: Plan) -> Harvest:
        """Return the captures of all processes that trained."""
        return harvest_xplane(plan, self.name)
