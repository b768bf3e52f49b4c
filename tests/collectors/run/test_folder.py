"""Files of a profiler are counted while it writes and removes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from traceviz.collectors.run.folder import bytes_below


def test_files_are_counted_and_a_folder_that_goes_meanwhile_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "socket").write_bytes(b"12345")
    (tmp_path / "report").write_bytes(b"123")
    assert bytes_below(tmp_path) == 8
    scandir = os.scandir

    def gone(path: str | Path) -> object:
        if str(path).endswith("session"):
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", gone)
    assert bytes_below(tmp_path) == 3
    assert bytes_below(tmp_path / "never") == 0
