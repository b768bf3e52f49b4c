"""Distinguishing leftovers of a killed program from files that another program is writing."""

import subprocess
import sys

from traceviz.archive.storage import layout, writers
from traceviz.archive.storage.store import Store

NAME = "from traceviz.archive.storage.writers import new_name; print(new_name(), flush=True); input()"

WRITER = """
import sys
from traceviz.archive.storage.store import Store
with Store(sys.argv[1]).new_folder("traces", "one"):
    print(flush=True)
    input()
"""


def test_what_a_living_process_writes_is_not_of_a_dead_one_and_afterwards_it_is():
    with subprocess.Popen(
        [sys.executable, "-c", NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        name = program.stdout.readline().strip()
        assert not writers.is_of_dead(name)
        program.kill()
        program.wait()
        assert writers.is_of_dead(name)
    assert not writers.is_of_dead(writers.new_name())


def test_of_another_machine_and_of_other_names_nothing_is_known():
    here, process, rest = writers.new_name().split("-")[1:]
    assert not writers.is_of_dead(f"traceviz-{'0' * 8 if here != '0' * 8 else '1' * 8}-999999999-{rest}")
    assert writers.is_of_dead(f"traceviz-{here}-4194305-{rest}")
    assert not writers.is_of_dead(f"traceviz-{here}-{'9' * 30}-{rest}")
    assert not writers.is_of_dead(f"traceviz-{here}-{process}")


def test_names_are_never_the_same():
    assert len({writers.new_name() for _ in range(100)}) == 100


def test_what_a_killed_program_was_writing_is_left_over_at_once(tmp_path):
    store = Store.at(tmp_path / "archive")
    layout.create(store)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, store.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        writer.stdout.readline()
        assert layout.leftovers(store, 1000, store.now()) == []
        writer.kill()
        writer.wait()
        assert layout.leftovers(store, 1000, store.now()) == store.names("work")
        assert len(store.names("work")) == 1
