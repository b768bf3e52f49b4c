"""Discrete events: actors wait for time, for signals and for shared resources.

An actor is a generator. It yields a number of nanoseconds to let that time pass, or a :class:`Signal` to wait for it.
Actors that resume at the same time do so in the order of their requests, so equal worlds have equal runs.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator


class Signal:
    """An event that happens once. Actors that wait for it resume at that time; later ones do not wait."""

    __slots__ = ("_simulation", "_waiting", "fired")

    def __init__(self, simulation: Simulation) -> None:
        self.fired = False
        self._simulation = simulation
        self._waiting: list[Actor] = []

    def fire(self) -> None:
        """Resume all actors that wait."""
        if self.fired:
            return
        self.fired = True
        for actor in self._waiting:
            self._simulation.start(actor)
        self._waiting.clear()

    def add(self, actor: Actor) -> None:
        """Resume this actor when the signal fires."""
        self._waiting.append(actor)


Actor = Generator[int | Signal, None, None]


class Simulation:
    """The clock, and the actors that wait for a time."""

    def __init__(self) -> None:
        self.now = 0
        self._requests = 0
        self._events: list[tuple[int, int, Actor]] = []

    def start(self, actor: Actor, after: int = 0) -> None:
        """Resume an actor ``after`` nanoseconds from now."""
        self._requests += 1
        heapq.heappush(self._events, (self.now + after, self._requests, actor))

    def signal(self) -> Signal:
        """Return a signal that has not fired."""
        return Signal(self)

    def run(self) -> None:
        """Run until no actor waits for a time. Actors that wait for signals that never fire are dropped."""
        events = self._events
        while events:
            self.now, _, actor = heapq.heappop(events)
            for request in actor:
                if isinstance(request, Signal):
                    if not request.fired:
                        request.add(actor)
                        break
                elif request > 0:
                    self._requests += 1
                    heapq.heappush(events, (self.now + request, self._requests, actor))
                    break


class Shared:
    """A resource with a few places, such as cores, the GIL or a copy engine.

    A holder keeps its place until it releases it. At the next :meth:`hold` after ``quantum`` nanoseconds it passes the
    place on if another holder waits.
    """

    def __init__(self, simulation: Simulation, places: int, quantum: int) -> None:
        self.quantum = quantum
        self._simulation = simulation
        self._places = places
        self._since: dict[object, int] = {}
        self._queue: deque[tuple[object, Signal]] = deque()

    def try_hold(self, holder: object) -> bool:
        """Take a place, or keep the one that the holder has, if that needs no wait."""
        since = self._since.get(holder)
        if since is not None:
            return not self._queue or self._simulation.now - since < self.quantum
        if self._queue or len(self._since) >= self._places:
            return False
        self._since[holder] = self._simulation.now
        return True

    def hold(self, holder: object) -> Actor:
        """Wait for a place, or keep the one that the holder has."""
        if self.try_hold(holder):
            return
        turn = self._simulation.signal()
        self._queue.append((holder, turn))
        self.release(holder)
        yield turn

    def release(self, holder: object) -> None:
        """Pass the place on, if the holder has one."""
        if self._since.pop(holder, None) is None:
            return
        if self._queue:
            following, turn = self._queue.popleft()
            self._since[following] = self._simulation.now
            turn.fire()
