"""Addresses of machines in texts, and versions of four numbers that look like addresses.

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
