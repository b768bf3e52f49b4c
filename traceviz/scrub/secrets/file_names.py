"""Secrets in the names of trace files. Profilers name files after hosts, people after experiments.

PyTorch's handler writes ``HOST_PID.TIME.pt.trace.json``; only the host is removed. TensorFlow and JAX write
``plugins/profile/TIME/HOST.xplane.pb``. Other names were chosen by a user. They are kept, unless they can only be the
name of a machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from traceviz.scrub.secrets.addresses import names_machine
from traceviz.scrub.secrets.values import Secret, is_distinctive, secrets_of_identity

_ENDINGS = re.compile(rb"(?:\.(?:gz|json|trace|pt|xplane|pb))*$", re.IGNORECASE)
_SPAN = re.compile(rb"^(?P<host>.+?)_\d+\.\d{9,20}$")
"""File names of PyTorch's own handler, without suffixes: host, process id and time."""
_PORT = re.compile(rb"[_:]\d{4,5}$")
_ADDRESS = re.compile(rb"((?:\d{1,3}\.){3}\d{1,3})(?:[_:]\d{2,5})?")
_FULL_NAME = re.compile(
    rb"[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.(?:local|lan|internal|localdomain|home|corp|cluster)"
    rb"|[A-Za-z][A-Za-z0-9\-]*(?:\.[A-Za-z0-9\-]+)+\.(?:com|org|net|edu|gov|io|ai|de|fr|uk|ch|jp|cn|us|eu)"
)
"""``node17.example.org``, ``adas-laptop.local``: a machine with the name of its network."""
_PROFILE = re.compile(r"\.xplane\.pb(?:\.gz)?$|(?<!\.pt)\.trace\.json(?:\.gz)?$")
_TIME = re.compile(r"\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d")
"""Folders that TensorFlow and JAX write, below ``plugins/profile``."""


def secrets_of_host(name: bytes) -> Iterator[Secret]:
    """Yield the host name in a file name of a profiler; for ``10.0.0.7_6003`` also without the port."""
    without_port = _PORT.sub(b"", name)
    for secret in {*secrets_of_identity(name), *secrets_of_identity(without_port)}:
        yield Secret(secret.text, certain=is_distinctive(secret.text, 6), folds=True)
    address = _ADDRESS.fullmatch(name)
    if address:
        yield Secret(address[1], certain=True)


def secrets_of_file_name(path: PurePath) -> Iterator[Secret]:
    """Yield the host in the name of a file.

    Args:
        path: The file; its folder shows whether a profiler named it.
    """
    stem = _ENDINGS.sub(b"", path.name.encode(errors="replace"))
    span = _SPAN.match(stem)
    if span:
        yield from secrets_of_host(span["host"])
        return
    in_profile = path.parent.parent.name == "profile" or _TIME.fullmatch(path.parent.name) is not None
    is_of_profiler = in_profile and _PROFILE.search(path.name) is not None
    without_port = _PORT.sub(b"", stem)
    is_machine = _ADDRESS.fullmatch(stem) or _FULL_NAME.fullmatch(without_port) or names_machine(without_port)
    if is_of_profiler or is_machine:
        yield from (secret for secret in secrets_of_host(stem) if secret.certain)
