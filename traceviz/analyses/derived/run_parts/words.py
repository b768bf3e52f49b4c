"""What functions do by their names: programs without hooks save and validate in functions of their own."""

from __future__ import annotations

import polars as pl

SAVING = r"(?i)(?:^|[_.])(?:save|saving|checkpoint|checkpointing|ckpt|snapshot)(?:_|$)|(?:^|[_.])(?-i:save[A-Z])"
"""Functions of the program that write a checkpoint or a model,"""
NOT_SAVING = r"(?i)load|restor|resum|read|forward|init|should|need|path|name|folder|dir(?:_|$)"
"""unless they read it, or only decide where it goes; checkpointing of activations is a forward pass."""
VALIDATION = (
    r"(?i)(?:^|[_.])(?:eval|evaluate|evaluation|val|valid|validate|validation)(?:_(?:loop|epoch|one_epoch|step|run))?$"
    r"|(?:^|[_.])(?:eval|evaluate|validate)_|(?:^|[_.])run_(?:eval|val|test)|^test(?:_(?:loop|epoch|step|model))?$"
)
"""Functions of the program that evaluate the model."""

_SAVING_FILES = (
    r"^(?:torch/serialization\.py|torch/distributed/checkpoint/|(?:keras|tf_keras)/src/saving/|keras/saving/"
    r"|tensorflow/python/(?:checkpoint|saved_model)/|tensorflow/python/training/saver\.py|orbax/checkpoint/"
    r"|flax/training/checkpoints\.py|safetensors/|joblib/numpy_pickle\.py)"
)
_SAVING_FUNCTIONS = r"(?i)(?:^|[_.])(?:save|write|export|dump)"
_COMPILING_FILES = (
    r"^(?:torch/_(?:dynamo|inductor|functorch)/|jax/_src/(?:compiler|compilation_cache)\.py"
    r"|tensorflow/python/eager/polymorphic_function/|tensorflow/python/framework/func_graph\.py)"
)
_COMPILING_FUNCTIONS = (
    r"(?:^|\.)(?:_?compile(?:_inner|_fx|_fx_inner|_or_get_cached)?|_?compile_fx_inner|transform_code_object"
    r"|backend_compile(?:_and_load)?|_create_concrete_function|_maybe_define_function|trace_function"
    r"|func_graph_from_py_func|create_aot_dispatcher_function)$"
)
_IMPORTING = r"^(?:_find_and_load|_find_and_load_unlocked|_load_unlocked|_handle_fromlist|import_module)$"
_OWN_RECORDING = (
    r"^traceviz_inject/(?:recorder|ending|torch_profiler|jax_profiler|tensorflow_profiler|xplane_profiler)\.py$"
)


def _is(text: str, pattern: str) -> pl.Expr:
    return pl.col(text).str.contains(pattern).fill_null(value=False)


def is_program() -> pl.Expr:
    """Whether a frame is the program's own."""
    return pl.col("origin") == "program"


def saves() -> pl.Expr:
    """Whether a frame writes a checkpoint or a model."""
    own = is_program() & _is("function", SAVING) & ~_is("function", NOT_SAVING)
    return own | (_is("file", _SAVING_FILES) & _is("function", _SAVING_FUNCTIONS))


def validates() -> pl.Expr:
    """Whether a frame evaluates the model."""
    return is_program() & _is("function", VALIDATION)


def compiles() -> pl.Expr:
    """Whether a frame traces or compiles a part of the program."""
    return _is("file", _COMPILING_FILES) & _is("function", _COMPILING_FUNCTIONS)


def imports() -> pl.Expr:
    """Whether a frame imports a module."""
    return (pl.col("origin") == "standard") & _is("function", _IMPORTING)


def records() -> pl.Expr:
    """Whether a frame starts, ends or saves a recording: no work of the program."""
    return _is("file", _OWN_RECORDING)
