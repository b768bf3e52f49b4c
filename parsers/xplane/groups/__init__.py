"""Steps of an XPlane capture: which events belong together, as xprof groups them."""
