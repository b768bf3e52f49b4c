"""Scrubbing small JSON files, also with one document per line: manifests and notes of collectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from traceviz.core.errors import DamagedTraceError
from traceviz.scrub.formats.documents import clean_document, encoded, secrets_of_document
from traceviz.scrub.result import Outcome
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.search import leak
from traceviz.scrub.secrets.values import Secret
from traceviz.untrusted.json_documents import document_of

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
