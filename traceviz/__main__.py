"""``python -m traceviz``."""

from traceviz.cli import main

main(prog_name="traceviz")
