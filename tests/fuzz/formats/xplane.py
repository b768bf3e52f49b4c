"""XPlane files of TensorFlow and JAX."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

from tests.conftest import REPOSITORY
from tests.fuzz.cases import Format
from tests.fuzz.mutations import wire
from tests.fuzz.mutations.octets import SPOIL, in_file, inside, repack
from tests.fuzz.mutations.wire import SPACE
from tests.fuzz.oracle import examine
from tests.parsers.xplane.files import Name, Ref, Unsigned, event, line, plane, space
from tests.parsers.xplane.traces import US, environment, gpu, host, training

_TPU = REPOSITORY / "sample_traces" / "synthetic" / "tpu_infeed_wait.xplane.pb"


def jax_step() -> bytes:
    """Return a program of JAX on two devices: runs, modules, tf_op paths, an aggregated event, odd values."""
    call = {"run_id": 5, "_ct": 7, "_c": Unsigned(3), "group_id": 1}
    return space(
        host(
            line(1, event("PjitFunction(f)", 0, 9 * US, {"_p": Unsigned(3), "_pt": 7}), name="python3", timestamp_ns=5),
            line(2, event("Execute", 2 * US, 6 * US, call), event("loop", 0, 1, occurrences=9), name="tf_XLATfrt/2"),
        ),
        gpu(
            line(1, event("jit_f(12)", 3 * US, 5 * US, {"run_id": 5}), name="XLA Modules", timestamp_ns=5),
            line(2, event("fusion.1", 3 * US, US, {"tf_op": Ref("f/dot:"), "hlo_category": "fusion"}), name="XLA Ops"),
            names={"fusion.1": Name("fusion", {"flops": Unsigned(2**63), "bytes_accessed": 8})},
        ),
        gpu(line(20, event("ncclAllReduce", 4 * US, US, {"x": 0.5, "b": b"\x00\xff"}), name="Stream #20"), number=1),
        plane("/host:metadata", names={"jit_f(12)": Name("", {"hlo_proto": b"\x0a\x00"})}),
        environment(),
        errors=["lost"],
        warnings=["dropped 5 events"],
        hostnames=["a-host"],
    )


def contents() -> dict[str, bytes]:
    """Return small files, by name."""
    return {"jax": jax_step(), "training": training(2), "tpu": _TPU.read_bytes()}


def change(random: Random, data: bytes) -> bytes:
    """Return one change of a field."""
    return wire.change(random, data, SPACE)


def _plain(folder: Path) -> None:
    for name, content in contents().items():
        (folder / f"{name}.xplane.pb").write_bytes(content)


def _packed(folder: Path) -> None:
    for name, content in contents().items():
        (folder / f"{name}.xplane.pb.gz").write_bytes(gzip.compress(content, 1, mtime=0))


FIELDS = in_file(change)
XPLANE = Format("xplane", _plain, {FIELDS: 6, SPOIL: 1}, examine)
XPLANE_GZ = Format("xplane.gz", _packed, {inside(FIELDS): 5, inside(SPOIL): 1, repack: 1, SPOIL: 1}, examine)
