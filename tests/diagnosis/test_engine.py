from benchmarks.diagnosis.engine import Shared, Simulation


def test_actors_of_one_time_resume_in_the_order_of_their_requests():
    simulation, order = Simulation(), []

    def actor(name, ns):
        yield ns
        order.append((name, simulation.now))

    for name, ns in (("late", 20), ("first", 10), ("second", 10)):
        simulation.start(actor(name, ns))
    simulation.run()

    assert order == [("first", 10), ("second", 10), ("late", 20)]


def test_a_signal_wakes_those_that_wait_and_stops_nobody_after_it():
    simulation, woken = Simulation(), []
    signal = simulation.signal()

    def waits(after):
        yield after
        yield signal
        woken.append(simulation.now)

    def fires():
        yield 30
        signal.fire()

    for actor in (waits(0), waits(50), fires()):
        simulation.start(actor)
    simulation.run()

    assert woken == [30, 50]


def test_a_holder_passes_its_place_on_after_the_quantum_if_another_waits():
    simulation, held = Simulation(), []
    shared = Shared(simulation, 1, 10)

    def worker(name, parts):
        for _ in range(parts):
            yield from shared.hold(name)
            held.append((name, simulation.now))
            yield 4
        shared.release(name)

    simulation.start(worker("a", 4))
    simulation.start(worker("b", 1))
    simulation.run()

    # At 12 the quantum of a is over: b has its turn, and then a the rest.
    assert held == [("a", 0), ("a", 4), ("a", 8), ("b", 12), ("a", 16)]


def test_a_resource_with_two_places_serves_two_at_once():
    simulation, ends = Simulation(), []
    shared = Shared(simulation, 2, 0)

    def worker():
        yield from shared.hold(object_ := object())
        yield 10
        shared.release(object_)
        ends.append(simulation.now)

    for _ in range(3):
        simulation.start(worker())
    simulation.run()

    assert ends == [10, 10, 20]
