"""Tables that support a cause or a finding, the most informative first, for causes that several findings share.

``section`` is the first table of a section, ``section:1`` the second; ``section:Other`` is the first whose title starts
with ``Other``.
"""

OTHER_THREADS = "host_time:Other threads"
OUTSIDE = "whole_run:1"
"""The time outside of steps, in the order of time."""
COMPUTING = ("cpu_steps", "kernels", "operators", "framework_ops", "host_time", "totals", "totals:1")
ELSEWHERE = ("host_time", "host_waits", "cpu_steps", "kernels", "operators", "framework_ops", "cuda_api", "os_calls")
"""Tables for any other cause, or if no evidence for a cause was recorded."""
INPUT = ("input_pipeline", "host_time", "input_pipeline:1", "os_calls", "host_waits")
LAUNCHES = ("launch", "kernels", "cuda_api")
COPIES = ("copies", "cuda_api", "host_waits")
ALLOCATION = ("cuda_api", "host_waits", "memory")
WAITS = ("host_waits", "cuda_api", "os_calls")
HOST = ("host_time", "host_limits", "host_waits", "cpu_steps")
THREADS = ("host_time", OTHER_THREADS, "host_limits", "host_waits")
SYSTEM = ("os_calls", "host_time", "host_waits")
COMPILATION = ("compilation", "host_time", "host_waits")
RUN = (OUTSIDE, "host_time", "host_waits")
RANKS = ("ranks", "communication", "host_collectives", "host_time")
HOST_COLLECTIVES = ("host_collectives", "ranks", "host_time")
COMMUNICATION = ("communication", "communication:1", "ranks")

BY_CAUSE: dict[str, tuple[str, ...]] = {
    "healthy": COMPUTING,
    "input": INPUT,
    "possible_input": ("host_time", "host_waits", "os_calls", "input_pipeline"),
    "parameter_transfer": COPIES,
    "communication": COMMUNICATION,
    "host_collective": HOST_COLLECTIVES,
    "copy_d2h": COPIES,
    "copy_h2d": COPIES,
    "other_device": COPIES,
    "blocking_copy": ("host_waits", "copies", "cuda_api"),
    "synchronisation": WAITS,
    "device_wait": ("host_waits", "framework_ops", "operators"),
    "allocation": ALLOCATION,
    "stream": ALLOCATION,
    "first_launch": ("host_waits", "cuda_api"),
    "kernel_launch": LAUNCHES,
    "launch_queue": LAUNCHES,
    "compilation": COMPILATION,
    "os_call": SYSTEM,
    "profiler": ("host_waits", "cpu_steps"),
    "waiting": THREADS,
    "sleep": THREADS,
    "lock": THREADS,
    "gil": THREADS,
    "host": ("host_time", "host_waits", "operators"),
    "unexplained": ("host_time", "host_waits", "idle_gaps"),
    "devices_in_turn": ("device_use", "idle_gaps"),
    **dict.fromkeys(("imports", "preparation", "validation", "between", "after", "shutdown"), RUN),
}
"""Tables that support a cause of the verdict, by its key. Findings have their own in their records."""
