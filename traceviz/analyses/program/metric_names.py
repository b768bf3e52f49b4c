"""Names of quality figures: the figure, its part of the data, and the direction of a gain.

::

    val_accuracy                 validation   accuracy              higher
    train/epoch_loss             train        loss                  lower
    eval_rouge2                  validation   rouge2                higher
    sparse_categorical_accuracy               sparse categorical …  higher
    learning_rate                             learning rate         (unknown)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceviz.report import Better

_SPLITS = {
    "train": ("train", "training", "tr"),
    "validation": ("val", "valid", "validation", "eval", "evaluation", "dev"),
    "test": ("test", "testing"),
}
_SPLIT_OF = {word: split for split, words in _SPLITS.items() for word in words}
SPLIT_WORDS = {"train": "training", "validation": "validation", "test": "test"}
"""Names of the parts of the data, for readers."""

_BETTER: dict[Better, re.Pattern[str]] = {
    "lower": re.compile(
        r"loss|losses|error|errors|err|m[as]e|rm[as]?se|rmsle|msle|mape|smape|perplexity|ppl|nll|bpc|wer|cer|fid"
        r"|entropy|divergence|hinge|brier|eer"
    ),
    "higher": re.compile(
        r"acc|top\d+|auc|auroc|auprc|prauc|rocauc|f1|f2|fbeta|f1score|dice|iou|miou|precision|recall"
        r"|sensitivity|specificity|r2|bleu\d*|rouge(\d|l|lsum)?|meteor|chrf|map|map50|ndcg|mrr|psnr|ssim|reward|rewards"
        r"|return|kappa|mcc|matthews|correct|similarity|elo"
    ),
}
_ENDS: dict[Better, tuple[str, ...]] = {"lower": ("logloss", "crossentropy"), "higher": ("accuracy",)}
"""Ends of words that show the direction, with any prefix."""
_WORD = re.compile(r"[^\W_]+")
_TRAINED_BY_DEFAULT = frozenset({"keras", "transformers"})
"""Sources that name the part of the data, except for training."""


@dataclass(frozen=True, slots=True)
class MetricName:
    """Content of a name.

    Args:
        what: The figure, in lower case: ``loss``.
        split: The part of the data: ``train``, ``validation``, ``test``; ``None`` if it is not known.
        better: Direction of a gain; empty if the name does not show it.
    """

    what: str
    split: str | None
    better: Better

    @property
    def label(self) -> str:
        """The name for readers: ``validation loss``."""
        return f"{SPLIT_WORDS[self.split]} {self.what}" if self.split else self.what


def read_name(name: str, source: str = "") -> MetricName:
    """Parse ``name``, which may depend on its ``source``.

    >>> read_name("val_sparse_categorical_accuracy").label, read_name("validation/epoch_loss").label
    ('validation sparse categorical accuracy', 'validation loss')
    >>> read_name("top_5_error").better, read_name("learning_rate").better
    ('lower', '')
    """
    parts = [words for part in name.casefold().split("/") if (words := _WORD.findall(part))]
    split, rest = _without_split(parts)
    words = [word for part in rest for word in part if word != "epoch"] or [word for part in parts for word in part]
    if words[-2:] == ["vs", "iterations"]:
        words = words[:-2]
    what = " ".join(words) or name or "unnamed"
    better = _direction(what)
    if split is None and source in _TRAINED_BY_DEFAULT and better:
        split = "train"
    return MetricName(what, split, better)


def _without_split(parts: list[list[str]]) -> tuple[str | None, list[list[str]]]:
    """Return the part of the data in a component of a name (whole, first or last word), and the rest of the name."""
    split: str | None = None
    rest = []
    several = sum(map(len, parts)) > 1
    for part in parts:
        kept = list(part)
        for end in (0, -1):
            if several and kept and kept[end] in _SPLIT_OF:
                split = split or _SPLIT_OF[kept[end]]
                del kept[end]
        rest.append(kept)
    return split, rest


def _direction(what: str) -> Better:
    """Return the direction by the last word that shows it: the loss of an accuracy is a loss."""
    for word in reversed(what.split()):
        for better, words in _BETTER.items():
            if words.fullmatch(word) or word.endswith(_ENDS[better]):
                return better
    return ""
