"""Archive files of strangers: what is taken, what is refused, and that nothing is written elsewhere."""

import contextlib
import gzip
import io
import os
import struct
import tarfile
import zipfile

import pytest
import zstandard

from tests.archive.packing import (
    SUFFIX,
    codes,
    fetched,
    find_items,
    hashes,
    overlapping_zip,
    tar_of,
    trace,
    without_descriptors,
    zip_of,
)
from traceviz.archive.sources.discover import fetch
from traceviz.archive.sources.hashes import Limits
from traceviz.archive.sources.locations import Location
from traceviz.archive.sources.names import unsafe
from traceviz.archive.sources.packed import members, tars
from traceviz.archive.storage.addresses import printable
from traceviz.archive.storage.spool import SPOOL
from traceviz.core.errors import DamagedTraceError, OutputError, UnknownFormatError

A, B = f"a{SUFFIX}", f"b{SUFFIX}"
KINDS = ("t.zip", "t.tar", "t.tar.gz", "t.tgz", "t.tar.zst")


pytestmark = pytest.mark.usefixtures("own_spool")


def pack(path, contents):
    return zip_of(path, contents) if path.suffix == ".zip" else tar_of(path, contents)


@pytest.mark.parametrize("name", [*KINDS, "misnamed.sqlite", "none"])
def test_members_are_taken_whatever_the_archive_file_is_called(tmp_path, name):
    path = tmp_path / name
    pack(tmp_path / ("t.zip" if name == "none" else "t.tar.zst" if "." not in name else name), [(A, trace())])
    made = next(entry for entry in tmp_path.iterdir() if entry.is_file())
    made.rename(path)
    taken, refused = find_items(path)
    assert list(taken) == [f"{name}/{A}"]
    assert refused == []
    assert fetched(taken[f"{name}/{A}"], _room(tmp_path)).read_bytes() == trace()


def _room(tmp_path, name="room"):
    (tmp_path / name).mkdir()
    return tmp_path / name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    [
        *("../evil.sqlite", "a/../../evil.sqlite", "/evil.sqlite", "//evil.sqlite", "..", "a/..", "C:evil.sqlite"),
        *("C:/evil.sqlite", "c:\\evil.sqlite", "..\\evil.sqlite", "a\\b.sqlite", "x" * 256 + ".sqlite"),
        "/".join(["y" * 200] * 6) + ".sqlite",
    ],
)
def test_names_that_lead_elsewhere_are_refused_and_the_others_taken(tmp_path, kind, name):
    made = pack(tmp_path / kind, [(name, trace("evil")), (A, trace())])
    taken, refused = find_items(made)
    assert list(taken) == [f"{kind}/{A}"]
    assert [refusal.code for refusal in refused] == ["unsafe-name"]
    assert fetched(taken[f"{kind}/{A}"], _room(tmp_path)).read_bytes() == trace()
    assert not list(tmp_path.rglob("*evil*"))


def test_a_name_with_nul_in_a_zip_is_refused(tmp_path):
    made = zip_of(tmp_path / "t.zip", [("aX.sqlite", b"1")])
    made.write_bytes(made.read_bytes().replace(b"aX.sqlite", b"a\0.sqlite"))
    taken, refused = find_items(made)
    assert taken == {}
    assert [(refusal.name, refusal.code) for refusal in refused] == [("t.zip/a\\x00.sqlite", "unsafe-name")]


@pytest.mark.parametrize("kind", ["t.tar", "t.tar.gz", "t.tar.zst"])
def test_links_devices_and_pipes_in_tars_are_refused_and_nothing_is_made_of_them(tmp_path, kind):
    special = []
    for number, (type_, target) in enumerate(
        [
            *((tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, A), (tarfile.CHRTYPE, ""), (tarfile.BLKTYPE, "")),
            *((tarfile.FIFOTYPE, ""), (b"Z", "")),
        ]
    ):
        info = tarfile.TarInfo(f"{number}.sqlite")
        info.type, info.linkname = type_, target
        special.append((info, b""))
    into = tarfile.TarInfo("sub")  # a link to a folder, and a member that would be written through it
    into.type, into.linkname = tarfile.SYMTYPE, str(tmp_path)
    made = tar_of(tmp_path / kind, [*special, (into, b""), ("sub/evil.sqlite", b"1"), (A, trace())])
    taken, refused = find_items(made)
    assert set(taken) == {
        f"{kind}/{A}",
        f"{kind}/sub/evil.sqlite",
    }
    assert [refusal.code for refusal in refused] == ["link", "link", "device", "device", "device", "device", "link"]
    assert "/etc/passwd" in refused[0].why
    fetched(taken[f"{kind}/sub/evil.sqlite"], _room(tmp_path))
    assert [path.parent.name for path in tmp_path.rglob("evil.sqlite")] == ["into"]


