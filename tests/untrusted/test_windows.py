"""Large files piece by piece."""

import itertools

import pytest

from traceviz.untrusted import windows as module
from traceviz.untrusted.windows import windows


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 35])
def test_windows_overlap_and_cover_the_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr(module, "WINDOW", 10)
    content = bytes(range(size))
    (tmp_path / "a").write_bytes(content)
    found = list(windows(tmp_path / "a", 3))
    assert b"".join(window if at == 0 else window[3:] for at, (window, _) in enumerate(found)) == content
    assert [is_last for _, is_last in found] == [False] * (len(found) - 1) + [True] * bool(size)
    assert all(later[:3] == earlier[-3:] for (earlier, _), (later, _) in itertools.pairwise(found))


def test_what_is_no_longer_than_the_overlap_is_whole_in_one_window(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 10)
    for place in range(40):
        (tmp_path / "a").write_bytes(b"." * place + b"abcd" + b"." * 9)
        assert any(b"abcd" in window for window, _ in windows(tmp_path / "a", 4))
