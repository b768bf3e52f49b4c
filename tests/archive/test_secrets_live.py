"""Secrets of recorded programs, in environment, arguments, ranges and output: none of them in a scrubbed archive."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.archive.everything import everything, holding
from tests.parsers.nsys.database import to_parquet
from tests.scrub.leaky_database import OWN, PLANTED, build
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.core.nsys_program import find_nsys

pytestmark = pytest.mark.slow
TOKEN = b"tok-5e1f7a2b9c-wombat"
NAMED = b"exp-17-numbat"
LISTED = b"bilby/4411"
PASSWORD = b"potoroo_4411_zz"
POSITIONAL = b"customer-0815-quoll"
OF_ENVIRONMENT = {
    "SERVICE_TOKEN": TOKEN,
    "EXPERIMENT": NAMED,
    "SEARCH_IN": b"/usr/lib:" + LISTED,
    "HOME": b"/home/adalove77",
}
IN_ARGUMENTS = (PASSWORD, POSITIONAL)
IN_RANGES = {
    "token": TOKEN,
    "experiment": NAMED,
    "part of a list": LISTED,
    "argument": PASSWORD,
    "positional argument": POSITIONAL,
    "user": b"adalove77",
    "stated": b"quokka77-lime",
    "AWS": b"AKIAIOSFODNN7EXAMPLE",
    "JWT": b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "URL": b"bettong-88-pw",
    "mail": b"ada@marsupial.example",
    "address": b"10.23.45.67",
}
IN_OUTPUT = (b"out-7f3a9c-quagga", b"err-7f3a9c-quagga")
SECRETS = {*OF_ENVIRONMENT.values(), *IN_ARGUMENTS, *IN_RANGES.values(), *IN_OUTPUT} - {b"/usr/lib:" + LISTED}
NVTX_ONLY = b"acme merger"
"""A text that has no sign of a secret and occurs nowhere else is indistinguishable from any other name."""

PROGRAM = """
import os, sys, time
print("out-7f3a9c-" + "quagga", flush=True)
print("err-7f3a9c-" + "quagga", file=sys.stderr, flush=True)
token, named = os.environ["SERVICE_TOKEN"], os.environ["EXPERIMENT"]
listed = os.environ["SEARCH_IN"].rpartition(":")[2]
texts = [
    f"load {token}",
    f"of {named}, {listed}",
    f"connect {sys.argv[2]}",
    f"rows of {sys.argv[3]}",
    f"open {os.environ['HOME']}/data/x.bin for adalove77",
    "login password=quokka77-lime",
    "put AKIAIOSFODNN7EXAMPLE",
    "bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "db://ada:bettong-88-pw@db/x",
    "mail ada@marsupial.example",
    "peer 10.23.45.67",
]
for number in range(6):
    step(f"step {number}")
for text in texts:
    step(text)
step("acme " + "merger")
"""
WITH_NVTX = """
import nvtx
def step(text):
    with nvtx.annotate(text):
        time.sleep(0.002)
"""
WITH_SECRETS = 11
"""Ranges of the program that hold something private."""


def recorded(folder, collectors, head):
    """Return a run folder of the program, with all its secrets."""
    program = folder / "program.py"
    program.write_text(head + PROGRAM)
    own = ["-m", "traceviz", "collect", "--with", collectors, "--no-report", "-o", str(folder / "run")]
    given = [str(program), "--db-password", PASSWORD.decode(), POSITIONAL.decode()]
    variables = {name: value.decode() for name, value in OF_ENVIRONMENT.items()}
    command = [sys.executable, *own, "--", sys.executable, *given]
    done = subprocess.run(command, check=True, capture_output=True, timeout=120, env={**os.environ, **variables})
    assert IN_OUTPUT[0] in done.stdout
    assert IN_OUTPUT[1] in done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that nsys recorded, with the ranges of the package nvtx."""
    pytest.importorskip("nvtx")
    if find_nsys() is None:
        pytest.skip("nsys is not installed")
    return recorded(tmp_path_factory.mktemp("secrets"), "nsys,resources", WITH_NVTX)


def added(folder, *sources, **options):
    archive = Archive(folder)
    return archive, archive.add(*sources, runner=SerialRunner(), **options)


def left(folder):
    """Return the secrets that are left in a folder, and their places."""
    return {secret: places for secret in SECRETS if (places := holding(folder, secret))}


def redacted(archive):
    """Return the removals that the manifests of an archive report, for each trace."""
    manifests = Path(archive.store.url).glob("traces/*/*/manifest.json")
    return [json.loads(path.read_text())["redacted"] for path in manifests]


