"""Scrubbing XPlane captures: what goes, what stays to the byte, and what is refused."""

import gzip
from pathlib import Path

import pytest

from tests.parsers.xplane.files import Name, Ref, chunk, event, line, number, plane, space
from traceviz.core.errors import DamagedTraceError, OutputExistsError, UnknownFormatError
from traceviz.parsers.xplane.decode.raw import Space
from traceviz.parsers.xplane.decode.scan import read_space
from traceviz.scrub import scrub

OPTIONS = number(2, 2) + number(4, 1) + chunk(10, "/home/ada/runs") + number(9, 500)
"""Profile options: host level 2, Python level 1, a repository, 500 ms."""


def leaky() -> bytes:
    """Return a capture with something private in each place for a text."""
    return space(
        plane(
            "/host:CPU",
            line(
                7,
                event("$/home/ada/secret-project/train.py:12 step", 0, 9_000_000),
                event("Iterator::Root::Map", 1_000_000, 2_000_000, {"id": -3, "file": Ref("/weird/place/data.bin")}),
                event("load /home/ada/data/x.bin", 4_000_000, 1_000_000, {"shape": Ref("(float[2])")}),
                event("on gpu-node-17", 6_000_000, 0, {"hostname": "gpu-node-17", "note": "from /home/ada/a/b.txt"}),
                name="python3",
            ),
            line(8, event("ExecutorState::Process", 1, 2, {"id": 5}), name="gpu-node-17/worker"),
        ),
        plane(
            "/device:TPU:0",
            line(3, event("copy.1", 0, 5_000), name="XLA Ops"),
            plane_id=3,
            names={
                "copy.1": Name(
                    "copy", {"source": "users/ada/model.py:37", "hlo_category": "copy", "hlo": b"\x0a\x05model"}
                )
            },
            stats={"device_type_string": "TPU v6", "peak": 918.0, "owner": "Ada Lovelace"},
        ),
        plane(
            "Task Environment",
            stats={"profile_start_time": 17, "profile_options": OPTIONS, "repository_path": "/home/ada/r"},
        ),
        errors=["cannot open /home/ada/x.so"],
        warnings=["dropped 5 events on gpu-node-17"],
        hostnames=["gpu-node-17"],
    )


def scrubbed(folder: Path, content: bytes, name: str = "gpu-node-17.xplane.pb") -> bytes:
    (folder / name).write_bytes(content)
    scrub(folder / name, folder / "clean.xplane.pb", force=True)
    return (folder / "clean.xplane.pb").read_bytes()


def words(space_read: Space) -> set[str]:
    """Return every text of a file."""
    texts = {*space_read.errors, *space_read.warnings, *space_read.hostnames}
    for plane_read in space_read.planes:
        texts |= {
            plane_read.name,
            *plane_read.names,
            *plane_read.display_names,
            *plane_read.texts,
            *(line_read.name for line_read in plane_read.lines),
        }
        texts |= {str(value) for stats in plane_read.name_stats.values() for value in stats.values()}
        texts |= {str(value) for value in plane_read.properties.values()}
    return texts


@pytest.mark.parametrize(
    "secret", [b"ada", b"Ada", b"gpu-node-17", b"/home", b"/weird", b"users/", b"secret-project", b"\x0a\x05model"]
)
def test_no_secret_is_left_in_any_byte(tmp_path: Path, secret: bytes) -> None:
    assert secret in leaky()
    assert secret not in scrubbed(tmp_path, leaky())


def test_names_keep_what_is_not_private(tmp_path: Path) -> None:
    clean = read_space(scrubbed(tmp_path, leaky()))
    assert clean.damage == ()
    host, device, environment = clean.planes
    assert host.names == [
        "$train.py:12 step",
        "Iterator::Root::Map",
        "load [path]/x.bin",
        "on [removed]",
        "ExecutorState::Process",
    ]
    assert [written.name for written in host.lines] == ["python3", "[removed]/worker"]
    assert {"(float[2])", "from [path]/b.txt", "[removed]", "id", "file", "hostname"} <= words(clean)
    assert device.name_stats == {0: {"source": "model.py:37", "hlo_category": "copy"}}
    assert device.properties == {"device_type_string": "TPU v6", "peak": 918.0, "owner": "[removed]"}
    assert environment.properties["profile_options"] == number(2, 2) + number(4, 1) + number(9, 500)
    assert environment.properties["profile_start_time"] == 17
    assert clean.warnings == ("dropped 5 events on [removed]",)
    assert clean.errors == ("cannot open [path]/x.so",)
    assert clean.hostnames == ()


def test_numbers_are_untouched(tmp_path: Path) -> None:
    before, after = read_space(leaky()), read_space(scrubbed(tmp_path, leaky()))
    for old, new in zip(before.planes, after.planes, strict=True):
        for column in ("line", "name", "offset_ps", "dur_ps"):
            assert getattr(old.events, column).tolist() == getattr(new.events, column).tolist()
        assert old.stats.key.tolist() == new.stats.key.tolist()
        assert old.stats.event.tolist() == new.stats.event.tolist()
        assert [(line_read.id, line_read.timestamp_ns, line_read.events) for line_read in old.lines] == [
            (line_read.id, line_read.timestamp_ns, line_read.events) for line_read in new.lines
        ]


