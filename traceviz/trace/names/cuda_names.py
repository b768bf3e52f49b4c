"""Kinds of API calls by their names: CUDA's runtime (``cuda*``) and driver (``cu*``) forms, and HIP's (``hip*``).

Calls of other vendors' APIs have their own patterns.
PyTorch launches through the runtime API, TensorFlow and XLA through the driver API, both through HIP on AMD devices.
A rule for only one of them would miss half of the traces. ``hipMemcpyWithStream`` returns when its copy is done. Names
come without their ``_vNNNN`` suffix; ``_v2``, ``_ptsz`` and ``_ptds`` may follow.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

ApiKind = Literal[
    "launch",
    "async_copy",
    "blocking_copy",
    "synchronisation",
    "allocation",
    "pool_allocation",
    "stream",
    "compilation",
    "other",
]

_API = r"(cuda|cu|hip)"

_PATTERNS: tuple[tuple[ApiKind, str], ...] = (
    ("launch", _API + r"(Ext|Hcc)?(Module)?(Launch|GraphLaunch)(?!.*(Attribute|Param|HostFunc))"),
    ("async_copy", _API + r"(Memcpy|Memset|MemPrefetch).*Async"),
    ("blocking_copy", _API + r"(Memcpy|Memset)(?!.*(Async|Node|Params|GetAttribute))"),
    ("synchronisation", _API + r"(Device|Ctx|Stream|Event|Thread)Synchronize"),
    ("pool_allocation", _API + r"(Malloc|Free|MemAlloc|MemFree|MemAllocFromPool|MallocFromPool).*Async"),
    (
        "allocation",
        _API + r"(Malloc|Free|Mem(Alloc|Free|Create|Release|Map|Unmap|SetAccess|Address(Reserve|Free)))",
    ),
    ("allocation", _API + r"(Host(Alloc|Malloc|Free|Register|Unregister)|MemHost(Alloc|Register|Unregister))"),
    ("allocation", _API + r"(Array(Create|Destroy)|ExtMalloc)"),
    ("stream", _API + r"(Ext)?Stream(Create|Destroy)"),
    (
        "compilation",
        r"(cu|hip)Module(Load|Unload|GetFunction|GetGlobal)|(cuda|cu|hip)Library(Load|Unload)|(cu|hip)Link",
    ),
    ("compilation", r"cuKernel(GetFunction|SetAttribute)|nvrtc|hiprtc|__(cuda|hip)Register"),
    ("compilation", _API + r"(Graph(Instantiate|ExecUpdate)|Stream(Begin|End)(Capture|Recapture))"),
    # Meta's MTIA
    ("launch", r"runFunction\b"),
    ("async_copy", r"enqueueCommand memcpy\w*Async$"),
    ("synchronisation", r"synchronize(Stream|Device|Event)?$"),
    # Intel: SYCL's unified runtime (ur), the plug-in interface before it (pi), and Level Zero (ze) below both
    ("launch", r"(ur|pi)Enqueue(Cooperative)?KernelLaunch|ze(CommandList(Immediate)?AppendLaunch|CommandQueueExecute)"),
    ("async_copy", r"(urEnqueueUSM|piextUSMEnqueue)(Memcpy|Fill|Memset|Prefetch)|zeCommandListAppendMemory(Copy|Fill)"),
    ("synchronisation", r"(ur|pi)(QueueFinish|Events?Wait$)|ze(Event|Fence|CommandList)HostSync|zeCommandQueueSync"),
    ("allocation", r"(urUSM|piextUSM)(Device|Host|Shared)?(Alloc|Free)|zeMem(Alloc|Free)"),
    ("stream", r"(ur|pi|piext)Queue(Create|Release)|zeCommand(Queue|List)(Create|Destroy)"),
    ("compilation", r"(ur|pi)Program(Build|Compile|Link|Create)|zeModule(Create|Destroy|DynamicLink)"),
)


@cache
def _patterns() -> tuple[tuple[ApiKind, re.Pattern[str]], ...]:
    """Return the patterns, compiled when the first name is classified, so that imports stay fast."""
    return tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


def api_kind(name: str) -> ApiKind:
    """Return the kind of the API call ``name``; ``"other"`` for queries, events, contexts and unknown names."""
    return next((kind for kind, pattern in _patterns() if pattern.match(name)), "other")


_OF_HIP = {
    "CUDA_MODULE_LOADING=LAZY or EAGER": "HIP_ENABLE_DEFERRED_LOADING=1 or 0",
    "CUDA_VISIBLE_DEVICES": "HIP_VISIBLE_DEVICES",
    "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_HIP_ALLOC_CONF",
    "CUDA": "HIP",
    "cuda": "hip",
}
"""Texts about CUDA, and the words of HIP for them. Modules such as ``torch.cuda`` keep their names."""


def is_of_hip(name: str) -> bool:
    """Return whether a call is one of HIP, AMD's API."""
    return name.startswith("hip")


@cache
def _in_hip() -> re.Pattern[str]:
    return re.compile(
        r"\b(CUDA_MODULE_LOADING=LAZY or EAGER|(?:CUDA_VISIBLE_DEVICES|PYTORCH_CUDA_ALLOC_CONF)\b"
        r"|CUDA(?= (?:API|calls?|functions?|graphs?)\b|:)|cuda(?=[A-Z]))"
    )


def in_words_of_hip(text: str) -> str:
    """Return a text about CUDA in the words of HIP: ``HIP API``, ``hipMemcpyAsync``."""
    return _in_hip().sub(lambda found: _OF_HIP[found[0]], text)
