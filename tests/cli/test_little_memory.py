"""Commands where the address space is limited: a report, or an error in words; never a crash, whatever runs short."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.measured import measured, measured_code

pytestmark = pytest.mark.process

SAMPLES = Path(__file__).parents[2] / "sample_traces"
KINETO = SAMPLES / "kineto" / "repaired.pt.trace.json.gz"
GIGABYTE = 10**9


@pytest.mark.parametrize(
    "sample",
    [
        KINETO,
        *(
            pytest.param(SAMPLES / name, marks=pytest.mark.slow)
            for name in (
                "nsys/nvtx_loop.sqlite",
                "synthetic/gpu_jax_healthy.xplane.pb",
                "synthetic/nvprof_trace.csv",
                "synthetic/torch_four_ranks_straggler",
            )
        ),
    ],
    ids=lambda path: path.name,
)
def test_a_sample_is_reported_within_one_gigabyte_of_addresses_as_without_a_limit(sample):
    limited, free = measured("report", sample, address_space=GIGABYTE), measured("report", sample)
    assert (limited.code, limited.err) == (0, "")
    assert limited.out == free.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("convert", KINETO, "-o", "OUT"),
        ("compare", KINETO, KINETO),
        ("doctor", KINETO),
        ("scrub", KINETO, "-o", "OUT.json.gz"),
        ("archive", "add", "OUT", KINETO),
        ("archive", "list", SAMPLES),
    ],
    ids=lambda command: " ".join(map(str, command[:2])),
)
@pytest.mark.parametrize("address_space", [GIGABYTE, 900 * 10**6])
def test_every_command_ends_well_or_with_an_error_in_words(command, address_space, tmp_path):
    words = [str(word).replace("OUT", str(tmp_path / "out")) for word in command]
    done = measured(*words, address_space=address_space)
    assert done.code == (2 if "list" in command else 0)
    assert "Traceback" not in done.err
    assert "panicked" not in done.err


@pytest.mark.parametrize("megabytes", [60, 400])
def test_where_the_libraries_cannot_be_loaded_the_error_says_how_much_they_need(megabytes):
    done = measured("report", KINETO, address_space=megabytes * 10**6)
    assert done.code == 3
    assert done.err.splitlines() == [
        "error: traceviz needs about 600 MB of address space to begin.",
        f"  This process may use {megabytes:.0f}{'.0' if megabytes < 100 else ''} MB: ulimit -v.",
        "  Raise it in the shell that starts traceviz: ulimit -v unlimited",
    ]


PROGRAM = """
import os, sys, time
from traceviz.cli.little_memory import within_address_space
from traceviz.core.errors import OutOfMemoryError
import click
def raising(error): raise error
try:
    print("gave", within_address_space(lambda: {}), flush=True)
except OutOfMemoryError as error:
    print(error.what, flush=True)
    sys.exit(3)
except click.exceptions.Exit as end:
    sys.exit(end.exit_code)
"""


@pytest.mark.parametrize(
    ("work", "code", "out", "err"),
    [
        ("5", 0, "gave 5\n", ""),
        ("os.abort()", 3, "The work needs more address space than this process may use: 1.00 GB.\n", ""),
        ("bytes(2 * 10**9)", 3, "The work needs more address space than this process may use: 1.00 GB.\n", ""),
        ("raising(type('PanicException', (BaseException,), {})('x'))", 3, "The work needs more address space", ""),
        ("raising(OSError(11, 'Resource temporarily unavailable'))", 3, "The work needs more address space", ""),
        ("(os.write(2, b'a warning'), sys.exit(4))", 4, "", "a warning"),
    ],
)
def test_however_the_work_ends_its_exit_code_and_its_words_are_given(work, code, out, err):
    done = measured_code(PROGRAM.replace("{}", work), address_space=GIGABYTE)
    assert done.code == code
    assert done.out.startswith(out)
    assert done.err == err


def test_a_signal_for_the_command_ends_its_work(tmp_path):
    work = f"(open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())), time.sleep(600))"
    command = ["sh", "-c", 'ulimit -v 900000; exec "$@"', "sh", sys.executable, "-c", PROGRAM.replace("{}", work)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
        assert process.poll() is None
    child = int((tmp_path / "pid").read_text())
    assert child != process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


RETURNING = """
import os
from traceviz.cli.little_memory import give_back_soon
give_back_soon()
import pyarrow
print(pyarrow.default_memory_pool().backend_name, os.environ["_RJEM_MALLOC_CONF"])
"""


@pytest.mark.parametrize(("given", "used"), [({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc")])
def test_libraries_return_memory_soon_unless_the_environment_says_what_they_do(given, used):
    said = ("ARROW_DEFAULT_MEMORY_POOL", "_RJEM_MALLOC_CONF")
    environment = {name: value for name, value in os.environ.items() if name not in said}
    done = subprocess.run(
        [sys.executable, "-c", RETURNING], env=environment | given, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == [used, "dirty_decay_ms:0,muzzy_decay_ms:0"]


def test_a_report_within_max_memory_is_the_same_as_without():
    assert measured("report", KINETO, "--max-memory", "4GB").out == measured("report", KINETO).out