def test_links_and_devices_in_zips_are_refused(tmp_path):
    contents = []
    for number, mode in enumerate((0o120777, 0o020666, 0o010644, 0o140755, 0o100644)):
        info = zipfile.ZipInfo(f"{number}.sqlite")
        info.external_attr = mode << 16
        info.create_system = 3
        contents.append((info, b"/etc/passwd"))
    taken, refused = find_items(zip_of(tmp_path / "t.zip", contents))
    assert list(taken) == ["t.zip/4.sqlite"]
    assert [refusal.code for refusal in refused] == ["link", "device", "device", "device"]


@pytest.mark.parametrize("kind", KINDS)
def test_of_2_members_of_1_name_the_last_counts_and_it_is_said(tmp_path, kind):
    contents = [(A, trace("first")), (f"./{A}", trace("last"))]
    if kind == "t.zip":
        with zipfile.ZipFile(tmp_path / kind, "w") as file:
            file.writestr(A, contents[0][1])
            with pytest.warns(UserWarning, match="Duplicate"):
                file.writestr(A, contents[1][1])
    else:
        tar_of(tmp_path / kind, contents)
    taken, refused = find_items(tmp_path / kind)
    assert codes(refused) == {f"{kind}/{A}": "duplicate"}
    assert fetched(taken[f"{kind}/{A}"], _room(tmp_path)).read_bytes() == trace("last")


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_named_as_a_folder_of_another_is_refused(tmp_path, kind):
    taken, refused = find_items(pack(tmp_path / kind, [("a.sqlite", b"1"), ("a.sqlite/b.sqlite", b"2")]))
    assert list(taken) == [f"{kind}/a.sqlite/b.sqlite"]
    assert codes(refused) == {f"{kind}/a.sqlite": "unsafe-name"}


@pytest.mark.parametrize("kind", KINDS)
def test_names_in_utf8_are_shown_and_fetched(tmp_path, kind):
    name = f"größe/训练 1{SUFFIX}"
    taken, _ = find_items(pack(tmp_path / kind, [(name, trace())]))
    assert list(taken) == [f"{kind}/{name}"]
    assert fetched(taken[f"{kind}/{name}"], _room(tmp_path)).name == f"训练 1{SUFFIX}"


@pytest.mark.parametrize("kind", ["t.tar", "t.tar.gz"])
def test_names_in_tars_that_are_not_utf8_are_shown_by_their_bytes_and_fetched(tmp_path, kind):
    info = tarfile.TarInfo(os.fsdecode(b"caf\xe9.sqlite"))
    made = tar_of(tmp_path / kind, [(info, b"1")], format=tarfile.GNU_FORMAT, errors="surrogateescape")
    taken, _ = find_items(made)
    assert list(taken) == [f"{kind}/caf\\xe9.sqlite"]
    path = fetched(taken[f"{kind}/caf\\xe9.sqlite"], _room(tmp_path))
    assert (os.fsencode(path.name), path.read_bytes()) == (b"caf\xe9.sqlite", b"1")


def test_names_in_zips_are_read_as_utf8_where_they_can_be_and_else_as_cp437(tmp_path):
    made = zip_of(tmp_path / "t.zip", [("caf0.sqlite", b"1"), ("gr00e.sqlite", b"2")])
    made.write_bytes(made.read_bytes().replace(b"caf0", b"caf\x82").replace(b"gr00e", "größ"[:3].encode() + b"e"))
    taken, refused = find_items(made)
    assert (list(taken), refused) == (["t.zip/café.sqlite", "t.zip/gröe.sqlite"], [])


