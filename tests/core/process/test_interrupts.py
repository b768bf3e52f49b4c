"""Requests to end: raised once, in the main thread, never lost and never in the middle of what is not divided."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process
HEAD = (
    "import gc, os, signal, sys, time\nfrom traceviz.core.process import interrupts\ninterrupts.install()\n"
    "me = os.getpid()\n"
)
TAIL = "\n    time.sleep(20)\nexcept interrupts.Stopped as stopped:\n    print('stopped by', stopped.number)"


def output(body):
    done = subprocess.run([sys.executable, "-c", HEAD + body], check=False, capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(("name", "number"), [("SIGINT", 2), ("SIGTERM", 15), ("SIGHUP", 1)])
def test_a_signal_is_raised_and_the_same_one_from_elsewhere_is_not_raised_again(name, number):
    body = f"try:\n    os.kill(me, signal.{name}){TAIL}\nos.kill(me, signal.SIGINT)\ntime.sleep(0.05)\nprint('tidied')"
    assert output(body) == ([f"stopped by {number}", "tidied"], "")


def test_what_is_not_divided_is_completed_first():
    body = (
        "try:\n    with interrupts.uninterrupted():\n        with interrupts.uninterrupted():\n"
        f"            os.kill(me, 15)\n        time.sleep(0.05)\n        print('whole'){TAIL}"
    )
    assert output(body) == (["whole", "stopped by 15"], "")


def test_what_a_destructor_drops_is_raised_again_without_a_word():
    body = (
        "class Dropping:\n    def __del__(self):\n        os.kill(me, 15)\n        time.sleep(5)\n"
        f"try:\n    Dropping(){TAIL}"
    )
    assert output(body) == (["stopped by 15"], "")


def test_what_became_another_error_on_its_way_is_still_a_request_to_end():
    body = (
        "try:\n    try:\n        os.kill(me, 15)\n        time.sleep(5)\n    except BaseException:\n"
        f"        print('failed')\n    interrupts.check(){TAIL}"
    )
    assert output(body) == (["failed", "stopped by 15"], "")


def test_a_request_that_a_library_words_anew_keeps_its_signal():
    body = (
        "try:\n    try:\n        os.kill(me, 15)\n        time.sleep(5)\n    except BaseException as error:\n"
        f"        raise type(error)(f'of a column: {{error}}') from error{TAIL}"
    )
    assert output(body) == (["stopped by 15"], "")


def test_what_a_process_of_ours_was_asked_is_asked_of_this_one_too_if_it_takes_signals():
    assert output(f"try:\n    interrupts.follow(1)\n    interrupts.follow(143){TAIL}") == (["stopped by 15"], "")
    others = "signal.signal(15, signal.SIG_DFL)\ninterrupts.follow(143)\nprint('goes on')"
    assert output(others) == (["goes on"], "")


def test_what_does_not_unwind_is_ended_after_a_while_and_tidied():
    body = (
        "interrupts.PATIENCE_S = 0.2\ninterrupts.install(lambda: print('tidied', flush=True))\n"
        "try:\n    os.kill(me, 15)\nexcept interrupts.Stopped:\n    time.sleep(20)"
    )
    assert output(body) == (["tidied"], "")


def test_at_the_end_signals_are_ignored_and_those_ignored_from_the_start_always_are():
    body = "interrupts.ignore()\nfor n in (1, 2, 15):\n    os.kill(me, n)\nprint('done')"
    assert output(body) == (["done"], "")
    ignoring = "import signal\nsignal.signal(1, signal.SIG_IGN)\n" + HEAD + "os.kill(me, 1)\nprint('goes on')"
    done = subprocess.run([sys.executable, "-c", ignoring], check=True, capture_output=True, text=True)
    assert done.stdout == "goes on\n"
