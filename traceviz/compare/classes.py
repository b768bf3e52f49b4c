"""Keys of the classes of step time for every basis, in the order in which classes take time."""

from __future__ import annotations

_HOST_KEYS = (
    *("input_wait", "synchronisation", "allocation", "kernel_launch", "compilation"),
    *("host_blocked", "profiler", "host_compute"),
)
"""Classes of device idle time: the host's activity during it."""

_OTHER_BASES_KEYS = (
    *("device_to_device", "device_collectives", "infeed", "outfeed", "compile", "other", "host_to_host"),
    *("kernel", "memcpy", "memset", "runtime", "data_loader", "cpu_exec"),
)
"""Classes by the rules of XProf and Kineto."""

CLASS_KEYS = (
    *("device_compute", "communication", "parameter_transfer", "copy_d2h", "copy_h2d", "other_device"),
    *_HOST_KEYS,
    *_OTHER_BASES_KEYS,
)
