"""Errors of the libraries of object stores are reported as errors of the archive, without passwords."""

import ftplib

import fsspec
import pytest
from botocore.exceptions import NoCredentialsError
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

from traceviz.archive.archive import Archive
from traceviz.archive.storage.layout import check, create
from traceviz.archive.storage.store import Store
from traceviz.cli.main import main
from traceviz.core.errors import OutputError, UsageError

URL, SHOWN = "failing://user:hunter2@host/archive", "failing://host/archive"
SECRET = "hunter2"


class Failing(MemoryFileSystem):
    """A file system that raises the given errors."""

    protocol = "failing"
    cachable = False
    error = None

    def _fail(self, *_given, **_more):
        raise self.error

    ls = find = info = exists = cat_file = pipe_file = open = _fail


@pytest.fixture(
    params=[NoCredentialsError(), ftplib.error_perm("530 user:hunter2@host"), OSError(5, "no"), ValueError("x")]
)
def failing(request, monkeypatch):
    fsspec.register_implementation("failing", Failing, clobber=True)
    monkeypatch.setattr(Failing, "error", request.param)
    return Store.at(URL)


@pytest.mark.parametrize(
    "action",
    [
        lambda store: store.exists("a"),
        lambda store: store.names("a"),
        lambda store: store.read("a"),
        lambda store: store.write(b"", "a"),
        lambda store: store.sizes("a"),
        lambda store: store.open("a").__enter__(),
        create,
        check,
    ],
    ids=["exists", "names", "read", "write", "sizes", "open", "create", "check"],
)
def test_every_error_of_a_library_is_one_of_the_archive(failing, action):
    with pytest.raises(OutputError, match=f"{SHOWN} cannot be used") as raised:
        action(failing)
    assert SECRET not in str(raised.value)


def test_the_command_ends_with_3_and_without_a_password(failing):
    ran = CliRunner().invoke(main, ["archive", "list", URL])
    assert ran.exit_code == 3
    assert SHOWN in ran.output
    assert SECRET not in ran.output


def test_errors_of_the_program_itself_stay_what_they_are(failing, monkeypatch):
    monkeypatch.setattr(Failing, "error", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        failing.read("a")


def test_an_archive_is_called_without_user_and_password(failing):
    assert failing.called("catalogue", "a") == f"{SHOWN}/catalogue/a"
    assert repr(Archive(URL)) == f"Archive('{SHOWN}')"
    assert SECRET not in repr(Store.at("s3://bucket", {"secret": SECRET}))
    with pytest.raises(UsageError, match="nosuch://host/x cannot be reached") as raised:
        Store.at("nosuch://user:hunter2@host/x")
    assert SECRET not in str(raised.value)


def test_what_the_reader_of_a_file_complains_of_is_its_own_affair(tmp_path):
    store = Store.at(tmp_path)
    store.write(b"content", "a")

    def copy():
        with store.open("a") as file:
            assert file.read(3) == b"con"
            assert (file.tell(), file.seek(1), file.read()) == (3, 1, b"ontent")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        copy()
