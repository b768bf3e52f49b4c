"""The collectors, in order of their names: a new one is its own file and one line here."""

from __future__ import annotations

from traceviz.collectors.base import Collector
from traceviz.collectors.jax import JaxCollector
from traceviz.collectors.nsys import NsysCollector
from traceviz.collectors.nvtx import NvtxCollector
from traceviz.collectors.resources import ResourcesCollector
from traceviz.collectors.tensorflow import TensorFlowCollector
from traceviz.collectors.torch import TorchCollector

COLLECTORS: tuple[Collector, ...] = (
    JaxCollector(),
    NsysCollector(),
    NvtxCollector(),
    ResourcesCollector(),
    TensorFlowCollector(),
    TorchCollector(),
)
"""Every collector that ``traceviz collect --with`` and ``traceviz doctor`` know."""