def test_a_zip_whose_directory_is_not_the_utf8_that_it_says_is_read_from_its_beginning(tmp_path):
    made = zip_of(tmp_path / "t.zip", [("é.sqlite", b"1" * 500), (A, trace())])
    made.write_bytes(made.read_bytes().replace("é.sqlite".encode(), b"\xff\xfe.sqlite"))
    taken, refused = find_items(made)
    assert set(taken) == {"t.zip/\\xff\\xfe.sqlite", f"t.zip/{A}"}
    assert codes(refused) == {"t.zip": "cut"}
    assert fetched(taken["t.zip/\\xff\\xfe.sqlite"], _room(tmp_path)).read_bytes() == b"1" * 500


def test_what_a_terminal_would_obey_is_shown_as_its_code():
    assert printable("a\x1b[31m\n\u202ed\ud800.json") == "a\\x1b[31m\\n\\u202ed\\ud800.json"
    assert printable("größe 训练\u00a0x") == "größe 训练\u00a0x"
    assert len(printable("x" * 100_000)) < 1_000
    assert unsafe("a/\ud800.sqlite") == "Its name holds half a character."


@pytest.mark.parametrize("kind", ["t.zip", "t.tar.gz", "t.tar.zst"])
def test_a_bomb_by_ratio_is_refused(tmp_path, kind):
    made = pack(tmp_path / kind, [("bomb.sqlite", bytes(3_000_000)), (A, trace())])
    taken, refused = find_items(made, limits=Limits(ratio=100, free=1_000_000))
    if kind == "t.zip":
        assert (list(taken), codes(refused)) == ([f"t.zip/{A}"], {"t.zip/bomb.sqlite": "bomb"})
        assert "3,000,000 bytes" in refused[0].why
    else:  # members of these cannot be had one by one
        assert (list(taken), codes(refused)) == ([], {kind: "bomb"})
        assert "the limit is 100" in refused[0].why
    assert len(find_items(made)[0]) == 2  # the same is no bomb under the usual limits, which leave small ones free


def test_a_zip_whose_members_lie_over_each_other_is_refused_as_a_whole(tmp_path):
    taken, refused = find_items(overlapping_zip(tmp_path / "t.zip", 2000, 100_000))
    assert taken == {}
    assert {refusal.code for refusal in refused} == {"bomb"}
    assert len(refused) == 2000


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_is_larger_than_the_limit_is_refused_and_the_others_taken(tmp_path, kind):
    made = pack(tmp_path / kind, [("big.sqlite", os.urandom(5000)), (A, trace())])
    taken, refused = find_items(made, limits=Limits(bytes=4000))
    assert list(taken) == [f"{kind}/{A}"]
    assert codes(refused) == {f"{kind}/big.sqlite": "too-large"}


@pytest.mark.parametrize("kind", KINDS)
def test_more_members_than_the_limit_are_refused(tmp_path, kind):
    made = pack(tmp_path / kind, [(f"{number}.sqlite", b"1") for number in range(30)])
    taken, refused = find_items(made, limits=Limits(members=20))
    assert (taken, codes(refused)) == ({}, {kind: "too-many"})
    assert "more than 20 members" in refused[0].why
    assert len(find_items(made, limits=Limits(members=30))[0]) == 30


def test_a_zip_that_states_few_members_and_lists_many_is_refused_before_they_are_read(tmp_path, monkeypatch):
    made = zip_of(tmp_path / "t.zip", [(f"{number}.sqlite", b"1") for number in range(30)])
    raw = bytearray(made.read_bytes())
    raw[-14:-10] = struct.pack("<2H", 3, 3)
    made.write_bytes(raw)
    monkeypatch.setattr(zipfile, "ZipInfo", None)
    _, refused = find_items(made, limits=Limits(members=20))
    assert "more than 20 members" in refused[0].why


