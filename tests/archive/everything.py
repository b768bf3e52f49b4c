"""Everything readable in a folder: names, raw bytes, and the texts unpacked from them, text by text."""

import gzip
import io
import json
import zipfile

import pyarrow.parquet as pq
import zstandard


def everything(folder):
    """Yield ``(where, bytes)`` of all content of ``folder``: file names, their bytes, and packed contents."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        yield "name", name.encode()
        if path.is_file():
            yield from _unpacked(name, path.read_bytes())


def holding(folder, secret):
    """Return the places of ``secret`` in ``folder``."""
    return [where for where, content in everything(folder) if secret in content]


def _unpacked(where, content):
    yield where, content
    if content.startswith(b"\x1f\x8b"):
        yield from _unpacked(f"{where} unpacked", gzip.decompress(content))
    elif content.startswith(b"\x28\xb5\x2f\xfd"):
        reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content))
        yield from _unpacked(f"{where} unpacked", reader.read())
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for name in packed.namelist():
                yield from _unpacked(f"{where}/{name}", packed.read(name))
    elif content.startswith(b"PAR1"):
        yield from _of_parquet(where, content)
    elif where.endswith(".json"):
        yield f"{where} decoded", "\n".join(_texts(json.loads(content))).encode(errors="replace")


def _of_parquet(where, content):
    with pq.ParquetFile(io.BytesIO(content)) as file:
        table = file.read()
        yield f"{where} footer", str((file.schema, file.metadata.metadata, table.schema.metadata)).encode()
    for name in table.column_names:
        texts = list(_texts(table[name].to_pylist()))
        yield f"{where} {name}", "\n".join(texts).encode(errors="replace")
        if any(text.lstrip().startswith(("{", "[")) for text in texts):
            yield f"{where} {name} decoded", "\n".join(_decoded(texts)).encode(errors="replace")


def _decoded(texts):
    for text in texts:
        try:
            yield from _texts(json.loads(text))
        except ValueError:
            continue


def _texts(value):
    """Yield all texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
