"""Verdicts of reports that were made after a run had ended, for the list of runs.

A run folder is a source, and no report changes it. So the verdict lies in the cache of this user, under the digest of
the run's manifest. Without a cache, ``traceviz runs`` shows the verdict from the end of the run.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from traceviz.core.process.temporary import temporary_folder
from traceviz.parsers.run.layout import MANIFEST
from traceviz.parsers.run.manifest import Judgement
from traceviz.trace.folder_cache import kept_folders
from traceviz.untrusted.json_documents import read_object

_KIND, _FILE = "verdicts", "verdict.json"
"""Names in the cache."""


def save_verdict(run: Path, verdict: Judgement) -> None:
    """Store the verdict of a report on a run; it replaces an earlier one."""
    kept = kept_folders(_KIND, frozenset({_FILE}))
    with suppress(OSError):
        if kept is None or _stated(run) == verdict or saved_verdict(run) == verdict:
            return
        key = _key(run)
        with temporary_folder() as work:
            folder = work / "verdict"
            folder.mkdir()
            document = {"code": verdict.code, "sentence": verdict.sentence}
            (folder / _FILE).write_text(json.dumps(document), encoding="utf-8")
            kept.evict(key)
            kept.keep(key, folder)


def saved_verdict(run: Path) -> Judgement | None:
    """Return the verdict of the last report on a run; ``None`` if only the verdict in its manifest is known."""
    kept = kept_folders(_KIND, frozenset({_FILE}))
    try:
        folder = None if kept is None else kept.find(_key(run))
    except OSError:
        return None
    return None if folder is None else _judgement(read_object(folder / _FILE))


def _stated(run: Path) -> Judgement:
    """Return the verdict in the manifest of a run."""
    stated = read_object(run / MANIFEST).get("verdict")
    return _judgement(stated if isinstance(stated, dict) else {})


def _judgement(document: dict[str, object]) -> Judgement:
    return Judgement(str(document.get("code") or ""), str(document.get("sentence") or ""))


def _key(run: Path) -> str:
    return hashlib.sha256((run / MANIFEST).read_bytes()).hexdigest()
