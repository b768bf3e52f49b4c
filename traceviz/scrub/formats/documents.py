"""Scrubbing small JSON documents (manifests, headers, notes of collectors), and files of one or one per line.

Members are private by their key or by their text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from traceviz.core.errors import DamagedTraceError
from traceviz.scrub.result import CLEANED, PROPERTIES, Outcome
from traceviz.scrub.secrets.properties import (
    is_path,
    is_private,
    is_private_text,
    is_program_only,
    is_source,
    keeps_command,
)
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.search import leak
from traceviz.scrub.secrets.secrets import (
    base_name,
    secrets_of_arguments,
    secrets_of_property,
    secrets_of_text,
    secrets_of_variable,
)
from traceviz.scrub.secrets.shapes import REMOVED
from traceviz.scrub.secrets.values import Secret
from traceviz.untrusted.json_documents import document_of

_COMMAND_KEY = re.compile("arg|cmd|command", re.IGNORECASE)
"""Keys of command lines. The first word is the program, which is not private and occurs in many names."""

_VERSIONS = frozenset({"version", "versions"})
"""Keys of members whose texts are versions: ``{"versions": {"tensorrt": "10.0.1.6"}}``."""

COMMAND_LINE = "command line"
"""Entry in ``left_out`` of a run whose ``command`` has only plain options."""

OWN_WORDS = tuple(
    b"manifest scrubbed raw tables inject status processes problems plugins profile trace train validation part "
    b"parquet json jsonl nsys nvtx jax torch tensorflow resources report kind version name tags command left_out "
    b"exit code signal window first_step steps delay_s duration_s rate_hz collectors state detail fix sources "
    b"facts machine cores usable cpu sockets memory kernel container gpus driver ordinal uuid versions settings "
    b"pid usage overhead recorded unused failed finished framework samples parts missed options device_tracer "
    b"stacks spy".split()
)
"""Words in file names and keys of traceviz and profilers. A user with such a name must not change them."""
MOST_BYTES = 64 << 20
"""Maximum size in bytes of a run's description."""

Keeps = Callable[[str, str], bool]
"""Returns true if a text under a key is kept."""


def secrets_of_document(value: Any, key: str = "") -> Iterator[Secret]:
    """Yield the secrets of a document: by private keys (the environment, a command line), and by the shape of texts."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from secrets_of_text(str(name).encode(errors="replace"))
            if inner is not None and inner == kept_command(value):
                continue
            if is_private(key) and isinstance(inner, str):
                yield from secrets_of_variable(str(name).encode(errors="replace"), inner.encode(errors="replace"))
            yield from secrets_of_document(inner, _inner_key(key, str(name)))
    elif isinstance(value, list):
        texts = [inner.encode(errors="replace") for inner in value if isinstance(inner, str)]
        if is_private(key):
            yield from secrets_of_arguments(texts[1:] if _COMMAND_KEY.search(key) else texts)
        for inner in value:
            yield from secrets_of_document(inner, key)
    elif isinstance(value, str):
        text = value.encode(errors="replace")
        yield from secrets_of_property(key, text)
        if is_private_text(key) and not is_program_only(value):
            yield from secrets_of_variable(key.encode(errors="replace"), text)
            yield from secrets_of_arguments(text.split()[1:] if _COMMAND_KEY.search(key) else ())


def kept_command(stated: dict[str, Any]) -> str | None:
    """Return the command of the run with this manifest, if private parts were removed from it; else ``None``."""
    command, left_out = stated.get("command"), stated.get("left_out")
    is_kept = isinstance(left_out, list) and COMMAND_LINE in left_out
    return command if is_kept and isinstance(command, str) and keeps_command(command) else None


def clean_document(
    value: Any, redactor: Redactor, removed: Counter[str], keeps: Keeps | None = None, key: str = ""
) -> Any:
    """Return ``value`` without its private parts, which are counted in ``removed``.

    Args:
        value: A document, as ``json.loads`` returns it.
        redactor: Cleans texts.
        removed: Counts by kind, which are updated.
        keeps: Decides whether a cleaned text is kept under a key that is not private; ``None`` keeps all.
        key: The key of ``value``.
    """
    if isinstance(value, dict | list) and value and is_private(key):
        removed[PROPERTIES] += 1
        return REMOVED.decode()
    if isinstance(value, dict):
        return {
            _clean_text(str(name), redactor, removed): clean_document(
                inner, redactor, removed, keeps, _inner_key(key, str(name))
            )
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [clean_document(inner, redactor, removed, keeps, key) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    if is_private_text(key) or (keeps is not None and not keeps(key, value)):
        removed[PROPERTIES] += value != REMOVED.decode()
        return REMOVED.decode()
    return _clean_text(value, redactor, removed, key)


def _inner_key(key: str, name: str) -> str:
    """Return the key for judging a member ``name`` of ``key``. Members of private members are private."""
    if is_private(key):
        return key
    return f"{key}.{name}" if key in _VERSIONS else name


def _clean_text(value: str, redactor: Redactor, removed: Counter[str], key: str = "") -> str:
    text = value.encode(errors="replace")
    if is_source(key):
        clean = redactor.clean_source(text).decode("utf-8", "replace")
    else:
        text = base_name(text) if is_path(value) and " " not in value else text
        clean = redactor.clean_property(key, text).decode("utf-8", "replace")
    removed[CLEANED] += clean != value
    return clean


def encoded(value: Any) -> bytes:
    """Encode ``value`` as JSON with as few escapes as possible, so that a search finds the same text as a reader."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


# Files of documents -------------------------------------------------------------------------------------------------


def secrets_of_json_file(source: Path) -> Iterator[Secret]:
    """Yield the secrets of the document or documents of a file.

    Raises:
        DamagedTraceError: the file cannot be read as JSON.
    """
    for document in _documents(source):
        yield from secrets_of_document(document)


def scrub_json_file(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the JSON file ``source`` to ``target``.

    Arguments and result: see :class:`~traceviz.scrub.formats.registry.FileFormat`.

    Raises:
        DamagedTraceError: ``source`` is not JSON.
        OutputError: a secret would remain in the output.
    """
    documents = _documents(source)
    secrets = [secret for document in documents for secret in secrets_of_document(document)]
    redactor = Redactor.of([*secrets, *known], OWN_WORDS)
    removed: Counter[str] = Counter()
    content = b"".join(encoded(clean_document(document, redactor, removed)) + b"\n" for document in documents)
    check_content(content, redactor)
    target.write_bytes(content)
    return +removed, len(redactor.secrets), len(content)


def check_content(content: bytes, redactor: Redactor) -> None:
    """Raise :class:`OutputError` if a text that is about to be written contains a secret."""
    if redactor.position_in(content) >= 0:
        raise leak("in a description of the run")


def _documents(source: Path) -> list[Any]:
    """Return the document of a file, or the documents of its lines. A truncated last line is skipped."""
    try:
        if source.stat().st_size > MOST_BYTES:
            raise DamagedTraceError(f"{source} is too long for a description.")
        text = source.read_bytes().decode("utf-8", "replace")
        if not source.name.endswith(".jsonl"):
            return [document_of(text, most_bytes=MOST_BYTES)]
        lines = [line for line in text.splitlines() if line.strip()]
        whole = lines if text.endswith("\n") else lines[:-1]
        return [document_of(line) for line in whole]
    except (OSError, ValueError) as error:
        raise DamagedTraceError(f"{source} is no JSON that can be written again.", str(error)) from error
