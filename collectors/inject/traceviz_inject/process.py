"""The process of the program that trains: in each line of descent, the first that makes a step. Only it records.

::

    torchrun ─┬─ rank 0 ── steps ──┬─ data worker      no: its ancestor makes the steps
              │                    └─ subprocess       no: the variable shows that rank 0 records
              └─ rank 1 ── steps                       yes: no ancestor makes steps
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable

OWNER = "TRACEVIZ_INJECT_OWNER"
"""Environment variable with the process id of the ancestor that records; children that see it do not record."""

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "PMI_RANK")
"""Environment variables in which launchers pass a process its rank."""

LAUNCHERS = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch", "horovodrun", "accelerate"})
"""Programs that only start others. They import a framework, and never make a step."""

_after_fork: list[Callable[[], None]] = []
_state = {"owner": 0, "watching": 0}


def inherited_owner() -> bool:
    """Return whether an ancestor of this process already records."""
    owner = os.environ.get(OWNER, "")
    return bool(owner) and owner != str(os.getpid())


def claim() -> None:
    """Claim that this process trains; its later children do not record."""
    _state["owner"] = os.getpid()
    os.environ[OWNER] = str(os.getpid())


def release() -> None:
    """Stop recording in this process; its later children may record."""
    _state["owner"] = 0
    os.environ.pop(OWNER, None)


def claimed() -> bool:
    """Return whether this process itself, not its parent before a fork, has claimed to train."""
    return _state["owner"] == os.getpid()


def may_train() -> bool:
    """Return whether this process may be the one that trains: no fork or child of one that already does."""
    return _state["owner"] in (0, os.getpid())


def is_helper() -> bool:
    """Return whether this process was started by multiprocessing, or only starts others: it may not train at all."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return True
    program = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""  # noqa: PTH119
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return program in LAUNCHERS or getattr(main, "name", "") in LAUNCHERS


def name() -> str:
    """Return the name of this process among those that train: ``rank3`` if a launcher numbered it, else ``pid1234``."""
    rank = next((os.environ[key] for key in RANK_VARIABLES if os.environ.get(key, "").isdigit()), None)
    return f"rank{rank}" if rank is not None else f"pid{os.getpid()}"


def own_folder(parent: str) -> str:
    """Make and return a folder below ``parent`` for this process alone: processes never overwrite files of others."""
    os.makedirs(parent, exist_ok=True)  # noqa: PTH103
    candidate, number = name(), 1
    while True:
        folder = os.path.join(parent, candidate)  # noqa: PTH118
        try:
            os.mkdir(folder)  # noqa: PTH102
        except FileExistsError:  # of another job with this rank, or of the program that this one replaced
            candidate, number = f"{name()}-pid{os.getpid()}" + (f"-{number}" if number > 1 else ""), number + 1
        else:
            return folder


def in_forked_child(forget: Callable[[], None]) -> None:
    """Have ``forget`` called in every child that is forked from a process that trains."""
    _after_fork.append(forget)


def watch_forks() -> None:
    """Notify forked children that they do not train, if their parent does."""
    if not _state["watching"] and hasattr(os, "register_at_fork"):
        _state["watching"] = 1
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    if not may_train():
        for forget in _after_fork:
            forget()
