"""Addresses and names of machines in texts, and versions of four numbers that look like addresses.

``10.3.4.107`` may be a machine of a private network, or a version of cuRAND. The context decides. It is a version if
its key, the words before it (``version``, the name of an NVIDIA library), or the text after it (``10.0.1.6+cuda12.0``)
show that. Otherwise it is an address. With a port, a mask or a URL it is always an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_OCTET = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_SITE_NETWORK = (
    rb"(?:192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))(?:\.%b){2}" % _OCTET
)
_TEN = rb"10(?:\.%b){3}" % _OCTET
_PUBLIC_NETWORK = rb"(?!127\.)(?:2[0-9]|[3-9]\d|1\d\d|2[01]\d|22[0-3])(?:\.%b){3}" % _OCTET
_FOUR = re.compile(
    rb"(?<!\d)(?<!\d\.)(?:(?P<site>%b)|(?P<ten>%b)|(?P<public>%b)|(?!127\.|0\.)%b(?:\.%b){3})(?!\d|\.\d)"
    % (_SITE_NETWORK, _TEN, _PUBLIC_NETWORK, _OCTET, _OCTET)
)
"""Four numbers. In a network that is private to a site, they are always an address. Others can be a version."""
_SIX = re.compile(
    rb"(?<![A-Za-z0-9.])(?:(?<!:)[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}"
    rb"|(?:fe80|[23][0-9a-f]{3})(?=[0-9a-f:]{0,40}::|(?::[0-9a-f]{1,4}){5})(?:::?[0-9a-f]{1,4}){1,7}"
    rb"|(?<!::)f[cd][0-9a-f]{2}(?=[0-9a-f:]{0,40}::|(?::[0-9a-f]{1,4}){5})(?:::?[0-9a-f]{1,4}){1,7})"
    rb"(?![A-Za-z0-9]|\.\d|:[0-9A-Fa-f:]{0,40}:)(?:%[A-Za-z][\w.\-]{0,15})?",
    re.IGNORECASE,
)
"""Addresses of version 6, with their zone. C++ names such as ``add::bed::fed`` have no such start."""
_NAMED = re.compile(rb"(?<![A-Za-z0-9])(?:ip|ec2)-(?:\d{1,3}-){3}\d{1,3}(?!\d)", re.IGNORECASE)
"""Names of cloud machines that contain their address."""
_HARDWARE = re.compile(
    rb"(?:(?<![0-9A-Za-z])|(?<=[G-Zg-z])(?=\d))(?:(?:[0-9A-Fa-f]{2}:){5,}"
    rb"|(?<!\d-)(?:[0-9A-Fa-f]{2}-){5,7})[0-9A-Fa-f]{2}"
    rb"(?![0-9A-Fa-f])"
)
"""Addresses of network adapters, and fingerprints of keys, which are longer."""

_LIBRARY = (
    rb"(?:lib|nvidia[_\-])?(?:cuda|cudart|cudnn|cublas(?:lt)?|cufft|curand|cusolver|cusparse(?:lt)?|cufile|cupti"
    rb"|nvrtc|nvcc"
    rb"|nvjpeg|nvjitlink|npp|nvtx|tensor[_\-]?rt|trt)(?:[_\-](?:cu\d+|toolkit|runtime|compiler|driver|nvrtc|cupti"
    rb"|nvcc|dev))*"
)
_VERSION_WORD = rb"(?:[\w\-]*(?<!con)(?<!in)version|ver)"
_VERSION_BEFORE = re.compile(
    rb"(?:^|[^A-Za-z0-9])(?:%b|%b)(?:\.so\.|[ :=<>~@_\-/\"'(\[]{1,32}v?|v?)$" % (_VERSION_WORD, _LIBRARY), re.IGNORECASE
)
"""Texts that end with the announcement of a version: ``cuDNN version: ``, ``TensorRT-``, ``nvidia-curand-cu12==``."""
_VERSION_AFTER = re.compile(
    rb"\+[A-Za-z]|-\d+(?:\.\d+)?\+[A-Za-z]|~[A-Za-z]|[._\-]?(?:rc|alpha|beta|dev|post|a|b)\d", re.IGNORECASE
)
"""Ends of package versions: ``+cuda12.0``, ``-1+cuda10.2``, ``rc1``."""
_PORT_OR_MASK = re.compile(rb":\d{1,5}(?!\d)|/\d{1,2}(?!\d)")
_PORT = re.compile(rb":\d{2,5}(?!\d)")
_MACHINE_BEFORE = re.compile(
    rb"(?:://|(?:^|[^A-Za-z0-9])(?:host|peer|addr|address|ip|ipv4|server|endpoint|remote"
    rb"|listen)(?:name)?[ =:\"'(\[@]{1,4})$",
    re.IGNORECASE,
)
"""Texts that end with the announcement of a machine. Any four numbers after them are its address."""
_REACH = 64
"""Bytes before a number that count as its context."""

_VERSION_KEY = re.compile(
    rf"(?:.*[. ])?{_VERSION_WORD.decode()}s?|versions?\..+|(?:.*[._])?{_LIBRARY.decode()}", re.IGNORECASE
)
_VERSION = re.compile(r"[v<>=~^]*\d+(?:\.\d+){1,5}(?:[\-+~.][\w.+\-~]{1,32})?")

_MAYBE_FOUR = re.compile(rb"\d\.\d+\.\d")
_MAYBE_NAMED = re.compile(rb"(?:ip|ec2)-\d", re.IGNORECASE)
_MAYBE_SIX = re.compile(rb"[0-9a-f]:[0-9a-f:]+:|::[0-9a-f]", re.IGNORECASE)
"""Parts of every address, and of few other texts."""


def spans_of_addresses(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of the machine addresses in a text, in no order."""
    if _MAYBE_FOUR.search(text):
        yield from (match.span() for match in _FOUR.finditer(text) if _is_address(match, text))
    if b"-" in text and _MAYBE_NAMED.search(text):
        yield from (match.span() for match in _NAMED.finditer(text))
    if b":" in text and _MAYBE_SIX.search(text):
        yield from (match.span() for match in _SIX.finditer(text))
    if b":" in text or b"-" in text:
        yield from (match.span() for match in _HARDWARE.finditer(text))


