"""Network addresses in texts, and the versions of four numbers that look like them.

``10.3.4.107`` is a machine of a private network, and a version of cuRAND. The context decides. It is a version where
the words before it state that (``version``, the name of a library of NVIDIA), its key, or the text after it
(``10.0.1.6+cuda12.0``); else it is an address. With a port, a mask or a URL it is an address in any context.
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
_WITH_PORT = rb"(?!127\.|0\.)%b(?:\.%b){3}(?=:\d{2,5}(?!\d))" % (_OCTET, _OCTET)
_SIX = (
    rb"[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}"
    rb"|(?:fe80|f[cd][0-9a-f]{2}|2[0-9a-f]{3})(?=[0-9a-f:]*::|(?::[0-9a-f]{1,4}){5})(?:::?[0-9a-f]{1,4}){2,7}"
)
_IN_URL = rb"(?<=://)%b(?:\.%b){3}" % (_OCTET, _OCTET)
_ADDRESS = re.compile(
    rb"(?<![A-Za-z0-9.:])(?:(?:%b|(?P<maybe>%b))(?![A-Za-z0-9]|\.\d|:[0-9A-Fa-f:]*:)|%b)"
    % (
        b"|".join([_IN_URL, _SITE_NETWORK, _SIX, rb"ip-(?:\d{1,3}-){3}\d{1,3}"]),
        b"|".join([_TEN, _PUBLIC_NETWORK]),
        _WITH_PORT,
    ),
    re.IGNORECASE,
)
"""Addresses of machines; ``maybe`` those that can be versions. Four numbers that begin below 20 are taken for a version
(cuDNN 8.9.2.26) unless they lie in a network that is private to a site, or a port follows."""

_LIBRARY = (
    rb"(?:lib|nvidia[_\-])?(?:cuda|cudart|cudnn|cublas(?:lt)?|cufft|curand|cusolver|cusparse(?:lt)?|cufile|cupti|nvrtc|nvcc"
    rb"|nvjpeg|nvjitlink|npp|nvtx|tensor[_\-]?rt|trt)(?:[_\-](?:cu\d+|toolkit|runtime|compiler|driver|nvrtc|cupti|nvcc|dev))*"
)
_VERSION_WORD = rb"(?:[\w\-]*(?<!con)(?<!in)version|ver)"
_VERSION_BEFORE = re.compile(
    rb"(?:^|[^A-Za-z0-9])(?:%b|%b)[ :=<>~@_\-/\"'(\[]{1,32}$" % (_VERSION_WORD, _LIBRARY), re.IGNORECASE
)
"""Texts that announce a version at their end: ``cuDNN version: ``, ``TensorRT-``, ``nvidia-curand-cu12==``."""
_VERSION_AFTER = re.compile(rb"\+[A-Za-z]|-\d+(?:\.\d+)?\+[A-Za-z]|~[A-Za-z]")
"""Ends of versions of packages: ``+cuda12.0``, ``-1+cuda10.2``."""
_PORT_OR_MASK = re.compile(rb":\d|/\d{1,2}(?!\d)")
_REACH = 64
"""Bytes before a number that count as its context."""

_VERSION_KEY = re.compile(
    rf"(?:.*[. ])?{_VERSION_WORD.decode()}s?|versions?\..+|(?:.*[._])?{_LIBRARY.decode()}", re.IGNORECASE
)
_VERSION = re.compile(r"[v<>=~^]*\d+(?:\.\d+){1,5}(?:[\-+~.][\w.+\-~]{1,32})?")

_MAYBE_ADDRESS = re.compile(rb"\d\.\d+\.\d|ip-\d|[0-9a-f]:[0-9a-f:]+:", re.IGNORECASE)
"""Part of every address, and of few other texts."""


def addresses_in(text: bytes) -> Iterator[bytes]:
    """The addresses of machines in a text."""
    return (match.group() for match in _matches(text))


def without_addresses(text: bytes, instead: bytes) -> bytes:
    """A text with ``instead`` in place of the addresses of machines."""
    parts, at = [], 0
    for match in _matches(text):
        parts += [text[at : match.start()], instead]
        at = match.end()
    return b"".join([*parts, text[at:]]) if parts else text


def is_version(key: str, value: str) -> bool:
    """Whether a property is a version, by its key and its shape: ``CURAND_VERSION``, ``10.3.4.107``."""
    return _VERSION_KEY.fullmatch(key) is not None and _VERSION.fullmatch(value) is not None


def _matches(text: bytes) -> Iterator[re.Match[bytes]]:
    if _MAYBE_ADDRESS.search(text):
        yield from (match for match in _ADDRESS.finditer(text) if not _is_stated_version(match, text))


def _is_stated_version(match: re.Match[bytes], text: bytes) -> bool:
    if match["maybe"] is None or _PORT_OR_MASK.match(text, match.end()):
        return False
    before = text[max(0, match.start() - _REACH) : match.start()]
    return _VERSION_BEFORE.search(before) is not None or _VERSION_AFTER.match(text, match.end()) is not None
