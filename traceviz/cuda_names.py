"""What a CUDA API call does, by its name: runtime (``cuda*``) and driver (``cu*``) forms alike.

PyTorch launches through the runtime API, TensorFlow and XLA through the driver API; a rule that knows only one of
them misses half the world. Names come without their ``_vNNNN`` suffix; ``_v2``, ``_ptsz`` and ``_ptds`` may follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

ApiKind = Literal["launch", "async_copy", "blocking_copy", "synchronisation", "allocation", "stream", "compilation", "other"]

_PATTERNS: tuple[tuple[ApiKind, str], ...] = (
    ("launch", r"(cuda|cu|hip)(Ext)?(Module)?(Launch|GraphLaunch)(?!.*(Attribute|Param|HostFunc))"),
    ("async_copy", r"(cuda|cu|hip)(Memcpy|Memset|MemPrefetch).*Async"),
    ("blocking_copy", r"(cuda|cu|hip)(Memcpy|Memset)(?!.*(Async|Node|Params|GetAttribute))"),
    ("synchronisation", r"(cuda|cu|hip)(DeviceSynchronize|CtxSynchronize|StreamSynchronize|EventSynchronize|ThreadSynchronize)"),
    (
        "allocation",
        r"(cuda|cu|hip)(Malloc|Free|MemAlloc|MemFree|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister|MemHostAlloc"
        r"|MemHostRegister|MemHostUnregister|MemCreate|MemRelease|MemMap|MemUnmap|MemAddressReserve|MemAddressFree|MemSetAccess|ArrayCreate|ArrayDestroy)",
    ),
    ("stream", r"(cuda|cu|hip)Stream(Create|Destroy)"),
    (
        "compilation",
        r"(cu|hip)(Module(Load|Unload|GetFunction|GetGlobal)|Library(Load|Unload)|Link|Kernel(GetFunction|SetAttribute))|nvrtc|hiprtc"
        r"|cudaLibrary(Load|Unload)|cudaGraph(Instantiate|ExecUpdate)|cuGraph(Instantiate|ExecUpdate)|__cudaRegister",
    ),
)

_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


def api_kind(name: str) -> ApiKind:
    """What the API call ``name`` does; ``"other"`` for queries, events, contexts and unknown names."""
    for kind, pattern in _COMPILED:
        if pattern.match(name):
            return kind
    return "other"


def names_of(kind: ApiKind, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that are of ``kind``."""
    return [name for name in names if api_kind(name) == kind]
