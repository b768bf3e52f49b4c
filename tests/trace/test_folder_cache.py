"""The cache deletes only its own files, with any other files in its folder."""

import os
import time

import pytest

from traceviz.core.errors import TracevizWarning
from traceviz.trace.folder_cache import MARKER, KeptFolders, kept_folders

FILES = frozenset({"manifest.json", "kernels.parquet"})
A, B, C = ("a" * 64, "b" * 64, "c" * 64)


@pytest.fixture
def cache(tmp_path):
    """A cache with room for two entries."""
    return KeptFolders(tmp_path / "cache" / "exports", FILES, 2_500)


def made(tmp_path, size=1_000):
    """Return a folder as an export writes it."""
    folder = tmp_path / "made"
    folder.mkdir()
    manifest = '{"kind": "traceviz.trace"}'
    (folder / "manifest.json").write_text(manifest)
    (folder / "kernels.parquet").write_bytes(bytes(size - len(manifest)))
    return folder


def kept(cache, tmp_path, *keys):
    for used, key in enumerate(keys):
        assert cache.keep(key, made(tmp_path)) == cache.place / key
        os.utime(cache.place / key, (used, used))


def names(cache):
    return sorted(entry.name for entry in cache.place.iterdir())


def test_a_new_folder_gets_a_marker_and_is_of_this_user_alone(cache, tmp_path):
    kept(cache, tmp_path, A)
    assert names(cache) == [MARKER, A]
    assert cache.place.stat().st_mode & 0o777 == 0o700
    assert (cache.place / MARKER).read_text().startswith("A cache of traceviz.")


def test_an_empty_folder_gets_a_marker(cache, tmp_path):
    cache.place.mkdir(mode=0o700, parents=True)
    kept(cache, tmp_path, A)
    assert names(cache) == [MARKER, A]


def test_the_entry_that_was_not_used_for_longest_is_evicted(cache, tmp_path):
    kept(cache, tmp_path, A, B)
    assert cache.find(A) == cache.place / A
    kept(cache, tmp_path, C)
    assert names(cache) == [MARKER, A, C]


def foreign_folder(place):
    (place / "thesis").mkdir(mode=0o700)
    (place / "thesis" / "data.bin").write_bytes(bytes(100_000))


def hidden_folder(place):
    (place / ".git").mkdir(mode=0o700)
    (place / ".git" / "HEAD").write_text("precious")


def file_of_the_user(place):
    (place / "notes.txt").write_text("precious")


def folder_named_as_a_key(place):
    """A store of someone else may name folders by digests, too."""
    (place / ("d" * 64)).mkdir(mode=0o700)
    (place / ("d" * 64) / "data.parquet").write_bytes(bytes(100_000))


def folder_with_a_link_to_more(place):
    (place / ("d" * 64)).mkdir(mode=0o700)
    (place / ("d" * 64) / "kernels.parquet").symlink_to(place.parent.parent / "precious")


def folder_named_as_unfinished(place):
    (place / ".0123456789ab").mkdir(mode=0o700)
    (place / ".0123456789ab" / "draft.txt").write_text("precious")


def link_named_as_a_key(place):
    (place.parent / "elsewhere").mkdir(mode=0o700)
    (place.parent / "elsewhere" / "kernels.parquet").write_bytes(bytes(100_000))
    (place / ("d" * 64)).symlink_to(place.parent / "elsewhere")


FOREIGN = [
    foreign_folder,
    hidden_folder,
    file_of_the_user,
    folder_named_as_a_key,
    folder_with_a_link_to_more,
    folder_named_as_unfinished,
    link_named_as_a_key,
]


def all_below(folder):
    return sorted((str(path), path.is_symlink(), path.lstat().st_size) for path in folder.rglob("*"))


def aged(place):
    """Make all entries look unused for years."""
    for entry in place.iterdir():
        os.utime(entry, (1_000, 1_000), follow_symlinks=False)