@pytest.mark.parametrize("outer", KINDS)
@pytest.mark.parametrize("inner", ["inner.zip", "inner.tar", "inner.tar.gz", "inner.tar.zst"])
def test_an_archive_file_inside_an_archive_file_is_refused(tmp_path, outer, inner):
    nested = pack(tmp_path / inner, [(A, trace())]).read_bytes()
    taken, refused = find_items(pack(tmp_path / outer, [(inner, nested), (B, trace("b"))]))
    assert list(taken) == [f"{outer}/{B}"]
    assert codes(refused) == {f"{outer}/{inner}": "nested"}
    assert "Unpack it" in refused[0].why


def test_an_encrypted_member_is_refused_with_the_reason(tmp_path):
    made = zip_of(tmp_path / "t.zip", [("a.sqlite", b"1" * 100), (B, trace())])
    raw = bytearray(made.read_bytes())
    raw[6] |= 1  # the flags of the first member, before it and in the directory
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    made.write_bytes(raw)
    taken, refused = find_items(made)
    assert list(taken) == [f"t.zip/{B}"]
    assert codes(refused) == {"t.zip/a.sqlite": "encrypted"}


def test_a_method_that_is_not_read_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_LZMA) as file:
        file.writestr("a.sqlite", b"1" * 100)
    _, refused = find_items(tmp_path / "t.zip")
    assert codes(refused) == {"t.zip/a.sqlite": "unreadable"}
    assert "(lzma)" in refused[0].why


@pytest.mark.parametrize(
    ("name", "head"), [("t.tar.xz", b"\xfd7zXZ\0"), ("t.7z", b"7z\xbc\xaf\x27\x1c"), ("t.rar", b"Rar!\x1a\x07")]
)
def test_other_packers_are_named_with_what_to_do(tmp_path, name, head):
    (tmp_path / name).write_bytes(head + bytes(1000))
    taken, refused = find_items(tmp_path / name)
    assert taken == {}
    assert "pack it as .zip" in refused[0].why


def test_a_single_file_packed_with_zstd_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "a.sqlite.zst").write_bytes(zstandard.compress(b"SQLite format 3\0" * 100))
    _, refused = find_items(tmp_path / "a.sqlite.zst")
    assert "zstd, of one file" in refused[0].why


@pytest.mark.parametrize("writer", [zip_of, without_descriptors])
@pytest.mark.parametrize("left", [0.3, 0.6, 0.9])
def test_of_a_zip_that_is_cut_off_the_members_before_are_taken_and_the_cut_is_said(tmp_path, writer, left):
    contents = [(f"{number}.sqlite", os.urandom(1000) + bytes(1000)) for number in range(10)]
    made = writer(tmp_path / "t.zip", contents)
    whole = made.read_bytes()
    made.write_bytes(whole[: int(len(whole) * left)])
    taken, refused = find_items(made)
    count = len(taken)
    assert int(left * 10) - 2 < count <= int(left * 10)
    assert list(taken) == [f"t.zip/{name}" for name, _ in contents[:count]]
    assert codes(refused) == {f"t.zip/{count}.sqlite": "cut"}
    for number, item in enumerate(taken.values()):
        assert fetched(item, _room(tmp_path, f"room{number}")).read_bytes() == contents[number][1]


def test_a_zip_without_its_directory_gives_all_its_members(tmp_path):
    made = zip_of(tmp_path / "t.zip", [(A, trace()), (B, trace("b"))])
    raw = made.read_bytes()
    made.write_bytes(raw[: raw.index(b"PK\x01\x02") + 30])
    taken, refused = find_items(made)
    assert list(taken) == [f"t.zip/{A}", f"t.zip/{B}"]
    assert codes(refused) == {"t.zip": "cut"}


@pytest.mark.parametrize("kind", ["t.tar", "t.tar.gz", "t.tar.zst"])
@pytest.mark.parametrize("left", [0.35, 0.65, 0.95])
def test_of_a_tar_that_is_cut_off_the_members_before_are_taken_and_the_cut_is_said(tmp_path, kind, left):
    contents = [(f"{number}.sqlite", os.urandom(200_000)) for number in range(10)]
    made = tar_of(tmp_path / kind, contents)
    whole = made.read_bytes()
    made.write_bytes(whole[: int(len(whole) * left)])
    taken, refused = find_items(made)
    count = len(taken)
    assert int(left * 10) - 2 < count <= int(left * 10) + 1
    assert [refusal.code for refusal in refused][-1] == "cut"
    last = list(taken.values())[-1]
    assert fetched(last, _room(tmp_path)).read_bytes() == contents[count - 1][1]


