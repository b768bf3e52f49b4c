"""``traceviz sweep``: run a program under many settings and record each several times. A failed run is a result too."""
