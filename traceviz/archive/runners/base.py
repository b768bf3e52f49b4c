"""Interface of runners, which apply one function to many traces: in this process, in several, or on a cluster.

A runner takes a function and its arguments, and yields every argument with its result, in order of completion. It takes
an argument from the iterator only when a worker is free, so a million arguments need no memory. All runners give the
same results. The function writes large results to files, and returns small ones.
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
    """Reason for a missing result of an argument.

    Args:
        code: ``worker-died``: a fault in compiled code, or lack of memory, ended the worker twice.
            ``failed``: the function raised an error.
        message: Message for people.
        cause: The raised error, if it is a traceviz error.
    """

    code: Literal["worker-died", "failed"]
    message: str
    cause: TracevizError | None = None


Results: TypeAlias = Generator[tuple[T, R | RunnerError], None, None]
"""Arguments with their results. Closing it terminates running work."""


class Runner(Protocol):
    """Runs a function on many arguments."""

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """Yield every argument with its result, in any order.

        A failure of one argument does not affect the others.

        Args:
            function: A module-level function, so that other processes can import it.
            arguments: Small picklable values, taken one by one as workers become free.
        """
        ...


def attempt(function: Callable[[T], R], argument: T) -> R | RunnerError:
    """Return the function's result or the reason of its failure. Nothing is raised across process borders."""
    try:
        return function(argument)
    except TracevizError as error:
        return RunnerError("failed", str(error), error)
    except Exception as error:  # noqa: BLE001 (any error must reach the process that gave the work)
        ours = in_our_words(error, "It could not be done.")
        if ours is not None:
            return RunnerError("failed", str(ours), ours)
        return RunnerError("failed", one_line(f"{defect(error)}: {error}"))