def test_a_tar_cut_between_2_members_is_said_to_be_cut(tmp_path):
    made = tar_of(tmp_path / "t.tar", [("a.sqlite", bytes(512)), ("b.sqlite", bytes(512))])
    made.write_bytes(made.read_bytes()[:1024])
    taken, refused = find_items(made)
    assert list(taken) == ["t.tar/a.sqlite"]
    assert codes(refused) == {"t.tar": "cut"}


def test_damage_in_the_middle_of_a_tar_is_said(tmp_path):
    made = tar_of(tmp_path / "t.tar", [(A, trace()), (B, trace("b")), ("c.sqlite", b"c")])
    raw = bytearray(made.read_bytes())
    raw[1024 : 1024 + 100] = os.urandom(100)  # the header of the second
    made.write_bytes(raw)
    taken, refused = find_items(made)
    assert list(taken) == [f"t.tar/{A}"]
    assert codes(refused) == {"t.tar": "cut"}


def test_a_member_that_is_not_what_the_zip_says_is_not_fetched(tmp_path):
    made = zip_of(tmp_path / "t.zip", [("a.sqlite", b"1" * 1000)])
    raw = made.read_bytes()
    crc = struct.pack("<L", zipfile.crc32(b"1" * 1000))
    made.write_bytes(raw.replace(crc, b"\0\1\2\3"))
    item = find_items(made)[0]["t.zip/a.sqlite"]
    with pytest.raises(DamagedTraceError, match="checksum"):
        fetched(item, _room(tmp_path))


def test_a_member_that_unpacks_to_more_than_the_zip_says_is_not_fetched(tmp_path):
    made = zip_of(tmp_path / "t.zip", [("a.sqlite", b"1" * 5_000_000)])
    made.write_bytes(made.read_bytes().replace(struct.pack("<L", 5_000_000), struct.pack("<L", 1_000)))
    item = find_items(made)[0]["t.zip/a.sqlite"]
    with pytest.raises(DamagedTraceError, match="more than the 1,000 bytes"):
        fetched(item, _room(tmp_path))
    assert sum(path.stat().st_size for path in (tmp_path / "room").rglob("*") if path.is_file()) <= 1_000


def test_zip64_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as file, file.open("a.sqlite", "w", force_zip64=True) as member:
        member.write(b"1" * 1000)
    item = find_items(tmp_path / "t.zip")[0]["t.zip/a.sqlite"]
    assert fetched(item, _room(tmp_path)).read_bytes() == b"1" * 1000


@pytest.mark.slow
def test_a_zip64_of_65536_members_is_listed(tmp_path):
    count = 65_536  # more than the field of other zip files holds
    names = [b"%d.sqlite" % number for number in range(count)]
    local = b"".join(struct.pack("<4s5H3L2H", b"PK\x03\x04", *[0] * 8, len(name), 0) + name for name in names)
    at, central = 0, []
    for name in names:
        fields = (20, 20, *[0] * 7, len(name), *[0] * 5, at)
        central.append(struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *fields) + name)
        at += 30 + len(name)
    directory = b"".join(central)
    record = (44, 45, 45, 0, 0, count, count, len(directory), len(local))
    end = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", *record)
    end += struct.pack("<4sLQL", b"PK\x06\x07", 0, len(local) + len(directory), 1)
    end += struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0)
    made = tmp_path / "t.zip"
    made.write_bytes(local + directory + end)
    assert len(find_items(made)[0]) == count
    assert "more than 65,535" in find_items(made, limits=Limits(members=count - 1))[1][0].why