@pytest.mark.parametrize("put", FOREIGN)
def test_a_folder_with_anything_of_the_user_and_no_marker_is_left_alone(cache, tmp_path, put):
    (tmp_path / "precious").write_bytes(bytes(100_000))
    cache.place.mkdir(mode=0o700, parents=True)
    put(cache.place)
    aged(cache.place)
    before = all_below(cache.place.parent)
    folder = made(tmp_path)
    assert "which traceviz did not write" in cache.problem()
    assert (cache.keep(A, folder), cache.find(A)) == (None, None)
    cache.evict("d" * 64)
    assert (all_below(cache.place.parent), sorted(file.name for file in folder.iterdir())) == (before, sorted(FILES))


@pytest.mark.parametrize("put", FOREIGN)
def test_of_what_a_user_put_into_the_cache_nothing_is_evicted(cache, tmp_path, put):
    (tmp_path / "precious").write_bytes(bytes(100_000))
    kept(cache, tmp_path, A)
    (cache.place / A).rename(tmp_path / "aside")
    put(cache.place)
    aged(cache.place)
    before = all_below(cache.place.parent)
    (tmp_path / "aside").rename(cache.place / A)
    kept(cache, tmp_path, B, C)  # one too many: A goes
    cache.evict("d" * 64)
    assert A not in names(cache)
    cache.evict(B)
    cache.evict(C)
    assert all_below(cache.place.parent) == before
    assert (tmp_path / "precious").stat().st_size == 100_000


def test_a_folder_of_an_earlier_version_is_adopted(cache, tmp_path):
    kept(cache, tmp_path, A)
    (cache.place / MARKER).unlink()
    (cache.place / ".0123456789ab").mkdir(mode=0o700)
    assert cache.find(A) == cache.place / A
    kept(cache, tmp_path, B, C)
    assert names(cache) == [".0123456789ab", MARKER, A, C]


def test_entries_that_are_not_traces_of_ours_are_not_adopted(cache, tmp_path):
    kept(cache, tmp_path, A)
    (cache.place / MARKER).unlink()
    (cache.place / A / "manifest.json").write_text('{"kind": "dataset"}')
    aged(cache.place)
    assert cache.problem() == f"it holds {A!r}, which traceviz did not write"
    assert cache.keep(B, made(tmp_path)) is None
    assert names(cache) == [A]


@pytest.mark.parametrize("age_h", [23, 25])
def test_an_unfinished_entry_is_removed_after_a_day(cache, tmp_path, age_h):
    kept(cache, tmp_path, A)
    unfinished = cache.place / ".0123456789ab"
    unfinished.mkdir(mode=0o700)
    (unfinished / "kernels.parquet").write_text("half")
    at = time.time() - age_h * 3600
    os.utime(unfinished, (at, at))
    kept(cache, tmp_path, B)
    assert unfinished.exists() == (age_h < 24)


def test_a_second_process_that_keeps_the_same_reads_its_own(cache, tmp_path):
    kept(cache, tmp_path, A)
    folder = made(tmp_path)
    assert cache.keep(A, folder) is None
    assert (sorted(file.name for file in folder.iterdir()), names(cache)) == (sorted(FILES), [MARKER, A])


def test_a_marker_that_is_no_file_marks_nothing(cache, tmp_path):
    cache.place.mkdir(mode=0o700, parents=True)
    (cache.place / MARKER).symlink_to(tmp_path / "nowhere")
    assert cache.keep(A, made(tmp_path)) is None
    assert names(cache) == [MARKER]


def test_the_folder_that_the_environment_names_is_not_used_if_it_is_not_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEVIZ_CACHE", str(tmp_path))
    assert kept_folders("exports", FILES).place == tmp_path / "exports"
    (tmp_path / "exports" / "thesis").mkdir(parents=True)
    (tmp_path / "exports").chmod(0o700)
    with pytest.warns(TracevizWarning, match="it holds 'thesis', which traceviz did not write"):
        assert kept_folders("exports", FILES) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_of_another_user_is_not_used(cache, tmp_path):
    kept(cache, tmp_path, A)
    os.chown(cache.place, 12345, 12345)
    assert (cache.problem(), cache.find(A)) == ("it belongs to another user", None)
    cache.evict(A)
    assert names(cache) == [MARKER, A]
