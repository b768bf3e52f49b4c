"""Steps of an XPlane capture: groups of events, as xprof forms them."""
