"""NVTX without a package: a client of the NVTX 3 injection interface, through ctypes.

A tool that records NVTX names its library in ``NVTX_INJECTION64_PATH``. A program that emits ranges loads that library
and calls its ``InitializeInjectionNvtx2`` with a function that returns tables of pointers to function pointers. The
tool sets the functions of the calls that it records. Every compiled user of NVTX contains this code, and so does this
module. So ranges are recorded with any software in the program, and even if newer clients fail under older tools.

    client                                   tool
      | ---- InitializeInjectionNvtx2(f) ---->|
      |<------- f(CALLBACKS) -----------------|   a table with GetModuleFunctionTable
      |<------- GetModuleFunctionTable(n) ----|   one row per call, each the address of a slot
      |         slots are filled              |

Layouts and numbers are those of the headers ``nvtxTypes.h`` and ``nvToolsExt.h`` of NVTX 3, which are fixed for all
its versions.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

INJECTION = "NVTX_INJECTION64_PATH" if ctypes.sizeof(ctypes.c_void_p) == 8 else "NVTX_INJECTION32_PATH"
"""The variable in which a tool names its library."""

_CALLBACKS, _VERSION_INFO = 1, 3
_VERSION = 3
_CORE_DOMAIN = 5
_CALLS = {1: 16, 2: 9, 3: 15, 4: 7, _CORE_DOMAIN: 16, 6: 7}
"""Modules (core, CUDA, OpenCL, CUDA runtime, domains, synchronisation) and their number of calls; call 0 is none."""
_RANGE_START, _RANGE_END, _RANGE_PUSH, _RANGE_POP, _REGISTER, _CREATE = 2, 3, 4, 5, 10, 12
"""Calls of the module of domains."""
_TEXT, _REGISTERED = 1, 3
"""Kinds of messages: bytes, and the handle of a registered string."""

_GetModuleTable = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)
_SetToolVersion = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
_GetExportTable = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)

# Calls that are made in a loop keep the interpreter's lock: releasing and reacquiring it costs more than the call, and
# would let other threads run between two ranges.
_Push = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_Pop = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_Start = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
_End = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
_Register = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_Create = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)


class NvtxError(Exception):
    """No tool records NVTX ranges in this process; the message gives the reason."""


class _Callbacks(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("get_module_table", _GetModuleTable)]


class _VersionInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("set_tool_version", _SetToolVersion),
    ]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint16),
        ("size", ctypes.c_uint16),
        ("category", ctypes.c_uint32),
        ("color_type", ctypes.c_int32),
        ("color", ctypes.c_uint32),
        ("payload_type", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("payload", ctypes.c_uint64),
        ("message_type", ctypes.c_int32),
        ("message", ctypes.c_void_p),
    ]


class Domain:
    """A domain of ranges: its pushed ranges nest among themselves, independent of the program's other ranges."""

    def __init__(self, slots: Any, name: str) -> None:
        missing = [call for call in (_RANGE_START, _RANGE_END, _RANGE_PUSH, _RANGE_POP, _CREATE) if not slots[call]]
        if missing:
            raise NvtxError("the profiler does not record NVTX ranges of domains")
        self._handle = ctypes.c_void_p(_Create(slots[_CREATE])(name.encode()))
        self._push, self._pop = _Push(slots[_RANGE_PUSH]), _Pop(slots[_RANGE_POP])
        self._start, self._end = _Start(slots[_RANGE_START]), _End(slots[_RANGE_END])
        self._register = _Register(slots[_REGISTER]) if slots[_REGISTER] else None
        self._known: dict[str, _Attributes] = {}

    def push(self, name: str) -> None:
        """Start a range on the calling thread; it ends at the matching :meth:`pop`."""
        self._push(self._handle, ctypes.byref(self._known.get(name) or self._attributes(name)))

    def pop(self) -> None:
        """End the innermost range of the calling thread."""
        self._pop(self._handle)

    def start(self, name: str) -> int:
        """Start a range that need not nest; return its number for :meth:`end`."""
        number: int = self._start(self._handle, ctypes.byref(self._known.get(name) or self._attributes(name)))
        return number

    def end(self, number: int) -> None:
        """End the range with this number."""
        self._end(self._handle, number)

    def prepare(self, name: str) -> None:
        """Let the tool store ``name`` once, so that its ranges are cheaper and smaller."""
        if self._register is not None and name not in self._known:
            handle = self._register(self._handle, name.encode())
            self._known[name] = _attributes(_REGISTERED, handle)

    @staticmethod
    def _attributes(name: str) -> _Attributes:
        text = ctypes.c_char_p(name.encode())
        attributes = _attributes(_TEXT, ctypes.cast(text, ctypes.c_void_p).value)
        attributes.text = text  # the tool copies it during the call: it must live until then
        return attributes


def open_domain(name: str, environment: Mapping[str, str] | None = None) -> Domain:
    """Return the domain ``name`` in the tool that records this process.

    Raises:
        NvtxError: no tool, a library that cannot be loaded, or a tool that does not record NVTX.
    """
    path = (os.environ if environment is None else environment).get(INJECTION)
    if not path:
        raise NvtxError("no profiler records NVTX in this process")
    return Domain(_attach(path), name)


_attached: dict[str, tuple[Any, ...]] = {}
"""By path of the library: all objects whose address the tool has; they must live as long as the process."""


def _attach(path: str) -> Any:
    """Return functions of the tool for the calls on domains; the tool is asked once per process."""
    if path in _attached:
        return _attached[path][0][_CORE_DOMAIN]
    slots = {module: (ctypes.c_void_p * calls)() for module, calls in _CALLS.items()}
    tables = {module: _addresses(slots[module]) for module in slots}

    def get_module_table(module: int, table: Any, calls: Any) -> int:
        if module not in tables:
            return 0
        if table:
            table[0] = ctypes.addressof(tables[module])
        if calls:
            calls[0] = _CALLS[module]
        return 1

    callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetModuleTable(get_module_table))
    version = _VersionInfo(ctypes.sizeof(_VersionInfo), _VERSION, 0, _SetToolVersion(lambda _: None))
    exported = {_CALLBACKS: ctypes.addressof(callbacks), _VERSION_INFO: ctypes.addressof(version)}
    get_export_table = _GetExportTable(lambda table: exported.get(table, 0))
    try:
        library = ctypes.CDLL(path)
        initialize = library.InitializeInjectionNvtx2
    except (OSError, AttributeError) as error:
        raise NvtxError(f"the profiler's library for NVTX cannot be used: {error}") from error
    initialize.argtypes, initialize.restype = [_GetExportTable], ctypes.c_int
    _attached[path] = (slots, tables, callbacks, version, get_export_table, library)
    if not initialize(get_export_table):
        raise NvtxError("the profiler does not record NVTX; for nsys, its --trace must contain nvtx")
    return slots[_CORE_DOMAIN]


def _addresses(slots: Any) -> Any:
    """Return a table of the addresses of ``slots``: none for call 0, and a null after the last."""
    first, size = ctypes.addressof(slots), ctypes.sizeof(ctypes.c_void_p)
    return (ctypes.c_void_p * (len(slots) + 1))(0, *(first + size * call for call in range(1, len(slots))), 0)


def _attributes(kind: int, message: int | None) -> _Attributes:
    return _Attributes(_VERSION, ctypes.sizeof(_Attributes), 0, 0, 0, 0, 0, 0, kind, message)
