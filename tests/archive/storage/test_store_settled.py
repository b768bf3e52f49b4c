"""A folder that two programs put into an object store at once ends as that of one of them, however large its files."""

import fsspec
import pytest

from traceviz.archive.storage.store import LAST, Store

PLACE = ("traces", "format=nsys", "trace_id=0000000000000000")
LARGE = 200_000
NAMES = ("kernels.parquet", "report.json", LAST)


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.slow)])
def store(request):
    if request.param == "s3":
        yield Store.at(f"{request.getfixturevalue('bucket')}/archive")
        return
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    yield Store.at("memory://bucket/archive")
    filesystem.store.clear()


def put(store, letter):
    with store.new_folder(*PLACE) as folder:
        for name in NAMES:
            (folder / name).write_text(letter * LARGE)


def recorded(store, monkeypatch, between):
    """Return the names of written files, in order; ``between`` runs before the last file is first written."""
    filesystem = store.filesystem()
    whole, order = filesystem.put_file, []

    def putting(local, remote, **options):
        name = remote.rpartition("/")[2]
        if name == LAST and LAST not in order:
            between(lambda name, text: filesystem.pipe_file(f"{remote.rpartition('/')[0]}/{name}", text.encode()))
        order.append(name)
        return whole(local, remote, **options)

    monkeypatch.setattr(filesystem, "put_file", putting)
    return order


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_large_file_of_another_program_is_put_once_more(store, monkeypatch, name):
    order = recorded(store, monkeypatch, lambda write: write(name, "b" * LARGE))
    put(store, "a")
    assert order == [*NAMES, *NAMES]
    assert {store.read(*PLACE, one) for one in NAMES} == {b"a" * LARGE}


def test_what_nobody_else_writes_is_put_once(store, monkeypatch):
    order = recorded(store, monkeypatch, lambda _: None)
    put(store, "a")
    assert order == [*NAMES]


def test_what_s3_tells_of_a_file_is_enough_to_know_it(bucket, monkeypatch):
    store = Store.at(f"{bucket}/archive")
    monkeypatch.setattr(Store, "open", lambda *_: pytest.fail("A file was read back."))
    put(store, "a")
    assert store.names(*PLACE) == [*NAMES[:1], LAST, NAMES[1]]
