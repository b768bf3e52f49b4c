"""The command line with collectors of the test's own: ``python core_drive.py collect ...``.

TRACEVIZ_TEST_COLLECTORS names them, separated by commas; those of the product are used where it is not set. What they
leave is no trace: it is read only where TRACEVIZ_TEST_READ is set, as loading the libraries for it takes a second.
"""

import os
import sys
from pathlib import Path

from traceviz.__main__ import run
from traceviz.collectors import collect as recording
from traceviz.collectors import registry
from traceviz.collectors.base import Availability, Collector, Companion, Harvest, Problem
from traceviz.collectors.program import supervise
from traceviz.collectors.program.companion_process import read_wrapped, watched_command
from traceviz.collectors.run.tables import Tables
from traceviz.core.errors import OutputError


class Fake(Collector):
    name = "fake"
    title = "Fake"

    def availability(self):
        return Availability("ready", "always there")

    def command(self, command, plan):
        return ("env", "WRAPPED=yes", *command)

    def environment(self, plan, inherited):
        return {"FAKE_RAW": str(plan.raw(self.name)), "PYTHONPATH": f"/fake:{inherited.get('PYTHONPATH', '')}"}

    def start(self, plan, pid):
        return Beside(plan.raw(self.name) / "companion.txt", pid)

    def harvest(self, plan):
        files = tuple(sorted(plan.raw(self.name).iterdir()))
        return Harvest(files, facts={"framework": "fakeflow", "version": "1.2", "files": len(files)})


class Beside(Companion):
    def __init__(self, path, pid):
        self.path = path
        path.write_text(f"started beside {pid}\n")

    def stop(self):
        with self.path.open("a") as file:
            file.write("stopped\n")


class Missing(Fake):
    name = "missing"

    def availability(self):
        return Availability("not-installed", "It is not there.", "pip install it")


class Broken(Fake):
    """Fails wherever a collector may."""

    name = "broken"

    def start(self, plan, pid):
        raise OutputError("The companion has no room.")

    def harvest(self, plan):
        raise OSError(28, "No space left on device")


class Troubled(Fake):
    """Records nothing and reports why."""

    name = "troubled"

    def start(self, plan, pid):
        return None

    def harvest(self, plan):
        return Harvest(problems=(Problem("no-steps", "The program made no steps.", "Give --steps 0:5."),))


LAUNCHER = """
import os, signal, subprocess, sys, time
program = subprocess.Popen(sys.argv[2:], start_new_session=True)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: sys.exit(0))
if sys.argv[1] == "killed":
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
program.wait()
while sys.argv[1] == "stalled":
    time.sleep(0.1)
"""


class Launched(Fake):
    """Wraps the program as nsys does: in a session of its own, below a process that ends upon any signal, with 0."""

    name = "launched"
    own_session = True

    def command(self, command, plan):
        watched = watched_command(command, plan.raw(self.name))
        return (sys.executable, "-S", "-c", LAUNCHER, self.name, *watched)

    def program(self, plan):
        return read_wrapped(plan.raw(self.name))


class Killed(Launched):
    """Its launcher is killed while the program keeps running."""

    name = "killed"


class Stalled(Launched):
    """Its launcher does nothing any more once the program has ended."""

    name = "stalled"


class Slow(Fake):
    """Takes its time afterwards, until it is interrupted."""

    name = "slow"

    def harvest(self, plan):
        import time

        (plan.folder / "harvesting").touch()
        time.sleep(60)
        return Harvest((Path("never"),))


class Idle(Fake):
    """Finds nothing to record."""

    name = "idle"

    def start(self, plan, pid):
        return None

    def harvest(self, plan):
        return Harvest()


class Roomy(Fake):
    """Would break the program if less is free."""

    name = "roomy"
    room_bytes = 1 << 21


class Again(Troubled):
    """Reports the same as another one."""

    name = "again"


KNOWN = {
    kind.name: kind for kind in (Fake, Idle, Missing, Broken, Troubled, Again, Launched, Killed, Stalled, Slow, Roomy)
}

if __name__ == "__main__":
    names = os.environ.get("TRACEVIZ_TEST_COLLECTORS")
    if names is not None:
        chosen = tuple(KNOWN[name]() for name in names.split(",") if name)
        registry.COLLECTORS.all = lambda: chosen
        supervise.STALLED_S = 1.0
        if "TRACEVIZ_TEST_READ" not in os.environ:
            recording.make_tables = lambda *_, **options: Tables()
    run()
