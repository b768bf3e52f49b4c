"""``traceviz sweep``: a program under many settings, each recorded several times; a run that fails is a result too."""
