"""Directories of zip files with too many members or bytes: zipfile never reads them."""

import struct
import zipfile

import pytest

from tests.archive.packing import codes, find_items
from traceviz.archive.sources.hashes import Limits
from traceviz.archive.sources.packed import zips

LIMITS = Limits(members=20)


def directory(count, extra=0, comment=0):
    """Return a member, and the directory of so many members at its place."""
    name = b"a.sqlite"
    member = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 1, 1, len(name), 0) + name + b"1"
    fields = (20, 20, 0, 0, 0, 33, 0, 1, 1)
    records = b"".join(
        struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *fields, len(called), extra, comment, 0, 0, 0, 0)
        + called
        + bytes(extra + comment)
        for called in (b"%07d.sqlite" % number for number in range(count))
    )
    return member, records


def end(member, records, count, begin=None):
    begin = len(member) if begin is None else begin
    return struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(records), begin, 0)


@pytest.fixture(autouse=True)
def nothing_is_listed(monkeypatch):
    """Makes zipfile fail as soon as it takes a member from a directory."""

    def refuse(*_):
        raise AssertionError("A member was taken.")

    monkeypatch.setattr(zipfile, "ZipInfo", refuse)


def why(path, content, limits=LIMITS):
    path.write_bytes(content)
    taken, refused = find_items(path, limits=limits)
    assert (taken, codes(refused)) == ({}, {path.name: "too-many"})
    return refused[0].why


def test_many_members_are_refused_whatever_number_is_stated(tmp_path):
    member, records = directory(21)
    stated = why(tmp_path / "t.zip", member + records + end(member, records, 3))
    assert stated == "It lists more than 20 members."


def test_many_members_are_refused_though_only_the_records_of_zip64_lead_to_them(tmp_path):
    member, records = directory(21)
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 21, 21, len(records), len(member))
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(member) + len(records), 1)
    stated = why(tmp_path / "t.zip", member + records + record + locator + end(member, b"", 0))
    assert stated == "It lists more than 20 members."


def test_many_members_are_refused_though_the_end_holds_what_looks_like_another_end(tmp_path):
    member, records = directory(21)
    begin = struct.unpack("<L", b"PK\x05\x06")[0]
    content = member + records + end(member, records, 21, begin)
    assert content.rindex(b"PK\x05\x06") > len(content) - 22
    stated = why(tmp_path / "t.zip", content)
    assert stated == "It lists more than 20 members."


def check_found_without_directory(path, content):
    path.write_bytes(content)
    taken, refused = find_items(path, limits=LIMITS)
    assert (list(taken), codes(refused)) == ([f"{path.name}/a.sqlite"], {path.name: "cut"})
    assert "read from its beginning" in refused[0].why


def test_with_an_extra_field_that_no_packer_writes_members_are_found_without_the_directory(tmp_path):
    member, records = directory(1, extra=5000)
    check_found_without_directory(tmp_path / "t.zip", member + records + end(member, records, 1))


def test_with_a_directory_that_is_long_for_its_members_they_are_found_without_it(tmp_path, monkeypatch):
    monkeypatch.setattr(zips, "_MOST_DIRECTORY", 1000)
    member, records = directory(4, comment=600)
    assert 1000 + 20 * 256 > len(records) > 1000 + 4 * 256
    check_found_without_directory(tmp_path / "t.zip", member + records + end(member, records, 4))


def test_a_directory_that_is_longer_than_any_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(zips, "_MOST_DIRECTORY", 1000)
    monkeypatch.setattr(zips, "_check_directory", lambda *_: pytest.fail("It was read."))
    member, records = directory(20, comment=600)
    assert len(records) > 1000 + 20 * 256
    check_found_without_directory(tmp_path / "t.zip", member + records + end(member, records, 20))
