"""A program that reports a loss until it diverges, an accuracy from two sources, a figure without direction."""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

KERAS, EVENTS = {"source": "keras"}, {"source": "tensorboard"}

STATED = tables(
    span_ns=1_000,
    metrics=[
        (100, "loss", 0.9, 10, 0, KERAS),
        (100, "val_accuracy", 0.5, 10, 0, KERAS),
        (110, "validation/epoch_accuracy", 0.5, 0, None, EVENTS),
        (200, "loss", 0.4, 20, 1, KERAS),
        (200, "val_accuracy", 0.8, 20, 1, KERAS),
        (250, "noise", -3.0, 5),
        (300, "loss", None, 30, 2, KERAS),
        (300, "val_accuracy", 0.7, 30, 2, KERAS),
        (350, "noise", 5.0, 7),
        # Another rank has fewer of the same.
        (360, "loss", 0.1, 20, 1, {"source": "keras", "process_id": 1}),
    ],
)

LITERALS = (
    Literal(
        "quality",
        STATED,
        {
            "facts": {"metrics": 3},
            "Figures that the program stated": {
                "name": ["val_accuracy", "loss", "noise"],
                "label": ["validation accuracy", "training loss", "noise"],
                "split": ["validation", "train", None],
                "better": ["higher", "lower", None],
                "first": [0.5, 0.9, -3.0],
                "last": [0.7, None, 5.0],
                "best": [0.8, 0.4, None],
                "best_step": [20, 20, None],
                "best_epoch": [1, 1, None],
                "count": [3, 3, 2],
                "source": ["keras", "keras", "program"],
            },
            "Over time": {
                "label": [*["validation accuracy"] * 3, *["training loss"] * 3, "noise", "noise"],
                "start_ns": [100, 200, 300, 100, 200, 300, 250, 350],
                "step": [10, 20, 30, 10, 20, 30, 5, 7],
                "epoch": [0, 1, 2, 0, 1, 2, None, None],
                "value": [0.5, 0.8, 0.7, 0.9, 0.4, None, -3.0, 5.0],
            },
        },
        {
            "facts": "a figure is one fact, whatever rows it has",
            "Over time": "a row of the table is a row of its grid",
        },
    ),
)
