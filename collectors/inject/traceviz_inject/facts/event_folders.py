"""The folders into which the program writes TensorBoard event files; the files are read after the run."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from .. import hooks
from ..status import guarded

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings

FILE = "event-folders.jsonl"
"""File below ``raw`` with one folder per line, in JSON; it is deleted after the run."""

WRITERS: dict[str, tuple[str, str]] = {
    "tensorboard.summary.writer.event_file_writer": ("EventFileWriter", "__init__"),
    "tensorboardX.event_file_writer": ("EventFileWriter", "__init__"),
    "tensorflow.python.ops.summary_ops_v2": ("", "create_file_writer_v2"),
    "tensorflow.python.summary.writer.writer": ("FileWriter", "__init__"),
}
"""Module -> its class, and the method or function that receives the folder."""

_told: set[str] = set()
_raw = ""


def install(settings: Settings) -> None:
    """Wait for the modules that write such files."""
    write_to(settings.folder)
    for module in WRITERS:
        hooks.when_imported(module, _hook)


def write_to(raw: str) -> None:
    """Record folders in a file below ``raw``; if ``raw`` is empty, record none."""
    global _raw  # noqa: PLW0603 the recording in progress
    _raw = raw
    _told.clear()


def _hook(module: ModuleType) -> None:
    holder, function = WRITERS[module.__name__]
    owner = getattr(module, holder, None) if holder else module
    if owner is not None:
        hooks.replace(owner, function, functools.partial(_telling, 1 if holder else 0), mark="__traceviz_events__")


def _telling(place: int, function: Any) -> Any:
    """Return ``function`` so that it records its folder, which is this argument or ``logdir``."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        _tell(arguments[place] if len(arguments) > place else named.get("logdir"))
        return result

    return call


@guarded
def _tell(folder: Any) -> None:
    if not _raw or not isinstance(folder, (str, os.PathLike)) or "://" in str(folder):
        return
    import json  # noqa: PLC0415 only if there are such files

    path = os.path.abspath(os.fspath(folder))  # noqa: PTH100 the program may change its folder
    if path in _told:
        return
    _told.add(path)
    with open(os.path.join(_raw, FILE), "ab", buffering=0) as file:  # noqa: PTH118, PTH123
        file.write(json.dumps(path).encode() + b"\n")
