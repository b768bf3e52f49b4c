"""Flags of ``nsys profile`` as users write them. Long flags may be abbreviated; values follow in three ways. Pure."""

from __future__ import annotations

from collections.abc import Iterator

TRACE = ("--trace", "-t")


def given(arguments: tuple[str, ...], long: str, short: str) -> bool:
    """Return whether a flag is among ``arguments``, in any of its spellings. nsys also accepts prefixes of a long flag.

    >>> [given((flag,), "--trace", "-t") for flag in ("-tcuda", "-t", "--trace=cuda", "--tra", "-x", "--trace-fork")]
    [True, True, True, True, False, False]
    """
    return any(True for _ in values(arguments, long, short))


def values(arguments: tuple[str, ...], long: str, short: str) -> Iterator[str]:
    """Yield the value of a flag for each time that it is among ``arguments``; empty if it has none.

    >>> list(values(("--tra=cuda", "-tosrt", "-t", "nvtx", "--trace-fork=x", "-t"), "--trace", "-t"))
    ['cuda', 'osrt', 'nvtx', '']
    """
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        following = "".join(arguments[position + 1 : position + 2])
        if len(name) > len("--") and long.startswith(name):
            yield value if equals else following
        elif short and argument.startswith(short) and not argument.startswith("--"):
            yield argument.removeprefix(short).removeprefix("=") if argument != short else following


def traces_cuda(arguments: tuple[str, ...]) -> bool:
    """Return whether ``nsys profile`` with these flags of the user traces CUDA, as it does by default.

    >>> [traces_cuda(flags) for flags in ((), ("--trac=nvtx,osrt",), ("-t", "cuda,nvtx"), ("-tnone",))]
    [True, False, True, False]
    """
    *_, traced = ("cuda", *values(arguments, *TRACE))
    return any(kind.strip().startswith(("cuda", "cublas", "cudnn")) for kind in traced.split(","))
