"""Scrubbing nvprof databases."""

import sqlite3
from pathlib import Path

import pytest

from tests.parsers.nvprof.database import EPOCH, owner, write
from traceviz.core.errors import UnknownFormatError
from traceviz.scrub import scrub

NAMES = {
    1: "_Z4gemmv",
    2: "load /home/ada/x.bin for ada@example.org",
    3: "step on 10.0.0.7",
    4: "/home/ada/unused.txt",
    5: "Tesla V100",
    6: "quux-zebra-77 that nothing refers to",
}
UUID = bytes(range(65, 81))


def leaky(folder: Path) -> Path:
    """Return a database with something private in its strings, among them some that no record names."""
    return write(
        folder,
        names=NAMES,
        CONCURRENT_KERNEL=[{"start": EPOCH, "end": EPOCH + 50, "correlationId": 1, "name": 1}],
        RUNTIME=[{"cbid": 211, "start": EPOCH - 20, "end": EPOCH - 10, "correlationId": 1}],
        MARKER=[
            {"flags": 2, "timestamp": EPOCH, "id": 1, "objectKind": 2, "objectId": owner(thread=9), "name": 2},
            {"flags": 4, "timestamp": EPOCH + 9, "id": 1, "objectKind": 2, "objectId": owner(thread=9), "name": 0},
            {"flags": 1, "timestamp": EPOCH, "id": 2, "objectKind": 2, "objectId": owner(thread=9), "name": 3},
        ],
        DEVICE=[{"id": 0, "name": 5, "uuid": UUID, "globalMemorySize": 16 << 30}],
    )


def rows(path: Path, query: str) -> list[tuple]:
    with sqlite3.connect(path) as database:
        return database.execute(query).fetchall()


@pytest.mark.parametrize("secret", [b"ada", b"/home", b"example.org", b"10.0.0.7", b"quux-zebra-77", UUID])
def test_no_secret_is_left_in_any_byte(tmp_path: Path, secret: bytes) -> None:
    source = leaky(tmp_path)
    assert secret in source.read_bytes()
    scrub(source, tmp_path / "clean.nvvp")
    assert secret not in (tmp_path / "clean.nvvp").read_bytes()


def test_strings_that_records_name_stay_without_what_is_private(tmp_path: Path) -> None:
    scrub(leaky(tmp_path), clean := tmp_path / "clean.nvvp")
    assert dict(rows(clean, "SELECT _id_, value FROM StringTable")) == {
        0: "-- null --",
        1: "_Z4gemmv",
        2: "load [path]/x.bin for [removed]",
        3: "step on [removed]",
        5: "Tesla V100",
    }


def test_numbers_and_owners_are_untouched(tmp_path: Path) -> None:
    source = leaky(tmp_path)
    scrub(source, clean := tmp_path / "clean.nvvp")
    for table in ("CONCURRENT_KERNEL", "RUNTIME", "MARKER"):
        query = f"SELECT * FROM CUPTI_ACTIVITY_KIND_{table}"
        assert rows(clean, query) == rows(source, query), table
        assert rows(clean, query), table
    device = "SELECT uuid, globalMemorySize FROM CUPTI_ACTIVITY_KIND_DEVICE"
    assert rows(clean, device) == [(bytes(16), 16 << 30)]


def test_compiled_programs_go(tmp_path: Path) -> None:
    source = leaky(tmp_path)
    with sqlite3.connect(source) as database:
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MODULE (_id_ INTEGER PRIMARY KEY, cubinSize INT, cubin BLOB NOT NULL)"
        )
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MODULE VALUES (1, 40, ?)", (b"program" * 9,))
    result = scrub(source, clean := tmp_path / "clean.nvvp")
    assert dict(result.removed)["embedded messages (compiled programs and the like)"] == 1
    assert b"programprogram" not in clean.read_bytes()
    assert rows(clean, "SELECT cubinSize FROM CUPTI_ACTIVITY_KIND_MODULE") == [(40,)]


def test_what_was_removed_is_counted(tmp_path: Path) -> None:
    result = scrub(leaky(tmp_path), tmp_path / "clean.nvvp")
    assert dict(result.removed) == {
        "ids of hardware": 1,
        "strings that no kept event refers to": 2,
        "texts cleaned of paths and secrets": 2,
    }
    assert result.verified_bytes == (tmp_path / "clean.nvvp").stat().st_size


def test_a_session_file_without_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.nvvp").write_text('<?xml version="1.0"?><session path="p.nvvp"><executable>/home/ada/x</executable>')
    with pytest.raises(UnknownFormatError):
        scrub(tmp_path / "p.nvvp", tmp_path / "clean.nvvp")
    assert [path.name for path in tmp_path.iterdir()] == ["p.nvvp"]
