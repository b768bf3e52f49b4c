"""Blocks that are read ahead come as they are, with what goes wrong in its turn, and no thread is left."""

import threading

import pytest

from traceviz.parsers.kineto.decode.ahead import ahead


def threads() -> int:
    return sum(thread.name == "traceviz-read" for thread in threading.enumerate())


def broken(count: int):
    for number in range(count):
        yield b"%04d" % number
    raise OSError("the disk is gone")


@pytest.mark.parametrize("blocks", [[], [b"ab"], [b"abcd"], [b"abcd", b"ef"], [b"abcd"] * 50, [b"ab", b"abcd", b"c"]])
def test_up_to_50_blocks_come_in_their_order(blocks):
    assert list(ahead(iter(blocks), 4)) == blocks
    assert threads() == 0


def test_an_error_after_3_blocks_comes_after_3_blocks():
    blocks = ahead(broken(3), 4)
    assert [next(blocks) for _ in range(3)] == [b"0000", b"0001", b"0002"]
    with pytest.raises(OSError, match="the disk is gone"):
        next(blocks)
    assert threads() == 0


def test_whoever_stops_after_the_first_of_1000_blocks_leaves_no_thread():
    blocks = ahead(broken(1000), 4)
    assert next(blocks) == b"0000"
    assert threads() == 1
    blocks.close()
    assert threads() == 0


def test_without_a_thread_to_spare_5_blocks_are_read_all_the_same(monkeypatch):
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(ahead(iter([b"abcd"] * 5), 4)) == [b"abcd"] * 5
