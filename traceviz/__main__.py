"""``python -m traceviz``."""

from traceviz.cli.main import main

main(prog_name="traceviz")