@pytest.mark.parametrize("name", ["\0", "\0a.sqlite", "/", "d/"])
def test_members_without_a_name_are_refused_or_are_folders(tmp_path, name):
    made = zip_of(tmp_path / "t.zip", [("?" * len(name), b""), (A, trace())])
    made.write_bytes(made.read_bytes().replace(b"?" * len(name), name.encode()))
    taken, refused = find_items(made)
    assert list(taken) == [f"t.zip/{A}"]
    assert [refusal.code for refusal in refused] == ([] if name.endswith("/") else ["unsafe-name"])


@pytest.mark.parametrize("kind", KINDS)
def test_many_tiny_members_are_listed_and_fetched_with_1_look_at_the_index(tmp_path, kind, monkeypatch, own_spool):
    made = pack(tmp_path / kind, [(f"d{number % 7}/{number}.sqlite", b"%d" % number) for number in range(1000)])
    looks, copies = [], []
    checked, copied = members.check_index, members._unpack
    monkeypatch.setattr(members, "check_index", lambda *given: looks.append(1) or checked(*given))
    monkeypatch.setattr(members, "_unpack", lambda *given: copies.append(1) or copied(*given))
    taken, refused = find_items(made)
    assert (len(taken), refused) == (1000, [])
    into = _room(tmp_path)
    for name in list(taken)[::10]:
        (into / taken[name].member.replace("/", "_")).mkdir()
        path = fetch(taken[name], into / taken[name].member.replace("/", "_"), Limits())
        assert path.read_bytes().decode() == path.stem
    assert len(looks) == 1
    assert len(copies) == (kind not in {"t.zip", "t.tar"})


def test_a_compressed_tar_is_unpacked_once_for_all_processes_and_removed_by_the_last(tmp_path, own_spool):
    made = tar_of(tmp_path / "t.tar.zst", [("a.sqlite", b"1" * 100_000)])
    find_items(made)
    (folder,) = own_spool.iterdir()
    (copy,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, copy.stat().st_mode & 0o777) == (0o700, 0o400)
    script = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[2]\n"
        "from traceviz.archive.sources.packed import members; from traceviz.archive.sources.hashes import Limits\n"
        "from traceviz.archive.sources.locations import Location\n"
        "members._unpack = None\n"  # would fail if called
        "print(list(members.index_of(Location(sys.argv[1], 't'), Limits()).entries))"
    )
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", script, str(made), str(own_spool)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['a.sqlite']\n"
    assert copy.exists()  # this process holds it
    SPOOL.release()
    assert not copy.exists()


def test_what_a_killed_process_left_in_the_spool_is_removed_or_made_anew(tmp_path, own_spool):
    made = tar_of(tmp_path / "t.tar.zst", [("a.sqlite", b"1" * 1000)])
    find_items(made)
    (folder,) = own_spool.iterdir()
    (copy,) = folder.iterdir()
    SPOOL.release()
    assert not folder.exists()
    folder.mkdir(mode=0o700)
    copy.write_bytes(b"half")  # as one that was killed while it wrote
    (folder / "other").write_bytes(b"left")
    taken, _ = find_items(made)
    assert fetched(taken["t.tar.zst/a.sqlite"], _room(tmp_path)).read_bytes() == b"1" * 1000
    assert not (folder / "other").exists()


def test_a_spool_that_others_may_read_is_not_used(tmp_path, own_spool):
    taken, _ = find_items(tar_of(tmp_path / "t.tar.zst", [("a.sqlite", b"1")]))
    (folder,) = own_spool.iterdir()
    SPOOL.release()
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(OutputError, match="yours alone"):
        fetched(taken["t.tar.zst/a.sqlite"], _room(tmp_path))


def test_a_sparse_member_is_refused(tmp_path):
    info = tarfile.TarInfo("a.sqlite")
    info.pax_headers = {"GNU.sparse.size": "1000000000000", "GNU.sparse.map": "0,1"}
    _, refused = find_items(tar_of(tmp_path / "t.tar", [(info, b"1")], format=tarfile.PAX_FORMAT))
    assert codes(refused) == {"t.tar/a.sqlite": "unreadable"}
    assert "--sparse" in refused[0].why


