"""Untrusted URLs: file names that stay inside their folder, and messages without passwords."""

import ftplib
import http.server
import threading

import fsspec
import pytest

from tests.archive.packing import fetched, find_items, trace
from traceviz.archive.sources.discover import items
from traceviz.archive.sources.hashes import Item, Limits, Refused
from traceviz.archive.sources.locations import last_part, reach
from traceviz.archive.storage.addresses import display_address, public
from traceviz.core.errors import UnknownFormatError, UsageError

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://host/a/b%20c.json?X-Amz-Signature=s/e", "b c.json"),
        ("https://host/%2Ftmp%2Fa.json", "a.json"),
        ("https://host/..%2F..%2Fa.json", "a.json"),
        ("https://host/x/%2e%2e", "trace"),
        ("https://host/x%5c..%5ca.json", "trace"),
        ("https://host/a%00b.json", "a_b.json"),
        ("https://host/a%1b%5b31m%0a.json", "a_[31m_.json"),
        ("https://user:hunter2@host", ""),
        ("sftp://user:hunter2@host", "host"),
        ("s3://bucket/runs/a?.json", "a?.json"),
        ("s3://bucket", "bucket"),
    ],
)
def test_the_last_part_of_a_url_is_the_name_of_a_file_below_a_folder(url, name):
    assert last_part(url) == name


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://user:hunter2@host/a.json?token=hunter2#x", "https://host/a.json"),
        ("sftp://user:hunter2@host:22/a.json", "sftp://host:22/a.json"),
        ("ftp://user:hun@ter2@host/a.json", "ftp://host/a.json"),
        ("smb://user:hun/hunter2@host/a.json", "smb://host/a.json"),
        ("foo://hunter2@host", "foo://host"),
        ("abfs://container@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
        ("abfs://container/a.json?sv=1&sig=hunter2", "abfs://container/a.json"),
        ("s3://bucket/runs/??.json", "s3://bucket/runs/??.json"),
        ("http://host:8080/a@b.json", "http://host:8080/a@b.json"),
        ("zip://x.json::sftp://user:hunter2@host/a.zip", "zip://x.json::sftp://host/a.zip"),
        ("/tmp/user:me@host/a?b=c", "/tmp/user:me@host/a?b=c"),
        ("a\x1b[31m", "a\\x1b[31m"),
    ],
)
def test_urls_are_shown_without_users_passwords_and_signatures(url, text):
    assert display_address(url) == text


def test_what_libraries_say_is_told_without_passwords():
    message = (
        "Cannot connect to 'sftp://user:hunter2@host/x' (user:hunter2@host:22), https://host/x?sig=hunter2 at 10:30"
    )
    assert public(message) == "Cannot connect to 'sftp://host/x' (host:22), https://host/x at 10:30"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (f"no sftp://user:{'p' * 10_000}@host/x", "no sftp://host/x"),
        (f"no sftp://{'u' * 10_000}:hunter2@host/x", "no sftp://host/x"),
        (f"no {'u' * 10_000}:{'p' * 10_000}@host", "no host"),
        (f"no (user:{'p:' * 10_000}@host:22)", "no (host:22)"),
        ("no +.1sftp://user:hunter2@host/x and f(a:b@c, d:e@[::1])", "no +.1sftp://host/x and f(c, [::1])"),
    ],
)
def test_passwords_are_left_out_however_long_they_are(message, told):
    assert public(message) == told


def test_a_scheme_of_any_length_is_one():
    assert public(f"{'s' * 100}://user:hunter2@host/x") == f"{'s' * 100}://host/x"


class Refusing(fsspec.AbstractFileSystem):
    """A file system that connects when it is made, as those of ftp and sftp do."""

    protocol = "refusing"
    cachable = False

    def __init__(self, **options):
        super().__init__(**options)
        raise ftplib.error_perm("530 Login incorrect: user:hunter2@host")


@pytest.fixture
def refusing():
    fsspec.register_implementation("refusing", Refusing, clobber=True)


def test_a_place_that_is_reached_when_its_file_system_is_made_is_unreachable_and_the_others_are_found(
    refusing, tmp_path
):
    (tmp_path / "a.sqlite").write_bytes(b"1")
    for url in ("refusing://user:hunter2@host/x.json", "refusing://user:hunter2@host/*.json"):
        listed = list(items([url, str(tmp_path / "a.sqlite")], Limits()))
        assert [one.name for one in listed if isinstance(one, Item)] == ["a.sqlite"]
        (refused,) = [one for one in listed if isinstance(one, Refused)]
        assert refused.code == "unreachable"
        assert "530 Login incorrect: host" in refused.why
        assert SECRET not in repr(refused)


def test_errors_of_programs_are_no_errors_of_stores(refusing, monkeypatch):
    monkeypatch.setattr(Refusing, "__init__", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        reach("refusing://host/x")


def test_a_kind_of_url_that_nobody_knows_is_said_without_its_password():
    with pytest.raises(UsageError, match=r"nosuch://host/a.json cannot be reached") as raised:
        reach("nosuch://user:hunter2@host/a.json")
    assert SECRET not in str(raised.value)


def test_a_connection_that_is_refused_is_said_without_its_password():
    with pytest.raises(
        UnknownFormatError, match=r"ftp://127\.0\.0\.1:1/x cannot be read\. Connection refused"
    ) as raised:
        reach("ftp://user:hunter2@127.0.0.1:1/x")
    assert SECRET not in str(raised.value)


class _Pages(http.server.BaseHTTPRequestHandler):
    """The same trace at every address."""

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(trace())))
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        self.wfile.write(trace())

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture(scope="module")
def pages():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield "http://{}:{}".format(*server.server_address)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("path", ["%2F{tmp}%2Fpwned.json", "..%2F..%2Fpwned.json", "a%00b.json", "%2e%2e%2f%2e%2e"])
def test_a_page_is_fetched_to_the_folder_that_was_named_and_nowhere_else(pages, tmp_path, path):
    place = tmp_path / "place"
    place.mkdir()
    url = f"{pages}/{path.format(tmp=str(tmp_path)[1:].replace('/', '%2F'))}"
    (item,) = find_items(url)[0].values()
    got = fetched(item, place)
    assert got.parent == place / "into"
    assert got.read_bytes() == trace()
    assert {entry.name for entry in tmp_path.iterdir()} == {"place"}
