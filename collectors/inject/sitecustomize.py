"""Runs at the start of every Python of the profiled program: installs the hooks, then runs the shadowed module.

Only this file must be valid in every Python 3: the program's helpers may use an old one.
"""

import sys

_FOLDER = __file__.rpartition("/")[0]


def _install() -> None:
    if sys.version_info < (3, 7):  # noqa: UP036 a helper's Python, not the one that trains
        return
    try:
        from traceviz_inject import install  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

        install()
    except Exception as error:  # noqa: BLE001 no error of ours may stop the program
        sys.stderr.write(f"traceviz: nothing is recorded in this process: {error!r:.2000}\n")


def _run_the_shadowed_one() -> None:
    """Run the sitecustomize that would have run without us, under its own name; its errors are its own."""
    from importlib.machinery import PathFinder  # noqa: PLC0415

    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if entry.rstrip("/") != _FOLDER])
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec  # noqa: PLC0415 loads much that most Pythons do without

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_install()
_run_the_shadowed_one()
