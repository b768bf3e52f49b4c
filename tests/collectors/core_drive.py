"""The command line with collectors of the test's own: ``python core_drive.py collect ...``.

TRACEVIZ_TEST_COLLECTORS names them, separated by commas; those of the product are used where it is not set.
"""

import os
import sys
from pathlib import Path

from traceviz.cli import main
from traceviz.collectors import registry
from traceviz.collectors.base import Availability, Collector, Companion, Harvest, Problem
from traceviz.errors import OutputError


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
    """Records nothing and says why."""

    name = "troubled"

    def start(self, plan, pid):
        return None

    def harvest(self, plan):
        return Harvest(problems=(Problem("no-steps", "The program made no steps.", "Give --steps 0:5."),))


class Slow(Fake):
    """Takes its time afterwards, until it is interrupted."""

    name = "slow"

    def harvest(self, plan):
        import time

        (plan.folder / "harvesting").touch()
        time.sleep(60)
        return Harvest((Path("never"),))


KNOWN = {kind.name: kind for kind in (Fake, Missing, Broken, Troubled, Slow)}

if __name__ == "__main__":
    names = os.environ.get("TRACEVIZ_TEST_COLLECTORS")
    if names is not None:
        registry.COLLECTORS = tuple(KNOWN[name]() for name in names.split(",") if name)
    main(sys.argv[1:])
