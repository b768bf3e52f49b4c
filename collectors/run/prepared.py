"""A run before it starts: the plan, the collectors, and the resulting command and wrapper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from traceviz.collectors.base import Availability, Collector, Plan, Wrapped
from traceviz.collectors.frameworks.injection import through_env
from traceviz.collectors.program.supervise import Ending, Wrapper
from traceviz.collectors.run.folder import bytes_below
from traceviz.collectors.run.plan import CollectOptions, added_environment, typed_command, wrapped_command


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can be started.

    Args:
        plan: The plan of the run.
        options: The user's options.
        collectors: The collectors of the plan, in its order.
        states: The availability of each known collector.
        environment: The environment that the program inherits.
        versions: Versions that are known already: our own.
    """

    plan: Plan
    options: CollectOptions
    collectors: tuple[Collector, ...]
    states: Mapping[str, Availability]
    environment: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def command(self) -> tuple[str, ...]:
        """The command to start: the user's, with its wrapper."""
        command = through_env(self.plan.command, self.added, self.environment)
        return wrapped_command(replace(self.plan, command=command), self.collectors)

    @property
    def typed(self) -> tuple[str, ...]:
        """That command as a user would type it."""
        return typed_command(self.plan, self.collectors)

    @property
    def added(self) -> dict[str, str]:
        """Variables for the program in addition to those that it inherits."""
        return added_environment(self.plan, self.collectors, self.environment)

    @property
    def wrapping(self) -> tuple[str, ...]:
        """Names of the collectors whose processes run around the program."""
        return tuple(collector.name for collector in self.collectors if collector.own_session)

    @property
    def wrapper(self) -> Wrapper:
        """The wrapper that the collectors put around the program, if any."""
        return Wrapper(self._find_program, self._bytes_written, own_session=bool(self.wrapping))

    def _find_program(self) -> Wrapped | None:
        programs = (collector.program(self.plan) for collector in self.collectors)
        return next((program for program in programs if program is not None), None)

    def _bytes_written(self) -> int:
        return sum(bytes_below(self.plan.raw(name)) for name in self.wrapping)

    def may_start_again(self, ending: Ending) -> bool:
        """Return whether the wrapper failed to start the program, and another try may succeed."""
        if ending.status == 0 or ending.interrupted or ending.timed_out:
            return False
        return any(collector.may_start_again(self.plan) for collector in self.collectors)