def test_a_header_that_is_longer_than_any_name_ends_the_tar(tmp_path):
    info = tarfile.TarInfo("a.sqlite")
    info.pax_headers = {"comment": "x" * 2_000_000}
    made = tar_of(tmp_path / "t.tar", [(A, trace()), (info, b"1")], format=tarfile.PAX_FORMAT)
    taken, refused = find_items(made)
    assert list(taken) == [f"t.tar/{A}"]
    assert codes(refused) == {"t.tar": "cut"}


@pytest.mark.parametrize("size", ["-512", "-1024", "99999999999999999999"])
def test_sizes_that_cannot_be_end_the_tar_and_do_not_loop(tmp_path, size):
    info = tarfile.TarInfo("a.sqlite")
    info.pax_headers = {"size": size}
    made = tar_of(tmp_path / "t.tar", [(A, trace()), (info, b"1"), (B, trace())], format=tarfile.PAX_FORMAT)
    taken, refused = find_items(made)
    assert list(taken) == [f"t.tar/{A}"]
    assert "cut" in {refusal.code for refusal in refused}


def test_headers_nested_without_end_do_not_exhaust_the_stack(tmp_path):
    long = tarfile.TarInfo("././@LongLink")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 2
    made = tmp_path / "t.tar"
    first = io.BytesIO()
    with tarfile.open(fileobj=first, mode="w") as file:
        info = tarfile.TarInfo("a.sqlite")
        info.size = 1
        file.addfile(info, io.BytesIO(b"1"))
    nested = (long.tobuf(tarfile.GNU_FORMAT) + b"b\0".ljust(512, b"\0")) * 5000
    made.write_bytes(first.getvalue()[:1024] + nested)
    taken, refused = find_items(made)
    assert list(taken) == ["t.tar/a.sqlite"]
    assert codes(refused) == {"t.tar": "cut"}


@pytest.mark.parametrize("kind", ["t.zip", "t.tar", "t.tar.gz", "t.tar.zst"])
@pytest.mark.parametrize("seed", range(12))
def test_random_damage_is_an_answer_and_never_a_crash(tmp_path, kind, seed):
    import random

    chance = random.Random(seed)
    made = pack(tmp_path / kind, [(f"d/{number}.sqlite", chance.randbytes(700)) for number in range(8)])
    raw = bytearray(made.read_bytes())
    for _ in range(12):
        raw[chance.randrange(4, len(raw))] = chance.randrange(256)
    made.write_bytes(raw)
    taken, refused = find_items(made)
    assert taken or refused
    for number, item in enumerate(taken.values()):
        room = _room(tmp_path, f"room{number}")
        with contextlib.suppress(DamagedTraceError, UnknownFormatError):
            path = fetched(item, room)
            assert room / "into" in path.parents or path == made  # which is not recognised any more


def test_several_gzip_parts_and_zstd_frames_are_1_tar(tmp_path):
    plain = tar_of(tmp_path / "plain", [("a.sqlite", os.urandom(5000)), ("b.sqlite", b"2")]).read_bytes()
    expected = {"a.sqlite", "b.sqlite"}
    skipped = b"\x50\x2a\x4d\x18" + struct.pack("<L", 4) + b"meta"
    for name, parts in {
        "t.tar.gz": gzip.compress(plain[:3000]) + gzip.compress(plain[3000:]),
        "t.tar.zst": skipped + zstandard.compress(plain[:3000]) + zstandard.compress(plain[3000:]),
        "junk.tar.gz": gzip.compress(plain) + b"junk",
    }.items():
        (tmp_path / name).write_bytes(parts)
        assert {refusal.member for refusal in find_items(tmp_path / name)[0].values()} == expected


def test_zstd_that_asks_for_too_much_memory_is_refused(tmp_path):
    window = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=window).compressobj()
    plain = tar_of(tmp_path / "plain", [("a.sqlite", os.urandom(300_000))]).read_bytes()
    (tmp_path / "t.tar.zst").write_bytes(packer.compress(plain) + packer.flush())
    taken, refused = find_items(tmp_path / "t.tar.zst")
    assert taken == {}
    assert [refusal.code for refusal in refused] == ["unreadable"]


def test_tars_are_told_by_their_checksum():
    old = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    assert tars.is_header(bytes(old))
    old[0] ^= 1
    assert not tars.is_header(bytes(old))
    assert not tars.is_header(bytes(512))
    assert not tars.is_header(b"")