def addresses_in(text: bytes) -> Iterator[bytes]:
    """Return the addresses of machines in a text."""
    return (text[begin:end] for begin, end in spans_of_addresses(text))


def is_address(text: bytes) -> bool:
    """Return whether ``text`` is four numbers with dots, with any meaning."""
    return _FOUR.fullmatch(text) is not None


def is_version(key: str, value: str) -> bool:
    """Return whether a property is a version, by its key and its shape: ``CURAND_VERSION``, ``10.3.4.107``."""
    return _VERSION_KEY.fullmatch(key) is not None and _VERSION.fullmatch(value) is not None


def _is_address(match: re.Match[bytes], text: bytes) -> bool:
    """Return whether four numbers are an address, by their network and by the text around them."""
    if match["site"] is not None:
        return True
    begin, end = match.span()
    before = text[max(0, begin - _REACH) : begin]
    if match["ten"] is None and match["public"] is None:
        return _MACHINE_BEFORE.search(before) is not None or (
            not before[-1:].isalnum() and _PORT.match(text, end) is not None
        )
    if match["public"] is not None and before[-1:] in (b"v", b"V"):
        return _PORT_OR_MASK.match(text, end) is not None
    if _PORT_OR_MASK.match(text, end) or before.endswith(b"://"):
        return True
    return _VERSION_BEFORE.search(before) is None and _VERSION_AFTER.match(text, end) is None


# Names of machines: unambiguous ones, and hosts of URLs -------------------------------------------------------------

_MACHINE_NAME = re.compile(
    rb"ip-(?:\d+-){3}\d+|t1v-n-[0-9a-f]+-w-\d+|(?:desktop|laptop|win)-[a-z0-9]{6,}|[\w\-]*(?:macbook|imac)[\w\-]*"
    rb"|(?:[a-z0-9]+-)*(?:node|host|server|srv|dgx|hgx|nid|login|compute|vm|instance|workstation|laptop|desktop)-?\d+",
    re.IGNORECASE,
)
"""``gpu-node-17``, ``dgx03``: words for machines with a number, as the whole name of a file or host."""
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
    return _MACHINE_NAME.fullmatch(label) is not None


def is_machine(host: bytes) -> bool:
    """Return whether the host of a URL is a private machine, not ``localhost``, ``db`` or a public site."""
    if host.replace(b".", b"").isdigit() or is_public(host):
        return False
    return b"." in host.strip(b".") or any(48 <= byte < 58 or byte == 45 for byte in host)


def is_public(host: bytes) -> bool:
    """Return whether a host belongs to a well-known site."""
    labels = host.lower().rstrip(b".").split(b".")
    return b".".join(labels[-2:]) in _PUBLIC
