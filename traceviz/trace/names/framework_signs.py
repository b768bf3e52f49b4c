"""The framework of a program, from what traces state about it and from what CUDA profilers record.

Nsight Systems and nvprof do not state the framework. Each row of :data:`SIGNS` is a trace that a framework leaves.
Readers count the names that a row matches, and :func:`identify` weighs the counts. Patterns are those of RE2 and Rust's
regex, which have no look-around.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

SignKind = Literal["names", "ranges", "libraries", "programs"]
"""``names``: kernels and functions, demangled. ``ranges``: texts and domains of NVTX. ``libraries``: paths of loaded
files. ``programs``: names of processes."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign that only one framework leaves in a trace.

    Args:
        framework: The framework.
        kind: Kind of the names in which it occurs.
        pattern: Pattern that occurs in a name.
        words: Description for display; the same for every trace, as names may be private.
    """

    framework: str
    kind: SignKind
    pattern: str
    words: str


_SPACE = r"(?:^|[^\w:])"
"""Pattern before an outermost namespace."""
_FOLDER = r"^(?:dlopen\()?(?:[^\n\x00 ]*/)?"
"""Pattern before a file name: a path without blanks, because printed texts and environments are among the names too."""

SIGNS: tuple[Sign, ...] = (
    Sign("PyTorch", "names", rf"{_SPACE}(?:at::native|c10|caffe2|torch)::", "names in at::native::, c10::"),
    Sign("PyTorch", "names", r"^triton_(?:poi|per|red|tem)_fused_", "kernels of TorchInductor"),
    Sign("TensorFlow", "names", rf"{_SPACE}tensorflow::", "names in tensorflow::"),
    Sign("JAX", "names", rf"{_SPACE}jax(?:lib)?::", "names in jax::"),
    Sign("PaddlePaddle", "names", rf"{_SPACE}(?:phi|paddle)::", "names in phi::, paddle::"),
    Sign("MXNet", "names", rf"{_SPACE}(?:mxnet|mshadow)::", "names in mxnet::, mshadow::"),
    Sign("Singa", "names", rf"{_SPACE}singa::", "names in singa::"),
    Sign("Caffe", "names", rf"{_SPACE}caffe::", "names in caffe::"),
    Sign("ONNX Runtime", "names", rf"{_SPACE}onnxruntime::", "names in onnxruntime::"),
    Sign("ggml", "names", r"\(ggml_type\)|\bggml_type=|^(?:void )?ggml_", "names with ggml"),
    Sign("RAPIDS", "names", rf"{_SPACE}(?:cudf|raft|cuml|cugraph)::", "names in cudf::, raft::, cuml::"),
    Sign("CuPy", "names", r"^cupyx?_\w", "names with cupy_"),
    Sign("Numba", "names", rf"{_SPACE}cudapy::", "names in cudapy::"),
    Sign(
        "PyTorch",
        "ranges",
        r"^(?:aten|autograd)::|^Optimizer\.(?:step|zero_grad)#|^## Call CompiledFxGraph|^FSDP::|^torch::|"
        r"^enumerate\(DataLoader\)#|^\{'mod': 'torch",
        "ranges of PyTorch",
    ),
    Sign(
        "TensorFlow",
        "ranges",
        r"^tensorflow-core$|^TensorFlow Trace$|hlo_module=(?:a_inference_|cluster_)",
        "ranges of TensorFlow",
    ),
    Sign("JAX", "ranges", r"^XlaModule:#prefix=p?jit\(|hlo_module=p?jit_", "ranges of XLA with jit_"),
    Sign("PyTorch", "libraries", rf"{_FOLDER}lib(?:torch(?:_\w+)?|c10(?:_cuda)?)\.so[.\d]*\)?$", "libtorch.so"),
    Sign(
        "TensorFlow",
        "libraries",
        rf"{_FOLDER}(?:libtensorflow(?:_framework|_cc)?|_pywrap_tensorflow\w*)\.so[.\d]*\)?$",
        "libtensorflow.so",
    ),
    Sign("JAX", "libraries", rf"{_FOLDER}jaxlib/[^\n\x00 ]*\.so[.\d]*\)?$", "libraries of jaxlib"),
    Sign("PaddlePaddle", "libraries", rf"{_FOLDER}(?:libpaddle|core_(?:no)?avx)\.so[.\d]*\)?$", "libpaddle.so"),
    Sign("MXNet", "libraries", rf"{_FOLDER}libmxnet\.so[.\d]*\)?$", "libmxnet.so"),
    Sign("Singa", "libraries", rf"{_FOLDER}(?:libsinga|_singa_wrap)\.so[.\d]*\)?$", "libsinga.so"),
    Sign("ONNX Runtime", "libraries", rf"{_FOLDER}libonnxruntime(?:_\w+)?\.so[.\d]*\)?$", "libonnxruntime.so"),
    Sign("ggml", "libraries", rf"{_FOLDER}lib(?:ggml[-\w]*|llama)\.so[.\d]*\)?$", "libggml.so"),
    Sign("CuPy", "libraries", rf"{_FOLDER}cupy/[^\n\x00 ]*\.so[.\d]*\)?$", "libraries of cupy"),
    Sign("PyTorch", "programs", r"^(?:torchrun|torchserve)$", "program torchrun"),
    Sign("TensorFlow", "programs", r"^tensorflow_model_server$", "program tensorflow_model_server"),
)

_SHARED: tuple[Sign, ...] = (
    Sign("TensorFlow", "names", rf"{_SPACE}Eigen::internal::EigenMetaKernel", "kernels of Eigen"),
)
"""Signs that PaddlePaddle leaves too: they count if its own are missing."""

_LIBRARIES = frozenset({"CuPy", "Numba", "ONNX Runtime", "RAPIDS", "ggml"})
"""Libraries that programs of a framework may also use. They are named only if there is no framework."""

_TRUST: tuple[SignKind, ...] = ("names", "ranges", "libraries", "programs")
"""Kinds of signs, the most reliable first: a library may be loaded and not used."""

VERSION_VARIABLES: Mapping[str, str] = {
    "PYTORCH_VERSION": "PyTorch",
    "TENSORFLOW_VERSION": "TensorFlow",
    "JAX_VERSION": "JAX",
    "PADDLE_VERSION": "PaddlePaddle",
    "MXNET_VERSION": "MXNet",
}
"""Environment variables in which container images state the version of their framework."""

_VERSION = re.compile(r"^v?(\d{1,4}(?:\.\d{1,9}){1,4}[\w.+-]{0,40})$")
_LIBRARY_VERSION = re.compile(r"/lib(tensorflow|mxnet|torch)\w*\.so\.(\d{1,4}(?:\.\d{1,4}){0,3})\)?$")
_LIBRARY_OF = {"tensorflow": "TensorFlow", "mxnet": "MXNet", "torch": "PyTorch"}


@dataclass(frozen=True, slots=True)
class Identified:
    """The framework of a program.

    Args:
        framework: Its name, with its version if known; several joined by `` + ``; ``None`` if it is unknown.
        evidence: The evidence, as keys and values of settings.
    """

    framework: str | None
    evidence: tuple[tuple[str, str], ...] = ()


EVIDENCE = "framework."
"""Prefix of settings with the evidence of a framework: ``framework.PyTorch.names``."""


def identify(counts: Mapping[Sign, int], versions: Mapping[str, str] | None = None) -> Identified:
    """Identify the framework from the signs found.

    Args:
        counts: Number of distinct names that each sign matches.
        versions: Versions by framework, as :func:`stated_versions` and :func:`library_versions` find them.
    """
    seen = {sign: count for sign, count in counts.items() if count}
    owned = {sign.framework for sign in seen if sign in _OWN and sign.kind == "names"} - _LIBRARIES
    if owned:
        seen = {sign: count for sign, count in seen.items() if sign in _OWN}
    chosen = _chosen(seen)
    known = {name: (versions or {}).get(name) for name in chosen}
    evidence = [
        (f"{EVIDENCE}{sign.framework}.{sign.kind}", f"{sign.words} ({count:,})" if count > 1 else sign.words)
        for sign, count in seen.items()
    ]
    merged: dict[str, str] = {}
    for key, words in evidence:
        merged[key] = f"{merged[key]}, {words}" if key in merged else words
    stated = " + ".join(f"{name} {known[name]}" if known[name] else name for name in chosen)
    return Identified(stated or None, tuple(merged.items()))


def _chosen(seen: Iterable[Sign]) -> tuple[str, ...]:
    """Return the frameworks of the most reliable kind of sign. Libraries count only if there is no framework."""
    for names in ({sign.framework for sign in SIGNS} - _LIBRARIES, _LIBRARIES):
        for kind in _TRUST:
            found = {sign.framework for sign in seen if sign.kind == kind and sign.framework in names}
            if found:
                return tuple(sorted(found))
    return ()


def stated_versions(variables: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the versions by framework that environment variables state; other variables are ignored."""
    stated = ((VERSION_VARIABLES.get(name), _VERSION.match(value.strip('"'))) for name, value in variables)
    return {name: match[1] for name, match in stated if name and match}


def library_versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions by framework in library names: the first number in ``libtensorflow_framework.so.2``."""
    matches = filter(None, map(_LIBRARY_VERSION.search, libraries))
    return {_LIBRARY_OF[match[1]]: match[2] for match in matches}


_STATED_VERSION = re.compile(r"(?<!\s)\s++v?(\d++(?:\.\S*+)?+)$")
"""A version after the name of a framework."""


def name_and_version(stated: str | None) -> tuple[str | None, str | None]:
    """Separate frameworks and their versions, so that ``JAX 0.10.2`` and ``JAX`` are the same framework."""
    parts = stated.split(" + ") if stated else []
    names = dict.fromkeys(_STATED_VERSION.sub("", part) for part in parts)
    versions = dict.fromkeys(match[1] for part in parts if (match := _STATED_VERSION.search(part)))
    return " + ".join(names) or None, " + ".join(versions) or None


ALL_SIGNS = (*SIGNS, *_SHARED)
"""All signs, including those that do not suffice alone."""
_OWN = frozenset(SIGNS)
