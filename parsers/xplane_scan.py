"""XPlane files as columns, by the compiled scanner where the package was built with one, else through protobuf."""

from __future__ import annotations

from traceviz.parsers import xplane_protobuf
from traceviz.parsers.xplane_raw import Space


def read_space(data: bytes) -> Space:
    """The columns of the XPlane file ``data``, as far as it is whole; what is not is in :attr:`Space.damage`."""
    return xplane_protobuf.read_space(data)
