"""Places for archives: an S3 server of this machine."""

import shutil
import tempfile
import uuid

import pytest
from moto.server import ThreadedMotoServer

from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.storage.spool import SPOOL

_SERVERS = {"s3_server", "dask_address"}


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their markers
def pytest_collection_modifyitems(items):
    """Tests that need servers of their own are slow; what they show of our code, others show without servers."""
    for item in items:
        if _SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def s3_server():
    """Address of an S3 server of this machine."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_environment(s3_server):
    """Variables that a process needs in its environment to use the server."""
    return {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture
def bucket(s3_environment, monkeypatch):
    """URL of a new bucket, which this process and those that it starts can use."""
    import s3fs

    for name, value in s3_environment.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    url = f"s3://traceviz-{uuid.uuid4().hex}"
    s3fs.S3FileSystem().mkdir(url)
    yield url
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="session")
def dask_address(tmp_path_factory):
    """Address of a Dask scheduler with two worker processes."""
    from tests.archive.clusters import dask_cluster

    with dask_cluster(tmp_path_factory.mktemp("dask")) as address:
        yield address


@pytest.fixture
def in_process(monkeypatch):
    """Commands work in this process: starting others takes seconds, and shows nothing of what is added or asked."""
    monkeypatch.setattr("traceviz.archive.runners.choose.LocalRunner", lambda *_workers: SerialRunner())


@pytest.fixture(scope="session")
def filled_once(tmp_path_factory, samples):
    """A folder of sources and an archive of them: five traces that can be read, two that cannot. Not to be changed."""
    from tests.archive.made_sources import make_sources
    from traceviz.archive.archive import Archive

    folder = tmp_path_factory.mktemp("filled")
    sources = make_sources(folder / "sources", samples)
    archive = Archive(folder / "archive")
    archive.add(sources, runner=SerialRunner(), tags={"branch": "main"})
    return folder


@pytest.fixture
def filled(filled_once, tmp_path):
    """A copy of that, which a test may change."""
    folder = tmp_path / "filled"
    shutil.copytree(filled_once, folder)
    return folder


@pytest.fixture
def own_spool(tmp_path, monkeypatch):
    """A place of each test for what is unpacked on the way, which is empty again at its end."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    SPOOL.release()
    assert [entry for folder in place.iterdir() for entry in folder.iterdir()] == []
