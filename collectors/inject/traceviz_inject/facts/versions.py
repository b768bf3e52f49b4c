"""Versions of the frameworks that a process has imported, and of the CUDA that they were built for.

The modules that the program has imported state them: nothing is imported here.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from .. import hooks
from ..status import append

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from types import ModuleType

FILE = "versions.jsonl"
PACKAGES = ("jax", "jaxlib", "keras", "mxnet", "paddle", "tensorflow", "tf_keras", "torch")
_LONGEST = 100


def install(run: str) -> None:
    """Note each framework below the folder ``run`` when it has been imported: the process may be killed later."""
    for package in PACKAGES:
        hooks.when_imported(package, partial(_note, run))


def note_imported(run: str) -> None:
    """Note the frameworks that are imported already."""
    for package in PACKAGES:
        module = sys.modules.get(package)
        if module is not None:
            _note(run, module)


def _note(run: str, module: ModuleType) -> None:
    import json  # noqa: PLC0415 most Pythons below a training script report nothing

    stated = {module.__name__: getattr(module, "__version__", None), "cuda": _cuda_of(module)}
    versions = {name: version[:_LONGEST] for name, version in stated.items() if isinstance(version, str) and version}
    if versions:
        append(os.path.join(run, "raw", FILE), json.dumps({"pid": os.getpid(), "versions": versions}) + "\n")  # noqa: PTH118


def _cuda_of(module: ModuleType) -> object:
    """Return the version of CUDA that a framework was built for, if it states one."""
    if module.__name__ == "torch":
        return getattr(getattr(module, "version", None), "cuda", None)
    if module.__name__ == "paddle":
        stated = getattr(getattr(module, "version", None), "cuda", lambda: None)()
        return None if stated == "False" else stated
    build = sys.modules.get("tensorflow.python.platform.build_info") if module.__name__ == "tensorflow" else None
    return getattr(build, "build_info", {}).get("cuda_version")
