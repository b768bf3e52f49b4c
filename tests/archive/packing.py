"""Zip and tar files made for tests, harmless and hostile ones."""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import zstandard

from traceviz.archive.sources.discover import fetch, items
from traceviz.archive.sources.hashes import Item, Limits, Refused, source_sha256

TRACE = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "%s", "ts": 1, "dur": 2}]}'
SUFFIX = ".pt.trace.json"


def trace(name="a"):
    """Return a small trace, another one for each name."""
    return TRACE % name.encode()


def zip_of(path, members, **options):
    """Return a zip file of ``members``: pairs of a name (or ZipInfo) and bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def tar_of(path, members, **options):
    """Return a tar file of ``members``: pairs of a name (or TarInfo) and bytes; compressed according to its name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **options) as file:
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    path.write_bytes(compressed(out.getvalue(), path.name))
    return path


def compressed(content, name):
    if name.endswith(("gz", "tgz")):
        return gzip.compress(content, mtime=0)
    return zstandard.compress(content) if name.endswith("zst") else content


def packed_in(folder, path):
    """Return a folder as one archive file."""
    members = [(p.relative_to(folder).as_posix(), p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()]
    return zip_of(path, members) if path.suffix == ".zip" else tar_of(path, members)


def without_descriptors(path, members):
    """Return a zip file that was written to a pipe: sizes stand after each member, and 0 before it."""

    class Pipe(io.RawIOBase):
        def __init__(self):
            self.parts = []

        def writable(self):
            return True

        def write(self, data):
            self.parts.append(bytes(data))
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    path.write_bytes(b"".join(pipe.parts))
    return path


def overlapping_zip(path, count, size):
    """Return a zip file whose members are all the same bytes of it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = bytes(size)
    data = packer.compress(content) + packer.flush()
    crc = zlib.crc32(content)
    name = b"a.sqlite"
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 33, crc, len(data), size, len(name), 0) + name + data
    central = b""
    for number in range(count):
        called = b"%07d.sqlite" % number
        fields = (20, 20, 0, 8, 0, 33, crc, len(data), size, len(called), 0, 0, 0, 0, 0, 0)
        central += struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *fields) + called
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(central), len(local), 0)
    path.write_bytes(local + central + end)
    return path


def find_items(*sources, limits=None):
    """Return items by name, and refusals by name, of all sources."""
    listed = list(items([str(source) for source in sources], limits or Limits()))
    taken = {item.name: item for item in listed if isinstance(item, Item)}
    refused = [item for item in listed if isinstance(item, Refused)]
    return taken, refused


def codes(refused):
    """Return the codes of refusals by name."""
    return {refusal.name: refusal.code for refusal in refused}


def fetched(item, folder, limits=None):
    """Return the path that an item was fetched to, after a check that nothing was written next to it."""
    into = folder / "into"
    into.mkdir()
    path = fetch(item, into, limits or Limits())
    assert {entry.name for entry in folder.iterdir()} <= {"into"}
    assert not any(entry.is_symlink() for entry in into.rglob("*"))
    return Path(path)


def hashes(source, folder, limits=None):
    """Return SHA-256 of every trace that a source holds, by its name without that of the source."""
    result = {}
    for number, (name, item) in enumerate(find_items(source, limits=limits)[0].items()):
        place = folder / str(number)
        place.mkdir(parents=True)
        result[name.partition("/")[2]] = source_sha256(fetched(item, place, limits))[0]
    return result
