"""Kinds of work by operator name: the computation, regardless of the library.

``aten::mkldnn_convolution``, ``aten::cudnn_convolution`` and TensorFlow's ``_FusedConv2D`` are convolutions. PyTorch
records one convolution as several nested operators, and a matrix product as the operator that computes it and others
around it::

    aten::conv2d > aten::convolution > aten::_convolution > aten::mkldnn_convolution     one convolution
    aten::linear > aten::addmm                                                           one matrix product
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """Kind of computation of a step; the value is its display name."""

    CONVOLUTION = "convolutions"
    PRODUCT = "matrix products"
    ATTENTION = "attention"
    RECURRENT = "recurrent layers"


GRADIENT = re.compile(r"[Bb]ackward|Backprop|(?:^|[/_])gradients?(?:_tape)?/")
"""Operators that compute gradients: PyTorch's ``aten::convolution_backward``, TensorFlow's ``Conv2DBackpropInput``."""

_LONGEST = 200
"""Number of characters of a name that are examined."""
_TORCH = re.compile(r"^(?:aten|mkldnn|mkldnn_prepacked|quantized|onednn|fbgemm|rocm|xformers|vllm)::_?")
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        Kind.CONVOLUTION,
        re.compile(
            r"^(?:\w*convolution\w*|(?:slow_|thnn_)?conv(?:_transpose|_depthwise|_dilated|_tbc)?[123]?d?(?:_forward)?"
            r"|\w*Conv[123]D(?!Ops)\w*|conv_general_dilated|XlaConv\w*)$"
        ),
    ),
    (
        Kind.RECURRENT,
        re.compile(
            r"^(?:(?:cudnn_|miopen_|mkldnn_|thnn_fused_)?(?:lstm|gru|rnn(?:_tanh|_relu|_layer)?)(?:_cell)?(?:_backward)?"
            r"|Cudnn(?:RNN|LSTM|GRU)\w*|(?:Block)?LSTM\w*|GRUBlock\w*)$"
        ),
    ),
    (Kind.ATTENTION, re.compile(r"^(?:\w*scaled_dot_product\w*|\w*(?:flash|efficient|fused|unified)\w*attention\w*)$")),
    (
        Kind.PRODUCT,
        re.compile(
            r"^(?:(?:add|badd|addb)?b?mm|addmm_activation|(?:scaled|int|grouped|scaled_grouped|weight_int4pack)_mm\w*"
            r"|(?:add)?mv|matmul|linear\w*|mkldnn_linear\w*|einsum|\w*MatMul\w*|(?:Xla)?Einsum|XlaDot\w*|dot(?:_general)?"
            r"|\w*gemm\w*)$"
        ),
    ),
)

_AROUND = re.compile(r"^(?:conv[123]d|matmul|linear|einsum|scaled_dot_product_attention)$")
"""Operators that only call another of their kind. They are not counted, as mixed precision calls some twice."""
_NESTED = frozenset({Kind.CONVOLUTION, Kind.RECURRENT})
"""Kinds whose calls PyTorch records as several operators, each nested in the previous one."""


@lru_cache(maxsize=1 << 16)
def kind_of(name: str) -> Kind | None:
    """Return the kind of an operator or op type; ``None`` if it has none."""
    bare = bare_name(name)
    return next((kind for kind, pattern in _KINDS if pattern.match(bare)), None)


def is_gradient(name: str) -> bool:
    """Return whether an operator computes a gradient."""
    return GRADIENT.search(name) is not None


def counts_once(name: str) -> bool:
    """Return whether calls of an operator add to those of others of its kind; if not, the largest number counts."""
    return kind_of(name) not in _NESTED


def is_around(name: str) -> bool:
    """Return whether an operator only calls another operator of its kind."""
    return _AROUND.match(bare_name(name)) is not None


def bare_name(name: str) -> str:
    """Return a name without its library, limited in length: ``aten::_convolution`` gives ``convolution``."""
    return _TORCH.sub("", name[:_LONGEST]).removesuffix("_")
