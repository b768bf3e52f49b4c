"""The collectors, in order of their names. A new one is its own file and one line here."""

from __future__ import annotations

from operator import attrgetter

from traceviz.collectors.base import Availability, Collector
from traceviz.collectors.frameworks.nvtx import NvtxCollector
from traceviz.collectors.frameworks.profilers import JaxCollector, StacksCollector, TensorFlowCollector, TorchCollector
from traceviz.collectors.nsys.collector import NsysCollector
from traceviz.collectors.pyspy.collector import PySpyCollector
from traceviz.collectors.sampler.collector import ResourcesCollector
from traceviz.core.registry import Registry, find_fault_of_plugin, instance_of, is_own, plugin_error, warn_of_plugin

_OWN: tuple[Collector, ...] = (
    JaxCollector(),
    NsysCollector(),
    NvtxCollector(),
    PySpyCollector(),
    ResourcesCollector(),
    StacksCollector(),
    TensorFlowCollector(),
    TorchCollector(),
)

COLLECTORS: Registry[Collector] = Registry(
    "collector",
    "traceviz.collectors",
    {collector.name: collector for collector in _OWN},
    instance_of(Collector),
    attrgetter("name"),
)
"""Every collector that ``traceviz collect --with`` and ``traceviz doctor`` know, including those of plugins."""


def state_of(collector: Collector) -> Availability:
    """Return whether a collector can record here; a plugin's collector that fails is reported by a warning."""
    try:
        return collector.availability()
    except Exception as error:
        if is_own(type(collector).__module__):
            raise
        what = f"collector {collector.name!r} in availability()"
        warn_of_plugin(find_fault_of_plugin(error) or plugin_error(None, what, error))
        return Availability("unsupported", f"Its plugin failed: {type(error).__name__}.")