def test_hashes_are_the_same_however_packed(tmp_path):
    contents = [(A, trace()), (f"sub/{B}", trace("b")), ("c.sqlite", b"SQLite format 3\0" + os.urandom(5000))]
    folder = tmp_path / "folder"
    for name, content in contents:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    expected = hashes(folder, tmp_path / "f")
    assert len(expected) == 3
    for kind in KINDS:
        assert hashes(pack(tmp_path / kind, contents), tmp_path / f"of-{kind}") == expected


def test_a_report_of_nsys_is_fetched_with_the_export_beside_it(tmp_path):
    contents = [("r.nsys-rep", b"report"), ("r.sqlite", b"export"), ("other.sqlite", b"other")]
    for kind in KINDS:
        item = find_items(pack(tmp_path / kind, contents))[0][f"{kind}/r.nsys-rep"]
        path = fetched(item, _room(tmp_path, f"of-{kind}"))
        assert sorted(entry.name for entry in path.parent.iterdir()) == ["r.nsys-rep", "r.sqlite"]


def test_a_member_that_is_gone_is_said(tmp_path):
    made = zip_of(tmp_path / "t.zip", [(A, trace())])
    item = find_items(made)[0][f"t.zip/{A}"]
    zip_of(made, [(B, trace())])
    with pytest.raises(UnknownFormatError, match="not there any more"):
        fetched(item, _room(tmp_path))


def test_something_else_is_no_archive_file(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"no zip")
    with pytest.raises(DamagedTraceError, match="no zip or tar file"):
        members.index_of(Location(str(tmp_path / "a.zip"), "a.zip"), Limits())


def test_a_member_that_lies_outside_of_its_zip_is_refused_and_the_others_taken(tmp_path):
    made = zip_of(tmp_path / "t.zip", [("a.sqlite", b"1" * 100), (B, trace())])
    raw = bytearray(made.read_bytes())
    at = raw.index(b"PK\x01\x02")
    raw[at + 20 : at + 24] = struct.pack("<L", 1 << 30)
    made.write_bytes(raw)
    taken, refused = find_items(made)
    assert list(taken) == [f"t.zip/{B}"]
    assert codes(refused) == {"t.zip/a.sqlite": "cut"}


@pytest.mark.parametrize("kind", ["t.zip", "folder"])
def test_a_source_that_holds_nothing_is_said(tmp_path, kind):
    if kind == "folder":
        (tmp_path / kind).mkdir()
    else:
        zip_of(tmp_path / kind, [])
    assert codes(find_items(tmp_path / kind)[1]) == {kind: "no-trace"}


def test_a_zip_whose_directory_says_that_it_is_empty_is_read_from_its_beginning(tmp_path):
    made = zip_of(tmp_path / "t.zip", [(A, trace())])
    raw = made.read_bytes()
    made.write_bytes(raw[: raw.index(b"PK\x01\x02")] + b"PK\x05\x06" + bytes(18))
    taken, refused = find_items(made)
    assert list(taken) == [f"t.zip/{A}"]
    assert codes(refused) == {"t.zip": "cut"}


def test_processes_that_come_at_once_make_1_copy(tmp_path, own_spool):
    import subprocess
    import sys

    made = tar_of(tmp_path / "t.tar.zst", [(f"{number}.sqlite", os.urandom(100_000)) for number in range(30)])
    script = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[2]\n"
        "from traceviz.archive.sources.packed import members; from traceviz.archive.sources.hashes import Limits\n"
        "from traceviz.archive.sources.locations import Location\n"
        "made, unpacked = [], members._unpack\n"
        "members._unpack = lambda *given: made.append(1) or unpacked(*given)\n"
        "entries = members.index_of(Location(sys.argv[1], 't'), Limits()).entries\n"
        "print(len(entries), len(made), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(made), str(own_spool)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    lines = [process.stdout.readline().split() for process in started]
    for process in started:
        process.communicate("")
    assert [members_found for members_found, _ in lines] == ["30"] * 3
    assert sum(int(copies) for _, copies in lines) == 1
