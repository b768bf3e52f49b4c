"""What a runner is: it runs one function over many traces, here, in processes of this machine, or on a cluster.

A runner takes a function and its arguments, and yields every argument with its result, in the order in which they are
done. It takes an argument from the iterator when a worker is free, so a million of them need no memory. All runners
give the same results: the function writes what is large, and returns what is small.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

from traceviz.core.errors import TracevizError
from traceviz.core.sanitize import one_line
from traceviz.untrusted.errors import defect, in_our_words

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RunnerError:
    """Why there is no result for an argument.

    Args:
        code: ``worker-died``: a fault in compiled code, or want of memory, ended the worker twice.
            ``failed``: the function raised an error.
        message: What happened, for people.
        cause: The error that was raised, if it was one of ours.
    """

    code: Literal["worker-died", "failed"]
    message: str
    cause: TracevizError | None = None


Results: TypeAlias = Generator[tuple[T, R | RunnerError], None, None]
"""Arguments with their results; closing it ends what is still running."""


class Runner(Protocol):
    """Runs a function over arguments."""

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """Every argument with its result, in any order.

        What happens to one argument does not affect the others.

        Args:
            function: Of a module, so that other processes find it.
            arguments: Small values that can be pickled; taken one by one, as workers become free.
        """
        ...


def attempt(function: Callable[[T], R], argument: T) -> R | RunnerError:
    """What the function returns, or why it failed: nothing is raised across the border of a process."""
    try:
        return function(argument)
    except TracevizError as error:
        return RunnerError("failed", str(error), error)
    except Exception as error:  # noqa: BLE001 (whatever it is, it must reach the process that gave the work)
        ours = in_our_words(error, "It could not be done.")
        if ours is not None:
            return RunnerError("failed", str(ours), ours)
        return RunnerError("failed", one_line(f"{defect(error)}: {error}"))
