"""Names of machines in texts: unambiguous ones, and hosts of URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator

MACHINE = (
    rb"ip-(?:\d+-){3}\d+|t1v-n-[0-9a-f]+-w-\d+|(?:desktop|laptop|win)-[a-z0-9]{6,}|[\w\-]*(?:macbook|imac)[\w\-]*"
    rb"|(?:[a-z0-9]+-)*(?:node|host|server|srv|dgx|hgx|nid|login|compute|vm|instance|workstation|laptop|desktop)-?\d+"
)
"""``gpu-node-17``, ``dgx03``: words for machines with a number, as the whole name of a file or host."""
_WHOLE = re.compile(MACHINE, re.IGNORECASE)
_ENDINGS = rb"xplane|trace|pt|pb|jsonl?|gz|zst|zip|tar|sqlite|nsys-rep|nvvp|parquet|csv|txt|log|py|ya?ml|html|bin"
_LABELS = rb"(?:\.(?!(?:%b)(?![A-Za-z0-9\-]))[A-Za-z0-9\-]+)*" % _ENDINGS
"""The domain of a machine, without the suffixes of a file that is named after the machine."""
_IN_TEXT = re.compile(
    rb"(?<![A-Za-z0-9.\-])(?:"
    rb"(?:[a-z0-9]{1,32}-){1,6}(?:node|host|server|srv|dgx|hgx|login|compute|vm|instance|workstation|laptop|desktop"
    rb"|pc)-?\d{1,6}"
    rb"|(?:dgx|hgx)-?\d{1,5}|nid\d{4,8}|t1v-n-[0-9a-f]{4,16}-w-\d{1,5}"
    rb"|(?:ip|ec2)-(?:\d{1,3}-){3}\d{1,3}|(?:desktop|laptop|win)-(?=[a-z]{0,15}\d)[a-z0-9]{6,16})(?![A-Za-z0-9])%b"
    % _LABELS,
    re.IGNORECASE,
)
"""The same within a text, where ``node3`` and ``instance-1`` may be anything."""
_INTERNAL = re.compile(
    rb"(?<![A-Za-z0-9.\-])(?=[A-Za-z.]{0,64}[0-9\-])[A-Za-z0-9\-]+%b\.(?:internal|local|lan|corp|localdomain"
    rb"|intranet)(?![A-Za-z0-9(])" % _LABELS,
    re.IGNORECASE,
)
"""Names within company networks, with a digit or a hyphen, as ``threading.local`` is a class."""
_CONTEXT = re.compile(
    rb"(?<![A-Za-z])(?:connect(?:ed|ing|ion)? (?:to|with|from)|host(?:name)?|server|peer|endpoint|addr(?:ess)?)"
    rb"[ =:@\"'(\[]{1,4}(?P<host>[A-Za-z][A-Za-z0-9\-]*%b\.(?:com|org|net|edu|gov|mil|io|ai|dev|cloud|de|fr|uk|ch|jp"
    rb"|cn|us|eu|info"
    rb"|co|internal|local))(?![A-Za-z0-9(])" % _LABELS,
    re.IGNORECASE,
)
"""``connect to train.example.org``."""
_SIGNS = re.compile(rb"\d|\.(?:internal|local|lan|corp|intranet)|host|server|peer|connect|endpoint|addr", re.IGNORECASE)
_PUBLIC = frozenset(
    b"github.com githubusercontent.com huggingface.co hf.co pytorch.org tensorflow.org keras.io python.org pypi.org "
    b"pythonhosted.org readthedocs.io nvidia.com googleapis.com wikipedia.org arxiv.org apache.org w3.org "
    b"example.com".split()
)
"""Well-known sites. Their use reveals nothing."""


def spans_of_machines(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of the machine names in a text, in no order."""
    if _SIGNS.search(text) is None:
        return
    for pattern in (_IN_TEXT, _INTERNAL):
        yield from (match.span() for match in pattern.finditer(text))
    yield from (match.span("host") for match in _CONTEXT.finditer(text) if not is_public(match["host"]))


def names_machine(label: bytes) -> bool:
    """Return whether a word can only be a machine: a word for machines with a number."""
    return _WHOLE.fullmatch(label) is not None


def is_machine(host: bytes) -> bool:
    """Return whether the host of a URL is a private machine, not ``localhost``, ``db`` or a public site."""
    if host.replace(b".", b"").isdigit() or is_public(host):
        return False
    return b"." in host.strip(b".") or any(48 <= byte < 58 or byte == 45 for byte in host)


def is_public(host: bytes) -> bool:
    """Return whether a host belongs to a well-known site."""
    labels = host.lower().rstrip(b".").split(b".")
    return b".".join(labels[-2:]) in _PUBLIC
