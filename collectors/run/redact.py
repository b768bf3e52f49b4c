"""The parts of a command and its environment that a manifest may hold."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from traceviz.core.plain_arguments import names_here, plain_command

SETTINGS = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "XLA_FLAGS")
SETTING_PREFIXES = (
    *("CUDA_", "GOTO_", "JAX_", "KMP_", "MKL_", "NCCL_", "OMP_", "OPENBLAS_", "TORCH_"),
    *("TF_AUTO_", "TF_CPP_", "TF_CUDNN_", "TF_DETERMINISTIC_", "TF_DISABLE_", "TF_ENABLE_", "TF_FORCE_", "TF_GPU_"),
    *("TF_NUM_", "TF_USE_", "TF_XLA_"),  # not all of TF_: Terraform keeps secrets in TF_VAR_*
)
"""Variables that set how a framework uses the machine. Others may hold secrets, and are never stored."""

_SECRET = ("AUTH", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN")
_PATH = re.compile(r"~?(?:/[^/:;,=\s]+)*/(?=[^/:;,=\s])")
"""The folders of a path."""
_PATH_IN_PROSE = re.compile(r"(?<![\w.…~/:])~?/(?:[^/:;,=\s'\"]+/)+(?=[^/:;,=\s'\"])")
"""The same within prose, where a single slash is no path: *and/or*, *8/s*, an address."""
_LONGEST = 500


def command_text(command: tuple[str, ...], environment: Mapping[str, str], *, keep_private: bool) -> str:
    """Return the command for the manifest: complete, or with ``…`` in place of text that looks private.

    >>> command_text(("/home/ann/bin/python", "train.py", "--user=ann"), {}, keep_private=False)
    'python train.py --user=…'
    """
    return shlex.join(command) if keep_private else plain_command(command, names_here(environment))


def without_folders(text: str) -> str:
    """Return a sentence with only the last part of each path: folders may name people, customers and projects.

    >>> without_folders("cannot open '/home/ann/secret/data.bin': see https://a.org/b, 8/s or more")
    "cannot open '…/data.bin': see https://a.org/b, 8/s or more"
    """
    return _PATH_IN_PROSE.sub("…/", text)


def settings(environment: Mapping[str, str], home: str, *, keep_private: bool) -> dict[str, str]:
    """Return variables that set threads, devices or compilation; only the last part of paths in them is shown."""
    return {
        name: _shown(value, home, keep_private=keep_private)
        for name, value in sorted(environment.items())
        if _is_setting(name)
    }


def _is_setting(name: str) -> bool:
    known = name in SETTINGS or name.startswith(SETTING_PREFIXES)
    return known and not any(word in name for word in _SECRET)


def _shown(value: str, home: str, *, keep_private: bool) -> str:
    text = value
    if not keep_private:
        text = _PATH.sub("…/", value if len(home) < 2 else value.replace(home, "~"))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
