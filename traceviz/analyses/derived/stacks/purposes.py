"""Search for the frame that gives the purpose of a stack's time."""

from __future__ import annotations

import numpy as np

from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Mask, Rows, nearest, topmost


def purpose_frames(parent: Rows, *, has: Mask, alone: Mask, until_program: Mask, program: Mask) -> Array:
    """Return, for each frame, the row of the frame whose purpose its time serves, or -1.

    This is the outermost frame with a purpose that extends to it::

        main > save_checkpoint > json.dump > write          saving, all of it
        main > tqdm.__iter__ > DataLoader.__next__          input: a bar encloses the iterable that it wraps
        main > tqdm.__iter__ > tqdm.update > write          logging: the bar's own work
        main > mlflow.patched_fit > train > forward         none: the program's own code runs again

    Args:
        parent: Row of the caller of each frame, which precedes it, or -1.
        has: Frames with a purpose.
        alone: Frames whose purpose is only for their own time.
        until_program: Frames whose purpose ends at the next frame of the program.
        program: Frames of the program.
    """
    reaches = has & ~alone
    outer = topmost(parent, reaches & ~until_program)
    bounded = nearest(parent, reaches & until_program)
    bounded = np.where(bounded > nearest(parent, program), bounded, -1)
    serves = np.where((bounded >= 0) & ((outer < 0) | (bounded < outer)), bounded, outer)
    return np.where((serves < 0) & has, np.arange(parent.size), serves)
