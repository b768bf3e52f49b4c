"""The command ``traceviz`` as a user sees it: in this process, because a separate process would show nothing more."""

import os
import subprocess
import sys
from subprocess import CompletedProcess

from click.testing import CliRunner

from traceviz.cli.main import main


def run(*arguments, env=None):
    """Run ``traceviz`` in this process; return its stdout and stderr, and its exit code."""
    words = [*map(str, arguments)]
    result = CliRunner().invoke(main, words, prog_name="traceviz", env=env, catch_exceptions=False)
    return CompletedProcess(words, result.exit_code, result.stdout, result.stderr)


def run_process(*arguments, env=None, **options):
    """Return the same of a Python of its own."""
    command = [sys.executable, "-m", "traceviz", *map(str, arguments)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **(env or {})}, **options
    )