CLEANED = "texts cleaned of paths and secrets"


def test_the_secrets_are_in_what_was_recorded(run):
    """Else the other tests would show nothing. Of its output nsys keeps nothing here, nor does traceviz."""
    leaked = {secret for secret in SECRETS if holding(run, secret)}
    assert leaked == SECRETS - set(IN_OUTPUT)


def test_no_secret_of_a_run_is_left_in_an_archive(run, tmp_path):
    archive, done = added(tmp_path / "archive", run)
    assert (done.added, done.quarantined, done.refused) == (1, (), ())
    assert archive.scan("nvtx").collect().height >= WITH_SECRETS + 7
    assert left(tmp_path / "archive") == {}


@pytest.mark.parametrize("name", ["report.nsys-rep", "report.sqlite"])
def test_no_secret_of_a_report_or_its_export_is_left(run, tmp_path, name):
    shutil.copytree(run / "raw/nsys", tmp_path / "nsys")
    archive, done = added(tmp_path / "archive", tmp_path / "nsys" / name)
    assert (done.added, done.quarantined) == (1, ())
    assert left(tmp_path / "archive") == {}
    (counts,) = redacted(archive)
    assert counts[CLEANED] >= WITH_SECRETS


def test_with_keep_private_secrets_in_ranges_stay(run, tmp_path):
    """So the tests above find what they look for."""
    archive, done = added(tmp_path / "archive", run, keep_private=True)
    assert (done.added, dict(done.removed)) == (1, {})
    leaked = {secret for secret in SECRETS if holding(tmp_path / "archive", secret)}
    assert set(IN_RANGES.values()) <= leaked
    assert any("nvtx.parquet" in where for where in holding(tmp_path / "archive", TOKEN))
    assert "redacted" not in json.loads(next(Path(archive.store.url).glob("traces/*/*/manifest.json")).read_text())


def test_ranges_that_look_like_nothing_stay_and_so_do_steps(run, tmp_path):
    archive, _ = added(tmp_path / "archive", run)
    names = set(archive.scan("nvtx").collect()["name"].to_list())
    assert {NVTX_ONLY.decode(), *(f"step {number}" for number in range(6))} <= names


def as_database(database):
    return database


def as_parquet(database):
    return to_parquet(database, database.with_name("export"), inline_names=True)


@pytest.mark.parametrize("form", [as_database, as_parquet])
def test_captured_output_and_environments_of_others_are_left_out(tmp_path, form):
    """nsys may also keep streams of the program, files, and environments of other processes of the machine."""
    ranges = [f"load {PLANTED[name]}" for name in ("own variable", "stranger's variable", "argument", "user", "host")]
    rows = (f"INSERT INTO NVTX_EVENTS VALUES (10, 20, 59, '{text}', {OWN + 7}, NULL, 0, '', '')" for text in ranges)
    build(tmp_path / "leaky.sqlite", *rows)
    source = form(tmp_path / "leaky.sqlite")
    read = tmp_path if source.is_file() else source
    planted = {text.encode() for text in PLANTED.values() if holding(read, text.encode())}
    assert len(planted) >= 15
    archive, done = added(tmp_path / "archive", source)
    assert done.added == 1
    assert {secret for secret in planted if holding(tmp_path / "archive", secret)} == set()
    assert redacted(archive)[0][CLEANED] >= len(ranges)
    assert archive.scan("nvtx").collect()["name"].to_list().count("load [removed]") == len(ranges)


HOST_OF_SAMPLE = re.compile(rb"(?<!energy_per_)sample(?!s_per_second)")
"""The host, and no name of a column."""


def test_the_host_of_a_report_goes_from_its_name_and_its_job(samples, tmp_path):
    """The host of a report is known from what is read of it, not from its bytes."""
    if find_nsys() is None:
        pytest.skip("nsys is not installed")
    source = tmp_path / "sample-runs" / "sample_rank0.nsys-rep"
    source.parent.mkdir()
    shutil.copy(samples / "nsys/nvtx_loop.nsys-rep", source)
    private, _ = added(tmp_path / "private", source, keep_private=True)
    assert private.scan("run").collect()["host"].to_list() == ["sample"]
    archive, done = added(tmp_path / "archive", source)
    assert done.added == 1
    assert archive.rows()["source"].to_list() == ["[removed-705]_rank0.nsys-rep"]
    assert [where for where, content in everything(tmp_path / "archive") if HOST_OF_SAMPLE.search(content)] == []
