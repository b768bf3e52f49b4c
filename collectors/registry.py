"""The collectors, in order of their names: a new one is its own file and one line here."""

from __future__ import annotations

from traceviz.collectors.base import Collector
from traceviz.collectors.frameworks.jax import JaxCollector
from traceviz.collectors.frameworks.nvtx import NvtxCollector
from traceviz.collectors.frameworks.stacks import StacksCollector
from traceviz.collectors.frameworks.tensorflow import TensorFlowCollector
from traceviz.collectors.frameworks.torch import TorchCollector
from traceviz.collectors.nsys.collector import NsysCollector
from traceviz.collectors.pyspy.collector import PySpyCollector
from traceviz.collectors.sampler.collector import ResourcesCollector

COLLECTORS: tuple[Collector, ...] = (
    JaxCollector(),
    NsysCollector(),
    NvtxCollector(),
    PySpyCollector(),
    ResourcesCollector(),
    StacksCollector(),
    TensorFlowCollector(),
    TorchCollector(),
)
"""Every collector that ``traceviz collect --with`` and ``traceviz doctor`` know."""