def test_the_result_counts_what_went(tmp_path: Path) -> None:
    (tmp_path / "gpu-node-17.xplane.pb").write_bytes(leaky())
    result = scrub(tmp_path / "gpu-node-17.xplane.pb", tmp_path / "out.pb")
    removed = dict(result.removed)
    assert removed["host names"] == 1
    assert removed["embedded messages (compiled programs and the like)"] == 1
    assert removed["private properties"] == 4  # file, hostname, owner, repository_path
    assert result.verified_bytes == len((tmp_path / "out.pb").read_bytes())
    assert result.secrets >= 2


def test_a_capture_without_anything_private_stays_the_same_to_the_byte(tmp_path: Path) -> None:
    content = space(
        plane(
            "/host:CPU",
            line(
                -5,
                event("train", 0, 9, {"step_num": 3, "share": 0.5, "shape": Ref("(f32[2])"), "own": "text"}),
                name="python3",
            ),
            stats={"jax_version": "0.10.2"},
            metadata_first=True,
        ),
        plane("/device:GPU:0", line(13, event("void k<int>()", 4, 2, occurrences=None), name="Stream #13(Compute)")),
        warnings=["dropped 5 events"],
    )
    assert scrubbed(tmp_path, content, "trace.xplane.pb") == content


def test_unknown_fields_stay_if_they_are_numbers_and_go_if_they_are_texts(tmp_path: Path) -> None:
    kept, gone = number(77, 5), chunk(78, "what a later version says")

    def capture(extra: bytes) -> bytes:
        leaky_event = event("op", 0, 1, {"own": "text"}, extra=extra)
        return space(plane("/host:CPU", line(1, leaky_event, name="gpu-node-17", extra=extra)))

    expected = scrubbed(tmp_path, capture(kept))
    assert scrubbed(tmp_path, capture(kept + gone) + gone) == expected
    assert expected.count(kept) == 2


def test_a_renamed_file_tells_no_host(tmp_path: Path) -> None:
    content = space(plane("/host:CPU", line(1, event("host function", 0, 1))))
    assert b"host function" in scrubbed(tmp_path, content, "host.xplane.pb")


def test_an_address_is_removed_with_and_without_its_port(tmp_path: Path) -> None:
    content = space(plane("/host:CPU", line(1, event("connect 10.1.2.33 now", 0, 1))))
    clean = read_space(scrubbed(tmp_path, content, "10.1.2.33_6003.xplane.pb"))
    assert clean.planes[0].names == ["connect [removed] now"]


def test_a_compressed_capture_stays_compressed(tmp_path: Path) -> None:
    clean = scrubbed(tmp_path, gzip.compress(leaky()), "gpu-node-17.xplane.pb.gz")
    assert read_space(gzip.decompress(clean)).planes[0].names[0] == "$train.py:12 step"
    assert gzip.decompress(clean) == scrubbed(tmp_path, leaky())


def test_scrubbing_twice_changes_nothing_more(tmp_path: Path) -> None:
    once = scrubbed(tmp_path, leaky())
    assert scrubbed(tmp_path, once, "again.xplane.pb") == once


@pytest.mark.parametrize("lost", [1, 7, 60, 200])
def test_a_damaged_capture_is_refused_and_leaves_no_output(tmp_path: Path, lost: int) -> None:
    (tmp_path / "x.xplane.pb").write_bytes(leaky()[:-lost])
    with pytest.raises(DamagedTraceError, match="damaged: what cannot be read cannot be checked"):
        scrub(tmp_path / "x.xplane.pb", tmp_path / "out.pb")
    assert [path.name for path in tmp_path.iterdir()] == ["x.xplane.pb"]


def test_an_empty_capture_and_a_cut_gzip_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.xplane.pb").write_bytes(b"")
    with pytest.raises(UnknownFormatError, match="no trace that scrub can write"):
        scrub(tmp_path / "x.xplane.pb", tmp_path / "out.pb")
    (tmp_path / "y.xplane.pb.gz").write_bytes(gzip.compress(leaky())[:-20])
    with pytest.raises(DamagedTraceError, match="cannot be read"):
        scrub(tmp_path / "y.xplane.pb.gz", tmp_path / "out.pb")


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "x.xplane.pb").write_bytes(leaky())
    (tmp_path / "out.pb").write_bytes(b"mine")
    with pytest.raises(OutputExistsError):
        scrub(tmp_path / "x.xplane.pb", tmp_path / "out.pb")
    assert (tmp_path / "out.pb").read_bytes() == b"mine"


@pytest.mark.slow
def test_public_captures_lose_their_hosts_and_keep_their_events(public_traces: Path, tmp_path: Path) -> None:
    files = sorted((public_traces / "xplane").glob("*.xplane.pb"))
    assert len(files) >= 5
    for source in files:
        before = read_space(source.read_bytes())
        out = tmp_path / "out.pb"
        scrub(source, out, force=True)
        after = read_space(out.read_bytes())
        assert after.damage == ()
        assert [len(plane.events) for plane in after.planes] == [len(plane.events) for plane in before.planes]
        assert not [host for host in before.hostnames if host.encode() in out.read_bytes()]
        assert b"davelacey" not in out.read_bytes()
